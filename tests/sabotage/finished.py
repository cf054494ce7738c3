"""Nothing finished is lost, nothing is counted twice."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A cell's file is named by hash(), another in every process: cells are computed and counted again.",
        test="tests/runs/test_faults.py::test_killed_twenty_times_and_resumed_it_gives_the_same_scores",
        file="runs/cell.py",
        before="hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()",
        after='f"{hash(json.dumps(self.identity, sort_keys=True)) % 2**64:016x}"',
    ),
    Sabotage(
        broken="A lock is a file that must not exist: a killed run's cells stay claimed for ever.",
        test="tests/runs/test_faults.py::test_killed_twenty_times_and_resumed_it_gives_the_same_scores",
        file="io/files.py",
        before="os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644",
        after="os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644",
    ),
    Sabotage(
        broken="A run begins by removing the cells of an earlier one.",
        test="tests/runs/test_faults.py::test_killed_twenty_times_and_resumed_it_gives_the_same_scores",
        file="runs/runner.py",
        before="    ledger = Ledger(out)\n",
        after="""\
    ledger = Ledger(out)
    for earlier in (out / "cells").glob("*.json"):
        earlier.unlink()
""",
    ),
    Sabotage(
        broken="`compare` begins by removing the cells of an earlier run.",
        test="tests/trust/test_killed_commands.py::test_a_killed_run_goes_on_where_it_was[compare]",
        file="workflow/comparing.py",
        before="    make_own(folder)\n    with writing_outputs",
        after="""\
    make_own(folder)
    for earlier in folder.rglob("*.json"):
        earlier.unlink()
    with writing_outputs""",
    ),
    Sabotage(
        broken="`reproduce` begins by removing the cells of an earlier run.",
        test="tests/trust/test_killed_commands.py::test_a_killed_run_goes_on_where_it_was[reproduce]",
        file="workflow/reproducing.py",
        before="        summary = run(\n",
        after="""\
        for earlier in folder.rglob("*.json"):
            earlier.unlink()
        summary = run(
""",
    ),
    Sabotage(
        broken="`fit` removes the model that is there before it fits another.",
        test="tests/trust/test_killed_commands.py::test_a_killed_fit_leaves_the_old_model_or_the_new",
        file="tables/model_folder.py",
        before="    with sole_writer(folder):\n        pass\n",
        after="    with sole_writer(folder):\n        (folder / TABLE_FILE).unlink(missing_ok=True)\n",
    ),
    Sabotage(
        broken="Predictions are written in place.",
        test="tests/trust/test_killed_commands.py::test_killed_predictions_are_not_there_or_whole",
        file="io/files.py",
        before='path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")',
        after="path",
    ),
    Sabotage(
        broken="What a killed writer left is not swept.",
        test="tests/trust/test_killed_commands.py::test_killed_predictions_are_not_there_or_whole",
        file="io/files.py",
        before="        sweep_temporaries(path)\n        yield\n",
        after="        yield\n",
    ),
    Sabotage(
        broken="Nobody is told which cell is damaged.",
        test="tests/trust/test_damaged_results.py::test_damaged_cells_are_named_computed_again_and_counted_once",
        file="runs/runner.py",
        before="            self._progress.note(str(error))\n",
        after="",
    ),
    Sabotage(
        broken="The checksum of a cell is not compared with its content.",
        test="tests/trust/test_damaged_results.py::test_damaged_cells_are_named_computed_again_and_counted_once",
        file="io/checksummed_json.py",
        before="if not isinstance(content, dict) or data != _document(_content_of(data), format_, version):",
        after="if not isinstance(content, dict):",
    ),
    Sabotage(
        broken="The arrays of a cell are looked for and not compared with their checksum.",
        test="tests/trust/test_damaged_results.py::test_damaged_cells_are_named_computed_again_and_counted_once",
        file="runs/ledger.py",
        before="(not arrays.exists() or hashlib.sha256(arrays.read_bytes()).hexdigest() != digest)",
        after="not arrays.exists()",
    ),
    Sabotage(
        broken="Cells that were computed again also count as found.",
        test="tests/trust/test_damaged_results.py::test_damaged_cells_are_named_computed_again_and_counted_once",
        file="runs/runner.py",
        before="finished - self._computed, self._failures",
        after="finished, self._failures",
    ),
    Sabotage(
        broken="One damaged cell has all cells computed again.",
        test="tests/trust/test_damaged_results.py::test_damaged_cells_are_named_computed_again_and_counted_once",
        file="runs/runner.py",
        before="            self._progress.note(str(error))\n            return False\n",
        after="""\
            self._progress.note(str(error))
            for other in self._cells:
                self._ledger.path(other).unlink(missing_ok=True)
            return False
""",
    ),
    Sabotage(
        broken="A refit that fails has already noted the columns of its table.",
        test="tests/test_training.py::test_a_failed_refit_leaves_the_earlier_fit_as_it_was",
        file="estimators/base.py",
        before="validated = copy.copy(self)",
        after="validated = self",
    ),
    Sabotage(
        broken="A refit forgets the earlier fit before it begins.",
        test="tests/test_training.py::test_a_failed_refit_leaves_the_earlier_fit_as_it_was",
        file="estimators/base.py",
        before="        seed = self._draw_seed()\n",
        after="""\
        for name in fitted_attributes(self):
            delattr(self, name)
        seed = self._draw_seed()
""",
    ),
    Sabotage(
        broken="Nothing is done about OpenMP's threads after a fork.",
        test="tests/trust/test_forks.py::test_a_child_of_a_process_that_has_answered_with_two_threads_answers",
        file="training.py",
        before="    return 1 if _forked else wanted\n",
        after="    return wanted\n",
    ),
    Sabotage(
        broken="Nothing is done about OpenMP's threads before a prediction.",
        test="tests/trust/test_forks.py::test_a_server_that_loads_the_model_before_it_forks_answers",
        file="estimators/base.py",
        before="        prepare_inference()\n        return torch.from_numpy",
        after="        return torch.from_numpy",
    ),
)
