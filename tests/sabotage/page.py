"""The page of a comparison."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A row at the threshold is not called positive.",
        test="tests/report/test_thresholds.py::test_counts_at_a_threshold_are_those_of_brute_force",
        file="report/thresholds.py",
        before='len(inside) - np.searchsorted(inside, PERCENT / 100, side="left"),',
        after='len(inside) - np.searchsorted(inside, PERCENT / 100, side="right"),',
    ),
    Sabotage(
        broken="False positives count as much as true ones at every threshold.",
        test="tests/report/test_thresholds.py::test_counts_at_a_threshold_are_those_of_brute_force",
        file="report/thresholds.py",
        before="(tp - fp * percent / (100 - percent)) / self.n",
        after="(tp - fp) / self.n",
    ),
    Sabotage(
        broken="The numbers behind the slider are of the other class.",
        test="tests/report/test_comparison_page.py::test_the_slider_gives_the_shares_that_one_counts_by_hand",
        file="report/comparison_page.py",
        before="wanted = [1] if n == 2",
        after="wanted = [0] if n == 2",
    ),
    Sabotage(
        broken="All columns are shuffled, and not the one whose importance is asked for.",
        test="tests/compare/test_importance.py::test_a_column_of_noise_has_an_importance_that_holds_zero",
        file="compare/importance.py",
        before="shuffled[:, block] = X[np.ix_(rng.permutation(len(X)), block)]",
        after="shuffled[:] = X[rng.permutation(len(X))]",
    ),
    Sabotage(
        broken="The interval of a column's importance is that of one environment's rows.",
        test="tests/compare/test_importance.py::test_a_column_of_noise_has_an_importance_that_holds_zero",
        file="compare/column_summary.py",
        before="half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)",
        after="half = np.std(values, ddof=1) / n",
    ),
    Sabotage(
        broken="A matrix of many environments stands side by side in its table.",
        test="tests/report/test_comparison_page.py::test_nothing_needs_a_scrollbar_in_a_window_of_1300_pixels",
        file="report/charts.py",
        before="    if len(columns) <= MAX_WRITTEN:\n        lines",
        after="    if len(columns) < 1000:\n        lines",
    ),
    Sabotage(
        broken="Texts of the page are not escaped.",
        test="tests/report/test_comparison_page.py::test_names_from_a_table_are_text_wherever_they_stand",
        file="report/templates.py",
        before="autoescape=True",
        after="autoescape=False",
    ),
    Sabotage(
        broken="Names in the numbers behind the slider may end the script.",
        test="tests/report/test_comparison_page.py::test_names_from_a_table_are_text_wherever_they_stand",
        file="report/thresholds.py",
        before='separators=(",", ":")).replace("<", r"\\u003c"))',
        after='separators=(",", ":")))',
    ),
    Sabotage(
        broken="Being ahead of the average rate is enough for the page, whatever the test says.",
        test="tests/report/test_use_answers.py::test_a_table_of_noise_is_called_that",
        file="report/use_answers.py",
        before="    if not summary.beats_no_model:\n",
        after="    if summary.leader is summary.no_model:\n",
    ),
    Sabotage(
        broken="Without the row of no model, every method counts as better than it.",
        test="tests/report/test_use_answers.py::test_without_the_row_of_no_model_nothing_is_said_of_the_average_rate",
        file="report/use_answers.py",
        before="    if average is None:\n        return (",
        after="    if average is None:\n        return f'{leader.method} is significantly better.' or (",
    ),
)
