"""Output is whole or not there."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="The classifier is written over that of the old model.",
        test="tests/trust/test_broken_writes.py::test_a_save_over_a_model_leaves_the_old_or_the_new",
        file="tables/model_folder.py",
        before='place = folder / f"{CLASSIFIER_FOLDER}-{digest[:16]}"',
        after='place = folder / f"{CLASSIFIER_FOLDER}-{0:016x}"',
    ),
    Sabotage(
        broken="The old classifier is removed before the new model is in place.",
        test="tests/trust/test_broken_writes.py::test_a_save_over_a_model_leaves_the_old_or_the_new",
        file="tables/model_folder.py",
        before="            write_files(place, files, mode)\n",
        after="""\
            write_files(place, files, mode)
            if old := _named_classifier(folder):
                remove_files(folder / old)
""",
    ),
    Sabotage(
        broken="A new file is copied over the old one and not renamed.",
        test="tests/trust/test_broken_writes.py::test_a_save_over_a_model_leaves_the_old_or_the_new",
        file="io/files.py",
        before="        os.replace(temporary, path)\n",
        after="        path.write_bytes(temporary.read_bytes())\n        temporary.unlink()\n",
    ),
    Sabotage(
        broken="The classifier of the old model is never removed.",
        test="tests/trust/test_broken_writes.py::test_a_save_over_a_model_leaves_the_old_or_the_new",
        file="io/named_parts.py",
        before="{before, name, *begun} - {present, None}",
        after="{name, *begun} - {present, None}",
    ),
    Sabotage(
        broken="The file that makes a folder a model is written before the classifier.",
        test="tests/trust/test_broken_writes.py::test_a_first_save_leaves_no_model_or_a_whole_one",
        file="tables/model_folder.py",
        before="""\
            write_files(place, files, mode)
            (folder / CARD_PAGE).unlink(missing_ok=True)  # rather none than one of another fit
            write_atomically(folder / TABLE_FILE, encode_checksummed(content, FORMAT, FORMAT_VERSION))
""",
        after="""\
            write_atomically(folder / TABLE_FILE, encode_checksummed(content, FORMAT, FORMAT_VERSION))
            (folder / CARD_PAGE).unlink(missing_ok=True)  # rather none than one of another fit
            write_files(place, files, mode)
""",
    ),
    Sabotage(
        broken="The file that makes a folder a model is written in place.",
        test="tests/trust/test_broken_writes.py::test_a_first_save_leaves_no_model_or_a_whole_one",
        file="tables/model_folder.py",
        before="write_atomically(folder / TABLE_FILE, encode_checksummed(content, FORMAT, FORMAT_VERSION))",
        after="(folder / TABLE_FILE).write_bytes(encode_checksummed(content, FORMAT, FORMAT_VERSION))",
    ),
    Sabotage(
        broken="A folder that a killed save has left is refused by the next one.",
        test="tests/trust/test_broken_writes.py::test_a_first_save_leaves_no_model_or_a_whole_one",
        file="tables/model_folder.py",
        before="[path for path in folder.iterdir() if not _OURS.fullmatch(path.name)]",
        after="list(folder.iterdir())",
    ),
    Sabotage(
        broken="What a killed save began and never named stays for ever.",
        test="tests/trust/test_broken_writes.py::test_a_save_over_a_model_leaves_the_old_or_the_new",
        file="io/named_parts.py",
        before="{before, name, *begun} - {present, None}",
        after="{before} - {present, None}",
    ),
    Sabotage(
        broken="Whatever is named like weights is removed.",
        test="tests/estimators/test_persistence.py::test_a_save_leaves_the_files_of_others_alone",
        file="estimators/persistence.py",
        before="        (weights,) = (name for name in files if name != MANIFEST)\n",
        after="""\
        (weights,) = (name for name in files if name != MANIFEST)
        for stale in folder.glob("weights-*.safetensors"):
            stale.unlink()
""",
    ),
    Sabotage(
        broken="A manifest is believed whatever file it names.",
        test="tests/estimators/test_persistence.py::test_a_save_leaves_the_files_of_others_alone",
        file="io/named_parts.py",
        before="            if pattern.fullmatch(part):\n                remove(folder / part)\n",
        after="            remove(folder / part)\n",
    ),
    Sabotage(
        broken="A file called model.json is replaced, whoever's it is.",
        test="tests/estimators/test_persistence.py::test_a_save_leaves_the_files_of_others_alone",
        file="estimators/persistence.py",
        before="if manifest.exists() and not any(is_of_format(manifest, format_) for format_ in FORMATS):",
        after="if False:",
    ),
    Sabotage(
        broken="The folder of an old classifier goes with whatever else is in it.",
        test="tests/tables/test_model_folder.py::test_a_save_over_a_model_leaves_other_folders_alone",
        file="estimators/persistence.py",
        before="    sweep_temporaries(folder)\n",
        after="    import shutil\n\n    shutil.rmtree(folder)\n    return\n",
    ),
    Sabotage(
        broken="Whatever is named like a classifier is removed.",
        test="tests/tables/test_model_folder.py::test_a_save_over_a_model_leaves_other_folders_alone",
        file="tables/model_folder.py",
        before="            write_files(place, files, mode)\n",
        after="""\
            import shutil

            for other in folder.glob("classifier-*"):
                shutil.rmtree(other)
            write_files(place, files, mode)
""",
    ),
    Sabotage(
        broken="Any file called table.json makes a folder a model.",
        test="tests/tables/test_model_folder.py::test_a_folder_with_other_things_in_it_is_left_alone",
        file="tables/model_folder.py",
        before=" and is_of_format(folder / TABLE_FILE, FORMAT)",
        after="",
    ),
    Sabotage(
        broken="Predictions are written in place.",
        test="tests/trust/test_broken_writes.py::test_predictions_are_whole_or_not_there",
        file="io/files.py",
        before='path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")',
        after="path",
    ),
    Sabotage(
        broken="What a killed writer left is not swept.",
        test="tests/trust/test_broken_writes.py::test_predictions_are_whole_or_not_there",
        file="io/files.py",
        before="        sweep_temporaries(path)\n        yield\n",
        after="        yield\n",
    ),
    Sabotage(
        broken="Earlier predictions are removed before the new ones are there.",
        test="tests/trust/test_broken_writes.py::test_predictions_are_whole_or_not_there",
        file="tables/prediction.py",
        before="    path.parent.mkdir(parents=True, exist_ok=True)\n",
        after="    path.parent.mkdir(parents=True, exist_ok=True)\n    path.unlink(missing_ok=True)\n",
    ),
    Sabotage(
        broken="The file that says that a cell is finished is written in place.",
        test="tests/trust/test_broken_writes.py::test_a_cell_is_finished_or_not",
        file="runs/ledger.py",
        before="write_atomically(path, encode_checksummed(",
        after="path.write_bytes(encode_checksummed(",
    ),
    Sabotage(
        broken="A cell is called finished before its arrays are written.",
        test="tests/trust/test_broken_writes.py::test_a_cell_is_finished_or_not",
        file="runs/ledger.py",
        before="""\
            write_atomically(arrays_path, packed)
        else:
""",
        after="""\
            path.touch()
            write_atomically(arrays_path, packed)
        else:
""",
    ),
    Sabotage(
        broken="What a killed writer of a cell left is not swept.",
        test="tests/trust/test_broken_writes.py::test_a_cell_is_finished_or_not",
        file="runs/ledger.py",
        before="                sweep_temporaries(path)\n",
        after="",
    ),
    Sabotage(
        broken="A file is renamed without waiting for its content to reach the disk.",
        test="tests/trust/test_broken_writes.py::test_content_is_on_the_disk_before_it_takes_its_name_and_then_the_name_is",
        file="io/files.py",
        before="        _sync(temporary)\n",
        after="",
    ),
    Sabotage(
        broken="Nobody waits for the renaming itself to reach the disk.",
        test="tests/trust/test_broken_writes.py::test_content_is_on_the_disk_before_it_takes_its_name_and_then_the_name_is",
        file="io/files.py",
        before="        _sync(path.parent)  # so that the renaming itself survives a loss of power\n",
        after="        pass\n",
    ),
    Sabotage(
        broken="A cell's arrays are written without waiting for the disk.",
        test="tests/trust/test_broken_writes.py::test_content_is_on_the_disk_before_it_takes_its_name_and_then_the_name_is",
        file="runs/ledger.py",
        before="write_atomically(arrays_path, packed)",
        after="arrays_path.write_bytes(packed)",
    ),
    Sabotage(
        broken="Errors of the system keep their traceback.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_is_said_and_leaves_nothing_half_done",
        file="cli/main.py",
        before="(ValueError, OSError, ArithmeticError,",
        after="(ValueError, ArithmeticError,",
    ),
    Sabotage(
        broken="An error of the system does not say which file could not be written.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_is_said_and_leaves_nothing_half_done",
        file="io/files.py",
        before="raise OSError(error.errno, os.strerror(error.errno), str(path)) from error",
        after="raise OSError(error.errno, os.strerror(error.errno)) from error",
    ),
    Sabotage(
        broken="A write that fails leaves its temporary file.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_is_said_and_leaves_nothing_half_done",
        file="io/files.py",
        before="    except BaseException as error:\n        temporary.unlink(missing_ok=True)\n",
        after="    except BaseException as error:\n",
    ),
    Sabotage(
        broken="Lock files stay.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_is_said_and_leaves_nothing_half_done",
        file="io/files.py",
        before="        path.unlink(missing_ok=True)\n        os.close(descriptor)\n",
        after="        os.close(descriptor)\n",
    ),
    Sabotage(
        broken="A cell that cannot be written takes the finished ones with it.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_loses_no_finished_cell",
        file="runs/runner.py",
        before="        self._failures[str(cell)] = failure.cause\n",
        after="""\
        self._failures[str(cell)] = failure.cause
        for other in self._cells:
            self._ledger.path(other).unlink(missing_ok=True)
""",
    ),
    Sabotage(
        broken="The run after the full disk begins anew.",
        test="tests/trust/test_full_disks.py::test_a_full_disk_loses_no_finished_cell",
        file="runs/runner.py",
        before="    ledger = Ledger(out)\n",
        after="""\
    ledger = Ledger(out)
    for earlier in (out / "cells").glob("*.json"):
        earlier.unlink()
""",
    ),
    Sabotage(
        broken="`fit` looks at its folder only after the fit.",
        test="tests/trust/test_full_disks.py::test_a_folder_that_may_not_be_written_to_is_said_at_once[fit]",
        file="workflow/fitting.py",
        before="        prepare_folder(folder)\n",
        after="        made = False\n",
    ),
    Sabotage(
        broken="`fit` makes its folder and does not see whether it can be written to.",
        test="tests/trust/test_full_disks.py::test_a_folder_that_may_not_be_written_to_is_said_at_once[fit]",
        file="tables/model_folder.py",
        before="    with sole_writer(folder):\n        pass\n",
        after="",
    ),
    Sabotage(
        broken="Errors of the system keep their traceback.",
        test="tests/trust/test_full_disks.py::test_a_folder_that_may_not_be_written_to_is_said_at_once",
        file="cli/main.py",
        before="(ValueError, OSError, ArithmeticError,",
        after="(ValueError, ArithmeticError,",
    ),
    Sabotage(
        broken="Predictions replace the labelled rows that they learned from.",
        test="tests/workflow/test_fit_and_predict.py::test_nothing_is_written_over_what_is_read_or_into_it",
        file="tables/prediction.py",
        before="        require_apart(Path(out), labelled)\n",
        after="        pass\n",
    ),
    Sabotage(
        broken="Predictions go into the folder that is predicted as one table.",
        test="tests/workflow/test_fit_and_predict.py::test_nothing_is_written_over_what_is_read_or_into_it",
        file="tables/prediction.py",
        before="    require_apart(out, table)\n",
        after="",
    ),
    Sabotage(
        broken="Results of a comparison go into the folder that is compared.",
        test="tests/workflow/test_fit_and_predict.py::test_nothing_is_written_over_what_is_read_or_into_it",
        file="workflow/comparing.py",
        before="    require_apart(folder, table)\n",
        after="",
    ),
    Sabotage(
        broken="A prepared table goes into the folder that it is made of.",
        test="tests/workflow/test_fit_and_predict.py::test_nothing_is_written_over_what_is_read_or_into_it",
        file="workflow/preparing.py",
        before="    require_apart(Path(out), table)\n",
        after="",
    ),
    Sabotage(
        broken="A comparison takes any folder for its own.",
        test="tests/workflow/test_compare_table.py::test_a_comparison_writes_over_nothing_that_is_not_its_own",
        file="runs/own_folder.py",
        before="    if not is_own(folder):\n",
        after="    if not folder.exists():\n",
    ),
    Sabotage(
        broken="The rows of a frame are kept before the folder is looked at.",
        test="tests/workflow/test_compare_table.py::test_a_comparison_writes_over_nothing_that_is_not_its_own",
        file="workflow/comparing.py",
        before="    make_own(folder)\n    with writing_outputs",
        after="    folder.mkdir(parents=True, exist_ok=True)\n    with writing_outputs",
    ),
    Sabotage(
        broken="A file that is called as the sample of a prepared table is taken for it.",
        test="tests/tables/test_prepared.py::test_a_table_is_not_prepared_over_files_of_others",
        file="tables/prepared/preparing.py",
        before="(MAKING, FEATURES, LABELS, ENVIRONMENTS, SAMPLE) if _is_begun(out) else ()",
        after="(MAKING, FEATURES, LABELS, ENVIRONMENTS, SAMPLE)",
    ),
    Sabotage(
        broken="Predictions take the place of any file of their name.",
        test="tests/workflow/test_predict_folder.py::test_predictions_are_not_written_over_files_of_others",
        file="tables/folder_prediction.py",
        before="    if others and not (out / DONE_FOLDER).is_dir():",
        after="    if others and not out.is_dir():",
    ),
)
