"""Fits that serve several held-out environments, results that are built on others, and how long it takes."""

from tests.sabotage.sabotage import Sabotage

BLOCKS = "tests/compare/test_blocks.py"
SHARED = "tests/compare/test_shared_fits.py"
GROUNDWORK = "tests/runs/test_groundwork.py"
PREVIEW = "tests/compare/test_preview.py"

SABOTAGES = (
    Sabotage(
        broken="Two environments are never left out together.",
        test=f"{BLOCKS}::test_every_two_environments_are_left_out_together_once",
        file="compare/blocks.py",
        before="for difference in (0, 1, 3, 9)",
        after="for difference in (0, 1, 3, 8)",
    ),
    Sabotage(
        broken="A block is used though nothing of a class is left without it.",
        test=f"{BLOCKS}::test_a_block_leaves_two_environments_and_every_class",
        file="compare/blocks.py",
        before=" and len(np.unique(y[left])) == len(np.unique(y))",
        after="",
    ),
    Sabotage(
        broken="Shared fits have seen one of the environments that they judge for.",
        test=f"{SHARED}::test_a_held_out_environment_has_no_part_in_what_is_chosen_for_it",
        file="compare/shared_fits.py",
        before="    left_out = np.isin(table.environments, block)\n    fitted_on, rows = np.flatnonzero(~left_out), ",
        after="    left_out = np.isin(table.environments, block)\n    fitted_on, rows = np.arange(len(left_out)), ",
    ),
    Sabotage(
        broken="A fold is judged by the first of its blocks alone.",
        test=f"{SHARED}::test_settings_are_chosen_as_fits_without_each_pair_say",
        file="compare/all_folds.py",
        before="for block in blocks}",
        after="for block in blocks[:1]}",
    ),
    Sabotage(
        broken="Rows of a block are preprocessed by what was learned from all rows.",
        test=f"{SHARED}::test_no_fit_has_seen_what_it_judges",
        file="compare/shared_fits.py",
        before="    preprocessing = Preprocessing.fit(table.columns.select(fitted_on), table.schema)\n",
        after="    preprocessing = Preprocessing.fit(table.columns, table.schema)\n",
    ),
    Sabotage(
        broken="A row that several blocks leave out is judged by the last of them, and counted in each.",
        test=f"{SHARED}::test_each_row_is_judged_once_where_several_blocks_leave_it_out",
        file="compare/shared_fits.py",
        before="        known |= left_out\n",
        after="",
    ),
    Sabotage(
        broken="After adapting, what is said with the weakest strength is kept for all.",
        test=f"{SHARED}::test_eber_knows_what_adapting_did_in_environments_that_were_left_out",
        file="tuning/adaptation_record.py",
        before="adaptation.shrunk(strength)",
        after="adaptation.shrunk(STRENGTHS[0])",
    ),
    Sabotage(
        broken="The time of shared fits is counted for every environment that they serve.",
        test=f"{SHARED}::test_a_shared_fit_s_time_is_shared",
        file="compare/shared_fits.py",
        before="_seconds(outcomes) / len(folds)",
        after="_seconds(outcomes)",
    ),
    Sabotage(
        broken="Results are not handed what they are built on.",
        test=f"{GROUNDWORK}::test_results_are_handed_what_they_are_built_on_which_is_computed_once",
        file="runs/runner.py",
        before="        return replace(cell, parts=parts)\n",
        after="        return cell\n",
    ),
    Sabotage(
        broken="What finished results were built on is computed again when it is gone.",
        test=f"{GROUNDWORK}::test_what_is_below_is_computed_again_only_where_a_result_needs_it",
        file="runs/groundwork.py",
        before="            finished.add(cell.key)\n            continue\n",
        after="            finished.add(cell.key)\n",
    ),
    Sabotage(
        broken="A result does not say why what it is built on failed.",
        test=f"{GROUNDWORK}::test_results_fail_for_the_reason_of_what_they_are_built_on",
        file="runs/runner.py",
        before="            raise _PartFailedError(self._broken[part.key])\n",
        after='            raise _PartFailedError(Failure("something failed"))\n',
    ),
    Sabotage(
        broken="A result does not wait for what another run is computing.",
        test=f"{GROUNDWORK}::test_a_result_waits_for_what_another_run_is_at",
        file="runs/runner.py",
        before="at_work = [*backend.running, *self._claimed_elsewhere]",
        after="at_work = [*backend.running]",
    ),
    Sabotage(
        broken="What is there once in every fit is multiplied like its passes.",
        test=f"{PREVIEW}::test_a_short_fit_is_scaled_by_what_a_whole_one_has_to_do",
        file="compare/timing.py",
        before="    of_a_step = max(whole - brief, 0.0) / ((LONGER - 1) * passes * steps_a_pass)\n",
        after="    of_a_step = brief / (passes * steps_a_pass)\n",
    ),
    Sabotage(
        broken="Shared fits are left out of the preview.",
        test=f"{PREVIEW}::test_time_is_that_of_blocks_and_results_by_jobs",
        file="compare/preview.py",
        before=" + of.blocks * of_blocks[method]",
        after="",
    ),
    Sabotage(
        broken="The time left does not learn how far off guesses were.",
        test="tests/runs/test_schedule.py::test_a_guess_stands_in_for_a_method_s_time_times_how_far_off_guesses_were",
        file="runs/schedule.py",
        before="guess * self._taken / self._guessed",
        after="guess",
    ),
)
