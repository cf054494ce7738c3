"""A few labels of a new environment, how far off a probability may be there, and when adapting is worth it."""

from tests.sabotage.sabotage import Sabotage

TABLES, COMPARE = "tests/tables/test_new_environment.py", "tests/compare/test_few_labels.py"

SABOTAGES = (
    Sabotage(
        broken="What labels have taught is not used for the predictions.",
        test=f"{TABLES}::test_labelled_rows_recalibrate_the_predictions",
        file="tables/new_environment.py",
        before="    return calibration.apply(proba, deviations)\n",
        after="    return proba\n",
    ),
    Sabotage(
        broken="Labels are taken in the order of the table's classes shifted by one.",
        test=f"{TABLES}::test_every_method_that_fit_takes_learns_from_labels",
        file="tables/labelled_rows.py",
        before="            y_index.append(index)\n",
        after="            y_index.append((index + 1) % len(model.classifier.classes_))\n",
    ),
    Sabotage(
        broken="A label that the model does not know is left out in silence.",
        test=f"{TABLES}::test_what_cannot_be_learned_from_is_refused_by_name",
        file="tables/labelled_rows.py",
        before="        rows = [i for i, label in enumerate(labels) if label is not None]\n",
        after="        rows = [i for i, label in enumerate(labels) if label and index_of(label) is not None]\n",
    ),
    Sabotage(
        broken="Rows without a label are not mentioned.",
        test=f"{TABLES}::test_labels_may_stand_in_some_rows_of_the_table_itself",
        file="tables/labelled_rows.py",
        before="        unlabelled += [n_rows + i + 1 for i, label in enumerate(labels) if label is None]\n",
        after="        unlabelled += []\n",
    ),
    Sabotage(
        broken="How environments differ is learned from rows that the fit has seen.",
        test=f"{TABLES}::test_fit_keeps_how_left_out_environments_differ",
        file="workflow/fitting.py",
        before='        proba[held], label[held] = result.arrays["proba"], result.arrays["label"]\n',
        after='        proba[held], label[held] = result.arrays["proba"] ** 2, result.arrays["label"]\n',
    ),
    Sabotage(
        broken="A model without a measured spread has columns low and high all the same.",
        test=f"{TABLES}::test_a_model_that_knows_no_spread_uses_the_fixed_one_and_says_so",
        file="tuning/calibration.py",
        before="        return self.n_environments >= MIN_ENVIRONMENTS\n",
        after="        return True\n",
    ),
    Sabotage(
        broken="Two environments are enough to say how a new one may differ.",
        test="tests/tuning/test_recalibration.py::test_with_too_few_environments_spreads_are_the_fixed_ones",
        file="tuning/calibration.py",
        before="    if len(groups) < MIN_ENVIRONMENTS:\n",
        after="    if not groups:\n",
    ),
    Sabotage(
        broken="Quiet environments are taken to differ as much as where nothing is known.",
        test="tests/tuning/test_recalibration.py::test_where_environments_are_alike_labels_move_less_than_where_nothing_is_known",
        file="tuning/calibration.py",
        before="TYPICAL_ENVIRONMENTS = 0.15, 0.2, 1.0\n",
        after="TYPICAL_ENVIRONMENTS = 0.3, 0.5, 1.0\n",
    ),
    Sabotage(
        broken="Intervals stay as wide as before any label.",
        test=f"{TABLES}::test_low_and_high_hold_the_prediction_and_narrow_with_labels",
        file="tuning/calibration.py",
        before="        variance = _quadratic(gradient, self.covariance)\n",
        after="        variance = _quadratic(gradient, self.covariance if self.before is None else self.before)\n",
    ),
    Sabotage(
        broken="Weights of environments have no prior worth the name.",
        test=f"{TABLES}::test_environments_are_listened_to_where_that_clearly_helps",
        file="tuning/calibration.py",
        before="ENVIRONMENT_SD**2 * np.eye(m)]]",
        after="np.eye(m)]]",
    ),
    Sabotage(
        broken="The environments' own predictions are used whether that helps or not.",
        test=f"{TABLES}::test_environments_are_not_listened_to_where_it_does_not",
        file="tuning/few_labels.py",
        before="        return self.mean > self.standard_error\n",
        after="        return self.mean > -1e9\n",
    ),
    Sabotage(
        broken="A left-out environment is judged with the strength that it has chosen itself.",
        test="tests/tuning/test_adaptation_record.py"
        "::test_the_record_is_what_adapting_did_in_environments_that_the_fit_had_not_seen",
        file="tuning/adaptation_record.py",
        before="    others = after.sum(1, keepdims=True) - after\n",
        after="    others = after\n",
    ),
    Sabotage(
        broken="The strength of the record is not looked at.",
        test="tests/tuning/test_adaptation_record.py::test_the_mixture_is_shrunk_by_the_strength_of_the_record",
        file="estimators/eber_adapting.py",
        before="            adapted._shrink_mixture(record.strength)\n",
        after="            adapted._shrink_mixture(1.0)\n",
    ),
    Sabotage(
        broken="A held-out environment has a part in how environments are said to differ when it is judged.",
        test=f"{COMPARE}::test_an_environment_is_judged_by_how_the_others_differ",
        file="compare/few_labels.py",
        before="calibration({k: v for k, v in sampled.items() if k != name}) for name in held}",
        after="calibration(sampled) for name in held}",
    ),
    Sabotage(
        broken="Rows whose labels were learned from are scored as well.",
        test=f"{COMPARE}::test_labels_are_learned_from_some_rows_and_judged_by_the_others",
        file="compare/few_labels.py",
        before="        seen, rest = order[:n_labels], order[n_labels:]\n",
        after="        seen, rest = order[:n_labels], order\n",
    ),
    Sabotage(
        broken="The interval of the check is taken as if there were ten times as many environments.",
        test=f"{COMPARE}::test_the_check_says_how_wide_it_is_itself",
        file="compare/few_labels.py",
        before="stats.binomtest(inside, len(checks))",
        after="stats.binomtest(10 * inside, 10 * len(checks))",
    ),
)
