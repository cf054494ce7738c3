"""Work that is computed elsewhere, and tables that are large."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A block of an executor is noted under the cells of another.",
        test="tests/runs/test_backends.py::test_executors_give_the_same_scores",
        file="runs/backends/executors.py",
        before="        self._blocks[future] = tasks\n",
        after="        self._blocks[future] = next(iter(self._blocks.values()), tasks)\n",
    ),
    Sabotage(
        broken="Threads are taken for processes.",
        test="tests/runs/test_backends.py::test_what_cannot_compute_cells_is_refused_before_anything_is_computed",
        file="runs/backends/executors.py",
        before="    if isinstance(executor, ThreadPoolExecutor):\n",
        after="    if executor is ThreadPoolExecutor:\n",
    ),
    Sabotage(
        broken="Data that were sent are not looked at where they arrive.",
        test="tests/runs/test_backends.py::test_a_table_that_was_sent_is_checked_where_it_arrives",
        file="runs/travelling.py",
        before="        if _fingerprint_of(place, fingerprint) != expected:\n",
        after="        if not _fingerprint_of(place, fingerprint):\n",
    ),
    Sabotage(
        broken="Cells of a node that died are not computed elsewhere.",
        test="tests/runs/test_ray.py::test_a_run_survives_the_death_of_a_node",
        file="runs/backends/ray.py",
        before="max_retries=ATTEMPTS - 1",
        after="max_retries=0",
    ),
    Sabotage(
        broken="A file whose worker died is not predicted by another.",
        test="tests/runs/test_ray.py::test_predictions_survive_a_killed_worker_to_the_bit",
        file="runs/backends/ray.py",
        before="max_retries=ATTEMPTS - 1",
        after="max_retries=0",
    ),
    Sabotage(
        broken="Columns to be kept are forgotten where a folder is predicted.",
        test="tests/workflow/test_predict_folder.py::test_each_file_is_predicted_as_if_alone",
        file="tables/folder_prediction.py",
        before="predict_file(self.model, task, out, self.asked)",
        after="predict_file(self.model, task, out)",
    ),
    Sabotage(
        broken="A file counts as done whatever it was made of.",
        test="tests/workflow/test_predict_folder.py::test_what_is_done_is_not_done_again_unless_it_changed",
        file="tables/folder_prediction.py",
        before='if known and known["made_of"] == made_of and out.is_file()',
        after="if known and out.is_file()",
    ),
    Sabotage(
        broken="A damaged file of predictions counts as done.",
        test="tests/workflow/test_predict_folder.py::test_what_is_done_is_not_done_again_unless_it_changed",
        file="tables/folder_prediction.py",
        before=' and digest_of(out) == known["output"]:',
        after=":",
    ),
    Sabotage(
        broken="Every section of a large file is its first.",
        test="tests/workflow/test_predict_sections.py::test_a_large_file_in_sections_is_the_file_predicted_alone",
        file="tables/section_prediction.py",
        before="rows=replace(file.rows, groups=section.groups)",
        after="rows=replace(file.rows, groups=(0, section.groups[1] - section.groups[0]))",
    ),
    Sabotage(
        broken="A section that was done is done again.",
        test="tests/workflow/test_predict_sections.py::test_sections_that_are_done_are_not_done_again",
        file="tables/section_prediction.py",
        before='    if known and known["made_of"] == section.made_of and',
        after='    if known and known["made_of"] != section.made_of and',
    ),
    Sabotage(
        broken="A damaged section is joined as it is.",
        test="tests/workflow/test_predict_sections.py::test_sections_of_other_rows_are_done_again",
        file="tables/section_prediction.py",
        before=' and digest_of(out) == known["output"]:',
        after=":",
    ),
    Sabotage(
        broken="The end of a fit converts all rows to float64 at once.",
        test="tests/estimators/test_memory.py::test_a_fit_needs_little_more_than_its_table",
        file="estimators/eber_fitting.py",
        before="inference.mean_p_e_given_x(module, data.x, data.weight)",
        after="inference.mean_p_e_given_x(module, data.x.double(), data.weight)",
    ),
)
