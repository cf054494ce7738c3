"""Statistics."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="The p-values of a table are not corrected.",
        test="tests/trust/test_statistics.py::test_seeds_where_no_method_is_better_are_called_significant_in_one_table_of_twenty_at_most",
        file="significance.py",
        before='stats.false_discovery_control([comparisons[method].p_value for method in family], method="by")',
        after="[comparisons[method].p_value for method in family]",
    ),
    Sabotage(
        broken="p-values come from the normal distribution, however few seeds there are.",
        test="tests/trust/test_statistics.py::test_seeds_where_no_method_is_better_are_called_significant_in_one_table_of_twenty_at_most",
        file="significance.py",
        before='p_value = stats.ttest_1samp(difference, 0.0, alternative="greater").pvalue',
        after="p_value = stats.norm.sf(stats.ttest_1samp(difference, 0.0).statistic)",
    ),
    Sabotage(
        broken="The pairs of methods are not corrected.",
        test="tests/trust/test_statistics.py::test_a_comparison_where_no_method_is_better_names_a_winner_in_one_of_twenty_at_most",
        file="compare/summary.py",
        before='stats.false_discovery_control(two_sided, method="by") if family else []',
        after="two_sided",
    ),
    Sabotage(
        broken="p-values come from the normal distribution, however few folds there are.",
        test="tests/trust/test_statistics.py::test_a_comparison_where_no_method_is_better_names_a_winner_in_one_of_twenty_at_most",
        file="significance.py",
        before='p_value = stats.ttest_1samp(difference, 0.0, alternative="greater").pvalue',
        after="p_value = stats.norm.sf(stats.ttest_1samp(difference, 0.0).statistic)",
    ),
    Sabotage(
        broken="A winner is named by the intervals, which are not corrected, and not by the tests.",
        test="tests/trust/test_statistics.py::test_a_comparison_where_no_method_is_better_names_a_winner_in_one_of_twenty_at_most",
        file="compare/summary.py",
        before="row.test is None or not row.test.p_corrected < LEVEL]",
        after="row.test is None or not row.test.low > 0]",
    ),
    Sabotage(
        broken="Intervals use the quantile of the normal distribution: too narrow.",
        test="tests/trust/test_statistics.py::test_intervals_over_folds_cover_as_often_as_is_stated",
        file="compare/summary.py",
        before="stats.t.ppf(0.975, len(values) - 1)",
        after="stats.norm.ppf(0.975)",
    ),
    Sabotage(
        broken="The spread over folds is divided by n and not by n - 1: too narrow.",
        test="tests/trust/test_statistics.py::test_intervals_over_folds_cover_as_often_as_is_stated",
        file="compare/summary.py",
        before="values.std(ddof=1) / math.sqrt(len(values))",
        after="values.std() / math.sqrt(len(values))",
    ),
    Sabotage(
        broken="Intervals are those of a score and not of a mean: too wide.",
        test="tests/trust/test_statistics.py::test_intervals_over_folds_cover_as_often_as_is_stated",
        file="compare/summary.py",
        before="values.std(ddof=1) / math.sqrt(len(values))",
        after="values.std(ddof=1)",
    ),
    Sabotage(
        broken="The p-values of the audit are not corrected.",
        test="tests/trust/test_statistics.py::test_the_leak_audit_cries_wolf_in_one_data_set_of_a_hundred_at_most",
        file="audit.py",
        before="np.flatnonzero(_adjusted(p_values) <= false_discovery_rate)",
        after="np.flatnonzero(p_values <= false_discovery_rate)",
    ),
    Sabotage(
        broken="Rows that are equal by nature count as copies.",
        test="tests/trust/test_statistics.py::test_the_leak_audit_cries_wolf_in_one_data_set_of_a_hundred_at_most",
        file="audit.py",
        before="(queries.fine >= _FINE_COLUMNS)",
        after="(queries.fine >= 0)",
    ),
    Sabotage(
        broken="A copy of a training row is taken for the row itself and left out.",
        test="tests/trust/test_statistics.py::test_the_leak_audit_finds_planted_copies",
        file="neighbours.py",
        before="np.where(copies > 0, finest, distances[:, 0]), distances[:, -1]",
        after="distances[:, 0], distances[:, -1]",
    ),
    Sabotage(
        broken="The audit corrects as if all tests were one: too strict to find anything.",
        test="tests/trust/test_statistics.py::test_the_leak_audit_finds_planted_copies",
        file="audit.py",
        before="np.minimum(1.0, len(candidates) * np.min(candidates, axis=0))",
        after="np.max(candidates, axis=0)",
    ),
    Sabotage(
        broken="Copies of finely measured rows count like other near rows: double entries excuse them.",
        test="tests/test_audit.py::test_double_entries_in_every_environment_do_not_excuse_copies",
        file="audit.py",
        before="(queries.fine >= _FINE_COLUMNS)",
        after="(queries.fine > rows.Z.shape[1])",
    ),
    Sabotage(
        broken="Identical rows that are not counted as a leak are not mentioned either.",
        test="tests/compare/test_summary.py::test_identical_rows_are_mentioned_even_where_they_are_usual",
        file="compare/suspicions.py",
        before="return [*found.values(), *_usual_copies(X, folds, [fold for fold in plan.folds if fold not in found])]",
        after="return [*found.values()]",
    ),
)
