"""What is reported belongs to what was read."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="Workers take whatever rows the path holds when they read it.",
        test="tests/trust/test_changed_data.py::test_workers_refuse_rows_that_are_not_those_of_the_plan",
        file="compare/running.py",
        before="    if table.fingerprint != data:\n        raise _changed(path)\n",
        after="",
    ),
    Sabotage(
        broken="The scores are of the table as it is when the run begins, the folds of the table as it was.",
        test="tests/trust/test_changed_data.py::test_a_table_that_changes_before_the_run_is_refused",
        file="compare/running.py",
        before="    if open_table(path, reading).fingerprint != data:\n        raise _changed(path)\n    return data\n",
        after="    return open_table(path).fingerprint\n",
    ),
    Sabotage(
        broken="Nobody looks whether a table was written while it was read.",
        test="tests/trust/test_changed_data.py::test_the_fingerprint_of_a_table_is_of_the_bytes_that_its_rows_came_from",
        file="tables/training.py",
        before="    file.require_unchanged()\n",
        after="",
    ),
    Sabotage(
        broken="The card names the bytes that the file has when the model is saved.",
        test="tests/trust/test_changed_data.py::test_the_card_names_the_bytes_that_a_model_learned_from",
        file="workflow/fitting.py",
        before="    card = describe(data, ",
        after="""\
    import dataclasses

    data = dataclasses.replace(data, fingerprint=open_table(table).fingerprint)
    card = describe(data, """,
    ),
    Sabotage(
        broken="A report takes the scores that are there, of whatever table.",
        test="tests/trust/test_changed_data.py::test_a_report_does_not_pair_one_table_with_the_scores_of_another",
        file="compare/record.py",
        before='if results.run["data"] != self.data:',
        after="if False:",
    ),
    Sabotage(
        broken="Content is compared once, and whatever happens to the files later goes unseen.",
        test="tests/trust/test_changed_data.py::test_files_of_an_experiment_that_change_while_it_runs_give_no_scores",
        file="experiments/data_files.py",
        before="if self.traces(data_dir) != _verified_traces(self, data_dir, fingerprint, when):",
        after="if not _verified_traces(self, data_dir, fingerprint, when):",
    ),
    Sabotage(
        broken="Only the content as it is now is compared, not what it was in between.",
        test="tests/trust/test_changed_data.py::test_files_of_an_experiment_that_change_while_it_runs_give_no_scores",
        file="experiments/data_files.py",
        before="if self.traces(data_dir) != _verified_traces(self, data_dir, fingerprint, when):",
        after="if self.fingerprint(data_dir) != fingerprint:",
    ),
    Sabotage(
        broken="A task does not look at its files again when it has its result.",
        test="tests/experiments/test_data_experiments.py::test_a_file_that_changes_during_a_cell_gives_no_result",
        file="experiments/data_task.py",
        before="""\
        result = yield from self._compute(cell, cell.data_dir)
        self.files.require_unchanged(cell.data_dir, cell.data)
""",
        after="        result = yield from self._compute(cell, cell.data_dir)\n",
    ),
    Sabotage(
        broken="Figures are drawn from whatever lies in the data folder.",
        test="tests/experiments/test_data_experiments.py::"
        "test_a_figure_is_not_drawn_from_other_data_than_its_results_are_of",
        file="experiments/data_task.py",
        before='data_dir, data = Path(results.run["data_dir"]), results.run["data"]\n',
        after='data_dir = Path(results.run["data_dir"])\n        data = self.files.fingerprint(data_dir)\n',
    ),
    Sabotage(
        broken="Rows that had a part in an adaptation may change before they are predicted.",
        test="tests/workflow/test_predict_folder.py::test_an_adaptation_is_not_to_rows_that_were_changed",
        file="tables/folder_prediction.py",
        before="    if asked.adapt:  # whose rows have a part in the predictions of every file\n",
        after="    if asked.level < 0:\n",
    ),
    Sabotage(
        broken="Rows on disk are checked before a fit and not after it.",
        test="tests/tables/test_prepared.py::test_rows_that_change_during_a_fit_are_not_fitted",
        file="workflow/fitting_prepared.py",
        before="    prepared.require_unchanged()  # since",
        after="    # since",
    ),
    Sabotage(
        broken="Names of files run into each other in a fingerprint.",
        test="tests/tables/test_readers.py::test_a_folder_of_csv_files_names_the_file_of_each_row",
        file="tables/files.py",
        before='name.encode() + b"\\0")',
        after="name.encode())",
    ),
)
