"""Tuned rows and no model in the paper's experiments, and Ctrl-C in the commands that run them."""

from tests.sabotage.sabotage import Sabotage

TUNED = "tests/experiments/test_tuned_rows.py"
STOPPED = "tests/workflow/test_interruption.py"
FAMILIES = "tests/runs/test_results.py::test_no_model_and_tuned_rows_leave_the_tests_of_the_methods_as_they_are"

SABOTAGES = (
    Sabotage(
        broken="What is learned before a fit is learned from the left-out environments too.",
        test=f"{TUNED}::test_a_tuned_row_is_a_search_that_prepares_in_each_fold",
        file="experiments/tuned_rows.py",
        before="prepare(rows.select(fitted_on), rows.select(left_out))",
        after="tuple(prepare(rows, rows)[0].select(part) for part in (fitted_on, left_out))",
    ),
    Sabotage(
        broken="A tuned row keeps the worst settings.",
        test=f"{TUNED}::test_a_tuned_row_is_a_search_that_prepares_in_each_fold",
        file="experiments/tuned_rows.py",
        before="kept_candidates(proba, y_index, units)",
        after="kept_candidates(1 - proba, y_index, units)",
    ),
    Sabotage(
        broken="A single setting that is kept is a single network.",
        test=f"{TUNED}::test_of_few_settings_that_are_kept_each_has_several_seeds",
        file="experiments/tuned_rows.py",
        before="for fit in with_enough_seeds([make(own) for own in settings])]",
        after="for fit in [make(own) for own in settings]]",
    ),
    Sabotage(
        broken="Methods with a penalty are tuned in nothing else.",
        test=f"{TUNED}::test_what_a_method_s_own_row_may_have_is_among_the_candidates",
        file="experiments/tuned_rows.py",
        before="for weight in weights for candidate in candidates]",
        after="for weight in weights for candidate in candidates[:1]]",
    ),
    Sabotage(
        broken="Every seed of a tuned row searches by itself.",
        test=f"{TUNED}::test_settings_are_chosen_once_for_all_seeds",
        file="runs/groundwork.py",
        before="cell.seed if below is None or below.seed is None else below.seed",
        after="cell.seed",
    ),
    Sabotage(
        broken="Two training environments are left out all the same.",
        test=f"{TUNED}::test_two_training_environments_are_tuned_on_left_out_rows_and_that_is_said",
        file="model_selection.py",
        before="    if len(names) < 3:\n",
        after="    if len(names) < 2:\n",
    ),
    Sabotage(
        broken="Tuned rows are corrected together with the methods.",
        test=FAMILIES,
        file="runs/results.py",
        before="        **_compare(experiment, scores, experiment.methods, experiment.reference_method),\n",
        after="        **_compare(experiment, scores, experiment.all_methods, experiment.reference_method),\n",
    ),
    Sabotage(
        broken="A reproduction that Ctrl-C ended leaves an empty folder.",
        test=f"{STOPPED}::test_a_reproduction_that_ends_before_its_first_result_leaves_nothing",
        file="io/files.py",
        before="                place.rmdir()\n",
        after="                pass\n",
    ),
    Sabotage(
        broken="Ctrl-C in predict ends without a word.",
        test=f"{STOPPED}::test_predictions_of_a_file_are_whole_or_not_there",
        file="cli/predict.py",
        before="        saying_what_is_kept(_say, lambda: kept_predictions(table, out, file_by_file=file_by_file)),\n",
        after="",
    ),
    Sabotage(
        broken="Temporary files of processes that were ended stay.",
        test=f"{STOPPED}::test_what_processes_that_were_ended_had_begun_is_swept",
        file="tables/folder_prediction.py",
        before="                    sweep_temporaries(done)\n",
        after="                    pass\n",
    ),
)
