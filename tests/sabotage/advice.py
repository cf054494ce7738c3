"""Equal care, and advice that can be followed."""

from tests.sabotage.sabotage import Sabotage

EVALUATE = "tests/compare/test_evaluate_fold.py"
SUMMARY = "tests/compare/test_summary.py"

SABOTAGES = (
    Sabotage(
        broken="A fit is told of held-out rows as well.",
        test=f"{EVALUATE}::test_the_labels_of_held_out_rows_have_no_part_in_a_fit",
        file="compare/evaluating.py",
        before="    train, test = np.flatnonzero(~held), np.flatnonzero(held)\n",
        after="    train, test = np.arange(len(held)), np.flatnonzero(held)\n",
    ),
    Sabotage(
        broken="A search tries fewer settings than are listed for the method.",
        test=f"{EVALUATE}::test_settings_are_chosen_as_a_search_by_hand_chooses_them",
        file="compare/methods.py",
        before="    return EnvironmentSearch(classifier, candidates, max_folds=effort.search_folds)\n",
        after="    return EnvironmentSearch(classifier, candidates[-1:], max_folds=effort.search_folds)\n",
    ),
    Sabotage(
        broken="A pool of finished results has equal weights.",
        test=f"{EVALUATE}::test_a_pool_of_finished_members_is_the_pool_that_is_fitted",
        file="compare/evaluating.py",
        before="    weights = left_out_weights(",
        after="    weights = np.full(len(POOL_MEMBERS), 1 / len(POOL_MEMBERS)) + 0 * left_out_weights(",
    ),
    Sabotage(
        broken="The average rate counts as beaten where it is behind.",
        test=f"{SUMMARY}::test_where_nothing_beats_the_average_rate_the_verdict_says_so_first",
        file="compare/summary.py",
        before="(self.no_model is not self.leader and NO_MODEL not in self.rivals)",
        after="self.no_model is not self.leader",
    ),
    Sabotage(
        broken="A method far ahead everywhere is called nothing, since its environments are few.",
        test=f"{SUMMARY}::test_far_ahead_in_each_of_four_environments_is_not_called_nothing",
        file="compare/verdict.py",
        before="_too_few(summary, best) if summary.ahead_everywhere else _nothing_found(summary, best)",
        after="_nothing_found(summary, best)",
    ),
    Sabotage(
        broken="A mean that is ahead by chance counts as ahead everywhere.",
        test=f"{SUMMARY}::test_noise_is_not_taken_for_too_few_environments",
        file="compare/summary.py",
        before="        return all(better) and test is not None and test.low > 0\n",
        after="        return any(better)\n",
    ),
    Sabotage(
        broken="The simplest is advised though the average rate does better.",
        test=f"{SUMMARY}::test_no_method_is_advised_that_is_worse_than_no_model",
        file="compare/summary.py",
        before="        ahead = self.rows[: self.rows.index(self.no_model)]\n",
        after="        ahead = self.rows\n",
    ),
    Sabotage(
        broken="The command that is given tunes what was compared with fixed settings.",
        test="tests/workflow/test_compare_table.py::test_what_is_advised_can_be_fitted_by_the_command_that_is_given",
        file="workflow/comparing.py",
        before='    words += [] if record.effort.searches else ["--quick"]\n',
        after="",
    ),
    Sabotage(
        broken="Loaded shares of classes are turned round.",
        test="tests/tables/test_model_folder.py::test_a_saved_model_of_any_kind_answers_as_it_did",
        file="tuning/plain_models.py",
        before="        return np.tile(self.shares, ",
        after="        return np.tile(self.shares[::-1], ",
    ),
    Sabotage(
        broken="The intercepts of a saved logistic regression are lost.",
        test="tests/tables/test_model_folder.py::test_a_saved_model_of_any_kind_answers_as_it_did",
        file="tuning/plain_models.py",
        before=" @ self.coefficients.T + self.intercepts)",
        after=" @ self.coefficients.T)",
    ),
)
