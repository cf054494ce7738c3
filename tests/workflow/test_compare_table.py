"""`compare_table` is the command, to the bit, on whatever holds the rows; its result shows itself."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eber
from eber.runs.ledger import Ledger
from eber.runs.own_folder import OUTPUTS, make_own
from tests.command_line import eber as command
from tests.one_process import one_process  # noqa: F401
from tests.workflow.shown import assert_fits_80_columns, assert_harmless_html

NAMES: dict[str, Any] = {"label": "sepsis", "environment": "hospital", "quick": True}
METHODS = ["EBER", "Logistic regression"]

pytestmark = [
    pytest.mark.usefixtures("one_process"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]


@pytest.fixture(scope="module")
def by_command(parquet: Path) -> Path:
    """The output folder of the command, which has worker processes."""
    out = parquet.parent / "out"
    options = ["--label", "sepsis", "--environment", "hospital", "--quick", "--methods", ",".join(METHODS)]
    with pytest.MonkeyPatch.context() as patch:
        assert command(patch, "compare", parquet, *options, "--out", out) == 0
    return out


@pytest.fixture
def compared(by_command: Path) -> eber.TableComparison:
    """What the folder holds."""
    found = eber.read_results(by_command)
    assert isinstance(found, eber.TableComparison)
    return found


@pytest.mark.parametrize("name", ["cells.csv", "report.html", "table.parquet", "figures/ours.png"])
def test_a_comparison_writes_over_nothing_that_is_not_its_own(
    name: str, hospitals: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is called as our scores are, say, and a comparison into the folder that it lies in."""
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    hospitals.to_csv(name, index=False)
    before = Path(name).read_bytes()
    given: Any = name if name == "cells.csv" else hospitals
    with pytest.raises(ValueError, match="is there already, in a folder that no run has written into"):
        eber.compare_table(given, **NAMES, methods=METHODS, out=".", jobs=1)
    assert Path(name).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name.split("/")[0]]


def test_all_that_a_comparison_writes_is_known_to_be_its_own(by_command: Path) -> None:
    written = {path.name for path in by_command.iterdir() if not path.name.startswith(".")}
    assert written <= set(OUTPUTS)
    assert len(written) >= 7
    make_own(by_command)


@pytest.mark.parametrize("kind", [str, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame])
def test_the_scores_are_the_command_s_to_the_bit(
    kind: Any, by_command: Path, parquet: Path, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    table = str(parquet) if kind is str else kind(hospitals)
    comparison = eber.compare_table(table, **NAMES, methods=METHODS, out=tmp_path, jobs=1)
    ours, theirs = (pd.read_csv(folder / "cells.csv") for folder in (tmp_path, by_command))
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    assert comparison.exit_status == 0
    first = repr(str(parquet)) if kind is str else "table"
    call = f"eber.compare_table({first}, label='sepsis', environment='hospital', "
    assert json.loads((tmp_path / "run.json").read_text())["content"]["command"] == (
        f"{call}methods=['EBER', 'Logistic regression'], quick=True)"
    )
    assert comparison.page.exists()
    assert (tmp_path / "table.parquet").exists() == (kind is not str), "workers read the rows of a frame from there"


def test_the_result_holds_what_the_files_do(compared: eber.TableComparison) -> None:
    cells = pd.read_csv(compared.folder / "cells.csv")
    main = cells[cells["variant"] == "main"]
    for line in compared.scores.itertuples():
        rows = main[(main["setting"] == line.held_out) & (main["method"] == line.method) & (main["metric"] == "nll")]
        assert line.nll == rows["value"].mean()
    assert len(compared.scores) == 6
    assert len(compared.adapted_scores) == 3
    ranking = compared.ranking
    assert ranking["nll"].is_monotonic_increasing
    assert np.isnan(ranking["behind"].iloc[0])
    assert ranking["behind"].iloc[1] == pytest.approx(ranking["nll"].iloc[1] - ranking["nll"].iloc[0])
    assert compared.recommended in METHODS
    assert compared.recommended in compared.verdict
    assert any("'patient_id' is not used" in note for note in compared.notes)


def test_a_comparison_shows_itself(compared: eber.TableComparison) -> None:
    text, html = assert_fits_80_columns(compared), assert_harmless_html(compared)
    for words in ("Predicting sepsis of hospitals.parquet", "Logistic regression", "EBER, adapted", "95 % interval"):
        assert words in text
        assert words in html
    assert str(compared.page)[-20:] in text.replace("\n", "")


def test_what_is_advised_can_be_fitted_by_the_command_that_is_given(
    parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    methods = ["No model", "Logistic regression", "Random forest"]
    said: dict[str, Any] = {"missing": ["-999", "?"], "numeric": ["age"], "epochs": 7}
    comparison = eber.compare_table(parquet, **NAMES, methods=methods, out="out", jobs=1, **said)
    words = shlex.split(comparison.fit_command)
    for option in ("--missing -999 --missing", "--numeric age", "--epochs 7"):
        assert option in comparison.fit_command, "fitted as it was compared"
    assert words[:2] == ["eber", "fit"]
    assert words[words.index("--method") + 1] == comparison.recommended
    assert comparison.fit_command in repr(comparison).replace("\n", " ")
    assert comparison.fit_command in html.unescape(comparison.page.read_text())

    def none_is_fitted(*_: Any) -> None:
        raise AssertionError("the comparison has these scores")

    monkeypatch.setattr("eber.compare.all_folds.evaluate_fold", none_is_fitted)
    assert command(monkeypatch, *words[1:]) == 0
    model = eber.load_model("model")
    scores = comparison.scores[comparison.scores["method"] == comparison.recommended].set_index("held_out")["nll"]
    assert model.held_out_scores.set_index("held_out")["nll"].to_dict() == scores.to_dict()
    options = ["--label", "sepsis", "--environment", "hospital", "--quick", "--methods", ",".join(methods)]
    assert command(monkeypatch, "compare", parquet, *options, "--out", "out", "--fit", "--out-model", "second") == 0
    assert eber.load_model("second").card["method"] == comparison.recommended


def test_a_frame_that_is_compared_again_is_not_computed_again(hospitals: pd.DataFrame, tmp_path: Path) -> None:
    first = eber.compare_table(hospitals, **NAMES, methods="logistic regression", out=tmp_path)
    assert first.run is not None
    assert first.run.computed == 3
    written = (tmp_path / "table.parquet").stat().st_mtime_ns
    again = eber.compare_table(hospitals.copy(), **NAMES, methods="logistic regression", out=tmp_path)
    assert again.run is not None
    assert (again.run.computed, again.run.reused) == (0, 3)
    assert (tmp_path / "table.parquet").stat().st_mtime_ns == written
    other = eber.compare_table(hospitals.iloc[::-1], **NAMES, methods="logistic regression", out=tmp_path)
    assert other.run is not None
    assert other.run.computed == 3, "other rows are other results"


def test_output_goes_to_results_by_the_name_of_the_file_or_table(
    parquet: Path, hospitals: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for table, name in ((parquet, "hospitals"), (hospitals, "table")):
        for quick, folder in ((True, f"{name}-quick"), (False, name)):
            comparison = eber.compare_table(table, **{**NAMES, "quick": quick}, methods="logistic regression")
            assert comparison.folder == Path("results") / folder
            page = comparison.page.read_text()
            for shown in (repr(comparison), comparison._repr_html_(), page):
                assert ("A first look (quick): " in shown) == quick, "a quick look says what it is on top"


def test_what_is_finished_is_not_reckoned_with_again(
    hospitals: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {**NAMES, "out": tmp_path, "progress": True}
    eber.compare_table(hospitals, **options, methods="logistic regression")
    first = capsys.readouterr().err
    assert "finished" not in first.split("This takes")[0]
    assert "Dunmore held out" in first
    eber.compare_table(hospitals, **options, methods=["logistic regression", "gradient boosting"])
    assert "= 6 results, of which 3 are finished." in capsys.readouterr().err
    eber.compare_table(hospitals, **options, methods="logistic regression")
    assert "= 3 results, of which 3 are finished." in capsys.readouterr().err


@pytest.mark.parametrize("there", [False, True])
def test_ctrl_c_during_the_estimate_leaves_nothing_and_says_so(
    hospitals: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: bool,
) -> None:
    def stop(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("eber.workflow.comparing.expect", stop)
    folder = tmp_path / "out"
    if there:
        folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        eber.compare_table(hospitals, **NAMES, out=folder, progress=True)
    assert folder.exists() == there
    assert not list(tmp_path.rglob("out/*"))
    said = "is as it was" if there else "nothing was written"
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_nothing_is_printed_unless_it_is_asked_for(
    hospitals: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for progress in (False, True):
        out = tmp_path / str(progress)
        eber.compare_table(hospitals, **NAMES, methods="logistic regression", out=out, progress=progress)
        said = capsys.readouterr()
        assert said.out == ""
        assert ("Classes of 'sepsis' with their rows: " in said.err) == progress
        assert ("This takes about" in said.err) == progress


def test_fits_that_fail_are_named_and_the_others_are_there(
    hospitals: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Ledger.write

    def fails(self: Ledger, cell: Any, *rest: Any) -> None:
        if cell.setting == "Dunmore":
            raise ValueError("the roof fell in")
        write(self, cell, *rest)

    monkeypatch.setattr(Ledger, "write", fails)
    comparison = eber.compare_table(hospitals, **NAMES, methods="logistic regression", out=tmp_path)
    assert comparison.exit_status == 1
    assert "the roof fell in" in assert_fits_80_columns(comparison).replace("\n", " ")
    assert len(comparison.scores) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"label": "sepsys"}, "DataFrame has no column 'sepsys'. Did you mean 'sepsis'"),
        ({"environment": "country"}, "needs at least two"),
        ({"methods": "magic"}, "There is no method 'magic'"),
        ({"metric": "magic"}, "no metric"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1; 0 is not"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1; 0 is not"),
        ({"jobs": True}, "jobs must be a whole number"),
        ({"features": ["nothing"]}, "no column 'nothing'"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(
    arguments: dict[str, Any], says: str, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        eber.compare_table(hospitals, **{**NAMES, **arguments}, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
