"""`reproduce` is the command, to the bit, and its result shows itself; the package is quick to import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import eber
from tests.command_line import eber as command
from tests.one_process import one_process  # noqa: F401
from tests.workflow.shown import assert_fits_80_columns, assert_harmless_html

SMALL = {"n": 40, "epochs": 2, "m_test": 6, "m_validation": 6}
METHODS = ["Bayes-x", "EBER", "ERM"]

pytestmark = [
    pytest.mark.usefixtures("one_process"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> eber.Reproduction:
    """Two seeds of the main simulation, small enough to be quick."""
    out = tmp_path_factory.mktemp("reproduce") / "out"
    with pytest.MonkeyPatch.context() as patch:
        from eber.runs.backends import choice
        from tests.one_process import OneProcess

        patch.setattr(choice, "WorkerPool", OneProcess)
        return eber.reproduce("parametric", seeds=2, methods=METHODS, parameters=SMALL, out=out)


def test_the_scores_are_the_command_s_to_the_bit(
    reproduced: eber.Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [text for key, value in SMALL.items() for text in ("--set", f"{key}={value}")]
    options = ["--seeds", 2, "--methods", ",".join(METHODS), *small, "--out", tmp_path]
    assert command(monkeypatch, "reproduce", "parametric", *options) == 0
    assert (tmp_path / "cells.csv").read_bytes() == (reproduced.folder / "cells.csv").read_bytes()


def test_the_tables_hold_our_figures_and_the_paper_s(reproduced: eber.Reproduction) -> None:
    table = reproduced.tables["baseline"]
    cells = reproduced.results.cells
    rows = cells[(cells["method"] == "EBER") & (cells["metric"] == "nll") & (cells["variant"] == "main")]
    assert table.loc["EBER", ("nll", "mean")] == rows["value"].mean()
    assert table.loc["EBER", ("nll", "paper mean")] == 0.319
    assert "ERM" in reproduced.verdicts["baseline"]
    assert reproduced.exit_status == 0


def test_a_reproduction_shows_itself_and_can_be_read_again(reproduced: eber.Reproduction) -> None:
    for result in (reproduced, eber.read_results(reproduced.folder)):
        assert isinstance(result, eber.Reproduction)
        text, html = assert_fits_80_columns(result), assert_harmless_html(result)
        for words in ("Bayes-x", "EBER", "0.319", "report.html"):
            assert words in text.replace("\n", "")
            assert words in html


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "nothing"}, "There is no experiment 'nothing'"),
        ({"name": "motivating", "all_holdouts": True}, "no environment to hold out in turn"),
        ({"name": "parametric", "settings": "m=12", "sensitivity": True}, "not both"),
        ({"name": "parametric", "parameters": {"roh": 1}}, "Did you mean 'rho'"),
        ({"name": "parametric", "methods": "EBRE"}, "EBRE"),
        ({"name": "parametric", "seeds": 0}, "seeds must be a whole number"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(
    arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        eber.reproduce(**arguments, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_results_are_not_read_from_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no results"):
        eber.read_results(tmp_path)


def test_importing_the_package_imports_neither_torch_nor_the_workflow() -> None:
    heavy = ("torch", "eber.", "pandas", "sklearn", "pyarrow")
    script = f"import eber, sys; print([name for name in sys.modules if name.startswith({heavy})])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in eber.__all__:
        assert getattr(eber, name) is not None
    assert set(eber.__all__) == set(dir(eber))
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = eber.magic
