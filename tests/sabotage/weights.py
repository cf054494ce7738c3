"""Weights of rows and classes; stopping early and going on."""

from tests.sabotage.sabotage import Sabotage

REPEATED = "tests/objectives/test_row_weights.py::test_a_row_of_weight_three_is_a_row_that_is_there_three_times"
STOPPED = (
    "tests/estimators/test_early_stopping.py::"
    "test_training_ends_when_held_out_rows_gain_no_more_and_the_best_weights_are_kept"
)
REMOVED = "tests/objectives/test_row_weights.py::test_a_row_of_weight_zero_is_a_row_that_is_not_there"

SABOTAGES = (
    Sabotage(
        broken="The gradient through p(e|x,y) forgets the weights of the rows.",
        test=REPEATED,
        file="objectives/fused/exact_mixture.py",
        before="            self._v.mul_(weight[:, None])\n",
        after="            pass\n",
    ),
    Sabotage(
        broken="Where environments are drawn, the tie forgets the weights of the rows.",
        test=REPEATED,
        file="objectives/fused/sampled_mixture.py",
        before="        self.inputs.observed.mul_(weight[:, None])\n",
        after="",
    ),
    Sabotage(
        broken="The environment loss forgets the weights of the rows.",
        test=REPEATED,
        file="objectives/eber.py",
        before="environment_loss = -batch.mean(log_p_observed)",
        after="environment_loss = -log_p_observed.mean()",
    ),
    Sabotage(
        broken="The halves of IRM's penalty are not weighted.",
        test=REPEATED,
        file="objectives/irm.py",
        before="    if batch.weight is not None:\n        halves",
        after="    if batch is None:\n        halves",
    ),
    Sabotage(
        broken="An environment counts rows of weight zero.",
        test=REMOVED,
        file="objectives/base.py",
        before="total.square() / one_for_zero(member.square().sum(2))",
        after="(member >= 0).sum(2).to(dtype)",
    ),
    Sabotage(
        broken="Weights are not scaled to mean one.",
        test="tests/estimators/test_weights.py::test_only_ratios_of_weights_matter",
        file="estimators/rows.py",
        before="    weight = weight / weight.max()  # so that no sum overflows\n"
        "    return torch.from_numpy((weight / weight.mean()).astype(np.float32))\n",
        after="    return torch.from_numpy(weight.astype(np.float32))\n",
    ),
    Sabotage(
        broken="Rows of weight zero stay among the rows of the fit.",
        test="tests/estimators/test_weights.py::test_a_row_of_weight_zero_is_left_out_to_the_bit",
        file="estimators/rows.py",
        before="        return self if self.weight is None or self.weight.all() else self.select(self.weight > 0)\n",
        after="        return self\n",
    ),
    Sabotage(
        broken="The balanced weights of classes count rows and not their weights.",
        test="tests/estimators/test_weights.py::test_a_class_weight_is_the_weight_of_its_rows",
        file="estimators/rows.py",
        before="totals = np.bincount(y_index, weight, minlength=len(classes))",
        after="totals = np.bincount(y_index, minlength=len(classes))",
    ),
    Sabotage(
        broken="A classifier whose fit has no place for weights is fitted without.",
        test="tests/estimators/test_weights.py::test_other_peoples_classifiers_get_the_weights_or_are_refused",
        file="estimators/many_fits.py",
        before='        if not takes(classifier, "sample_weight"):\n            raise',
        after='        if not takes(classifier, "sample_weight"):\n            return classifier.fit(X, y)\n'
        "            raise",
    ),
    Sabotage(
        broken="Settings are judged by all rows alike.",
        test="tests/tuning/test_weighted_rows.py::test_a_search_fits_and_judges_with_weights",
        file="tuning/choosing.py",
        before="losses(self.left_out.proba, self.y_index, self.units, self.table.weights)",
        after="losses(self.left_out.proba, self.y_index, self.units)",
    ),
    Sabotage(
        broken="The area under the curve forgets the weights of the rows.",
        test="tests/evaluation/test_metrics.py::test_weights_are_repeated_rows",
        file="evaluation/metrics.py",
        before="roc_auc_score(index, p[:, 1], sample_weight=w)",
        after="roc_auc_score(index, p[:, 1])",
    ),
    Sabotage(
        broken="Held-out rows are scored as if all counted alike.",
        test="tests/workflow/test_weights.py::test_scores_of_a_comparison_are_weighted_as_by_hand",
        file="compare/evaluating.py",
        before="    scores = {MAIN: score(y, proba, table.classes, METRICS, of_test)}\n",
        after="    scores = {MAIN: score(y, proba, table.classes, METRICS)}\n",
    ),
    Sabotage(
        broken="Fits that results share do not get the weights.",
        test="tests/compare/test_shared_fits.py::test_shared_fits_get_the_weights_of_rows",
        file="compare/shared_fits.py",
        before="    return MultiEnvironmentData(X, table.y[rows], table.environments[rows], weights=weights)\n",
        after="    return MultiEnvironmentData(X, table.y[rows], table.environments[rows])\n",
    ),
    Sabotage(
        broken="Fits of a comparison do not get the weights.",
        test="tests/workflow/test_weights.py::test_scores_of_a_comparison_are_weighted_as_by_hand",
        file="compare/fit_method.py",
        before="MultiEnvironmentData(X, y, environments, weights=weights)",
        after="MultiEnvironmentData(X, y, environments)",
    ),
    Sabotage(
        broken="The names of cells do not know of weights.",
        test="tests/workflow/test_weights.py::test_what_was_kept_without_weights_is_not_taken_for_weighted",
        file="workflow/fitting.py",
        before='"choices": choices, "reading"',
        after='"reading"',
    ),
    Sabotage(
        broken="A negative weight is taken as it is.",
        test="tests/workflow/test_weights.py::test_what_is_no_weight_is_refused_by_column_and_row",
        file="tables/weights.py",
        before='(weights < 0, "negative")',
        after='(weights < -9, "negative")',
    ),
    Sabotage(
        broken="An environment without weight is a reason for a division by zero.",
        test="tests/workflow/test_weights.py::test_environments_in_which_no_row_counts_are_named",
        file="tables/weights.py",
        before="    if len(empty):\n",
        after="    if False:\n",
    ),
    Sabotage(
        broken="The last weights are kept, not the best.",
        test=STOPPED,
        file="training.py",
        before="        if self._best is not None:\n            self.stack.vector.copy_(self._best)\n        elif ",
        after="        if ",
    ),
    Sabotage(
        broken="The weights of the last step are judged and kept, not those of prediction.",
        test="tests/estimators/test_early_stopping.py::test_the_passes_are_those_of_a_fit_without_what_was_held_out",
        file="training.py",
        before="            self.stack.vector.copy_(self.average)\n        verdict",
        after="            pass\n        verdict",
    ),
    Sabotage(
        broken="After a look at held-out rows the training goes on from the average of the weights.",
        test="tests/estimators/test_early_stopping.py::test_the_passes_are_those_of_a_fit_without_what_was_held_out",
        file="training.py",
        before="        self.stack.vector.copy_(current)\n",
        after="",
    ),
    Sabotage(
        broken="Of two environments one is held out.",
        test="tests/estimators/test_early_stopping.py::test_too_few_environments_or_rows_are_refused",
        file="estimators/early_stopping.py",
        before="    if len(names) < MIN_ENVIRONMENTS:\n",
        after="    if len(names) < 1:\n",
    ),
    Sabotage(
        broken="A warm start starts from new weights.",
        test="tests/estimators/test_early_stopping.py::test_a_warm_start_goes_on_from_the_weights",
        file="estimators/warm_start.py",
        before="    module.load_state_dict(learned)\n",
        after="",
    ),
    Sabotage(
        broken="A warm start takes other environments for the same.",
        test="tests/estimators/test_early_stopping.py::test_a_warm_start_on_something_else_is_refused_and_changes_nothing",
        file="estimators/warm_start.py",
        before='    "environments_": "environments",\n',
        after="",
    ),
    Sabotage(
        broken="The weights of a table go to every method as large as they are.",
        test="tests/workflow/test_weights.py::test_only_ratios_in_a_column_of_weights_matter",
        file="tables/weights.py",
        before="    weights = weights / weights.max()  # so that no sum overflows\n"
        "    return rows, environments, weights / weights.mean(), notes\n",
        after="    return rows, environments, weights, notes\n",
    ),
    Sabotage(
        broken="Weights that are all alike are weights.",
        test="tests/workflow/test_weights.py::test_only_ratios_in_a_column_of_weights_matter",
        file="tables/weights.py",
        before="    if weights.min() == weights.max():\n",
        after="    if False:\n",
    ),
)
