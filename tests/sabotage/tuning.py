"""Regularisation, tuning by leaving environments out, pools, a few labels."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="What the record says about adapting is not looked at.",
        test="tests/tuning/test_adaptation_record.py::test_it_adapts_where_that_helped_or_where_it_is_told_to",
        file="estimators/eber_adapting.py",
        before="if record is not None and not record.helped and not force:",
        after="if record is None and not force:",
    ),
    Sabotage(
        broken="The prior of slope and intercepts is centred at zero, whatever it was.",
        test="tests/tuning/test_recalibration.py::test_the_posterior_is_the_mode_that_a_general_solver_finds",
        file="tuning/calibration.py",
        before="gradient - precision @ (theta - mean))",
        after="gradient - precision @ theta)",
    ),
    Sabotage(
        broken="Intervals leave out how environments differ in their intercepts.",
        test="tests/tuning/test_recalibration.py::test_intervals_hold_new_environments_as_often_as_stated",
        file="tuning/calibration.py",
        before="    covariance = np.diag([slope_variance] + [intercept_variance] * K)\n",
        after="    covariance = np.diag([slope_variance] + [intercept_variance / 9] * K)\n",
    ),
    Sabotage(
        broken="A tree sends values at its threshold to the right.",
        test="tests/tuning/test_saving.py::test_a_saved_pool_answers_as_before",
        file="tuning/plain_models.py",
        before="x <= self.thresholds[node]",
        after="x < self.thresholds[node] - 0.1",
    ),
    Sabotage(
        broken="A saved pool may set attributes that no fit learns; they are dropped in silence.",
        test="tests/tuning/test_saving.py::test_a_forged_manifest_is_refused",
        file="tuning/persistence.py",
        before='            raise ValueError(f"{key!r} is nothing that a fit learns")\n',
        after="            continue\n",
    ),
    Sabotage(
        broken="Weights of a pool are not shrunk to equal ones.",
        test="tests/tuning/test_pool.py::test_the_weights_are_the_best_of_all_as_a_general_solver_finds_them",
        file="tuning/pool.py",
        before="        updated = responsible.sum(0) + equal_environments / J\n",
        after="        updated = responsible.sum(0)\n",
    ),
    Sabotage(
        broken="Settings are judged on the rows that they were fitted on.",
        test="tests/tuning/test_search.py::test_no_fit_sees_the_environment_that_it_is_judged_in",
        file="tuning/left_out.py",
        before="for rows, _ in folds]",
        after="for rows in (np.arange(len(table.y)),) * len(folds)]",
    ),
    Sabotage(
        broken="Settings are averaged however much worse the average is.",
        test="tests/tuning/test_search.py::test_the_average_is_the_widest_within_one_standard_error_as_plain_loops_find_it",
        file="tuning/left_out.py",
        before="    return order[: widest + 1]\n",
        after="    return order[: widest + 2]\n",
    ),
    Sabotage(
        broken="Every member of an average draws its seed from a generator of its own: all are one fit.",
        test="tests/estimators/test_members.py::test_the_first_member_is_the_plain_fit_and_the_answer_is_the_mean",
        file="estimators/members.py",
        before="random_state=shared) for _ in",
        after="random_state=classifier.random_state) for _ in",
    ),
    Sabotage(
        broken="What members disagree about is counted as a difference between environments.",
        test="tests/estimators/test_members.py::test_uncertainty_splits_into_within_and_between_environments_and_between_members",
        file="method/inference.py",
        before='    between = np.mean([split["between_environments"] for split in splits], 0)\n',
        after="    between = total - within\n",
    ),
    Sabotage(
        broken="All members of a saved average get the weights of the first.",
        test="tests/estimators/test_members.py::test_a_saved_average_answers_as_before",
        file="estimators/persistence.py",
        before="prefixes = [_prefix(i) for i in range(len(singles))]",
        after="prefixes = [_prefix(0) for _ in singles]",
    ),
    Sabotage(
        broken="Weight decay shrinks biases, too.",
        test="tests/test_weight_decay.py::test_it_is_adamw_on_weights_and_adam_on_biases",
        file="nn/stack.py",
        before='            if name.rpartition(".")[2] != "bias":\n',
        after="            if name:\n",
    ),
    Sabotage(
        broken="Weight decay is not scaled by the learning rate.",
        test="tests/test_weight_decay.py::test_it_is_adamw_on_weights_and_adam_on_biases",
        file="training.py",
        before="self._kept = 1 - settings.learning_rate * self.stack.on_weights(decays)",
        after="self._kept = 1 - 0.001 * self.stack.on_weights(decays)",
    ),
)
