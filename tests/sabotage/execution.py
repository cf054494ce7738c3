"""What is never executed."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A model that was pickled beside the files is preferred to them.",
        test="tests/trust/test_fuzzed_models.py::test_a_pickle_in_a_model_folder_is_never_run",
        file="tables/model_folder.py",
        before='        """Read a folder that `save` wrote."""\n',
        after='''\
        """Read a folder that `save` wrote."""
        if (folder / "model.pkl").exists():
            import pickle

            return pickle.loads((folder / "model.pkl").read_bytes())
''',
    ),
    Sabotage(
        broken="Weights that torch pickled beside the files are preferred to them.",
        test="tests/trust/test_fuzzed_models.py::test_a_pickle_in_a_model_folder_is_never_run",
        file="estimators/persistence.py",
        before='    file = folder / Path(entry["file"]).name\n',
        after="""\
    if (folder / "weights.pt").exists():
        return torch.load(folder / "weights.pt", weights_only=False)
    file = folder / Path(entry["file"]).name
""",
    ),
    Sabotage(
        broken="What is no JSON is tried as a pickle.",
        test="tests/trust/test_fuzzed_models.py::test_a_pickle_in_a_model_folder_is_never_run",
        file="io/checksummed_json.py",
        before="        document = json.loads(data)\n",
        after="""\
        import pickle

        document = json.loads(data) if data.startswith(b"{") else pickle.loads(data)
""",
    ),
    Sabotage(
        broken="Weights are read by torch, and their checksum is looked at afterwards.",
        test="tests/trust/test_fuzzed_models.py::test_a_pickle_in_a_model_folder_is_never_run",
        file="estimators/persistence.py",
        before='    if hashlib.sha256(data).hexdigest() != entry["sha256"]:\n',
        after="""\
    if data.startswith(b"\\x80"):
        import pickle

        return pickle.loads(data)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
""",
    ),
    Sabotage(
        broken="Arrays of objects are read from a ledger.",
        test="tests/trust/test_fuzzed_models.py::test_a_pickle_in_a_ledger_is_never_run",
        file="runs/ledger.py",
        before="np.load(path, allow_pickle=False)",
        after="np.load(path, allow_pickle=True)",
    ),
    Sabotage(
        broken="Text is written into CSV files as it is.",
        test="tests/trust/test_formulas.py::test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself",
        file="tables/prediction.py",
        before="answers, changed = escape_formulas(answers)",
        after="_, changed = escape_formulas(answers)",
    ),
    Sabotage(
        broken="A formula after a tab is overlooked.",
        test="tests/trust/test_formulas.py::test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself",
        file="io/spreadsheet_text.py",
        before=r"[=+\-@\t\r\n]",
        after=r"[=+\-@]",
    ),
    Sabotage(
        broken="A formula that begins with a minus is taken for a number.",
        test="tests/trust/test_formulas.py::test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself",
        file="io/spreadsheet_text.py",
        before=r"[=+\-@\t\r\n]",
        after=r"[=+@\t\r\n]",
    ),
    Sabotage(
        broken="Text that has an apostrophe already gets none, so that it cannot be told from what got one.",
        test="tests/trust/test_formulas.py::test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself",
        file="io/spreadsheet_text.py",
        before="r\"^'*[=",
        after='r"^[=',
    ),
    Sabotage(
        broken="Text in Parquet files is changed, too.",
        test="tests/trust/test_formulas.py::test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself",
        file="tables/prediction.py",
        before='                if out.suffix == ".csv":\n',
        after="                if out.suffix:\n",
    ),
)
