"""The commands and the Python of the documentation run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sklearn

from eber.compare import methods
from eber.compare.methods import Effort
from eber.datasets.hospitals import draw_hospitals
from tests.command_line import eber
from tests.one_process import one_process  # noqa: F401

ROOT = Path(__file__).parents[1]
README, TABLES = ROOT / "README.md", ROOT / "docs" / "tables.md"


def examples(page: Path, containing: str) -> list[str]:
    """The Python of a page in which a name occurs."""
    found = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    return [example for example in found if containing in example]


@pytest.mark.usefixtures("one_process")
@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
def test_the_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = examples(TABLES, "compare_table")
    table = draw_hospitals(400)
    table = table[table["hospital"].isin(["Ashford", "Birchwood", "Dunmore"])]
    table.to_csv(tmp_path / "hospitals.csv", index=False)
    table.drop(columns=["sepsis", "hospital"]).to_csv(tmp_path / "new_hospital.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "QUICK", Effort(20, 0))
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(example, str(TABLES), "exec"), variables)
    assert variables["comparison"].page == Path("results/hospitals-quick/report.html")
    assert len(variables["predictions"].frame) in (100, len(table))


@pytest.mark.usefixtures("one_process")
@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
def test_the_readme_runs_from_top_to_bottom_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command of "On your own table" and all Python, in their order; only training is shorter here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(methods, "QUICK", Effort(60, 0))
    monkeypatch.setattr(methods, "THOROUGH", Effort(30, 2))
    text = README.read_text()
    own_table = text[text.index("## On your own table") : text.index("### In Python")]
    commands = [line.split("#")[0] for line in own_table.splitlines() if line.startswith("eber ")]
    assert [command.split()[1] for command in commands] == ["example", "compare", "fit", "predict"]
    for command in commands:
        assert eber(monkeypatch, *shlex.split(command)[1:]) == 0, capsys.readouterr().err
    assert len(pd.read_parquet("predictions.parquet")) == len(pd.read_csv("new_hospital.csv"))
    assert Path("results/hospitals-quick/report.html").exists()
    blocks = examples(README, "")
    assert len(blocks) >= 6
    variables: dict[str, Any] = {"__name__": "__main__"}
    with sklearn.config_context():
        for block in blocks:
            exec(compile(block, str(README), "exec"), variables)
    assert variables["comparison"].run.reused, "the command has computed it"
    assert len(variables["predictions"].frame) == len(variables["new"]) == 300
    assert all(hasattr(classifier, "module_") for classifier in variables["seeds"])
    (own_method,) = examples(README, "# worst.py")
    Path("worst.py").write_text(own_method)
    options = ["--label", "sepsis", "--environment", "hospital", "--quick", "--methods"]
    assert eber(monkeypatch, "compare", "hospitals.csv", *options, "ERM,worst:WorstEnvironmentClassifier") == 0
    assert "Worst environment" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_the_search_of_penalty_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = examples(TABLES, "choose_penalty_weight")
    draw_hospitals(400).to_csv(tmp_path / "hospitals.csv", index=False)
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        exec(compile(example, str(TABLES), "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"^(1|10|100)\.0 \{1\.0: ", said)
    assert "{'irmclassifier__penalty_weight': " in said


FIRST_TABLE = ROOT / "docs" / "guide" / "first-table.md"
PAGES = [*sorted((ROOT / "docs" / "guide").glob("*.md")), ROOT / "docs" / "equations.md", ROOT / "docs" / "citation.md"]
PAGES.remove(FIRST_TABLE)
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("one_process")
@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_guide_runs_from_top_to_bottom_in_an_empty_folder(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands and Python of each page, in their order; only training is shorter here, and the table is smaller."""
    blocks = BLOCK.findall(page.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "QUICK", Effort(20, 0))
    variables: dict[str, Any] = {"__name__": "__main__"}
    with sklearn.config_context():
        for language, block in blocks:
            if language == "python":
                exec(compile(block, str(page), "exec"), variables)
            elif not language:
                for command in block.splitlines():
                    if command.startswith("eber "):
                        arguments = shlex.split(command, comments=True)[1:]
                        assert eber(monkeypatch, *arguments) == 0, capsys.readouterr().err
                        if arguments[0] == "example":
                            table = draw_hospitals(900)
                            kept = table["hospital"].isin(["Ashford", "Birchwood", "Dunmore", "Harbour"])
                            table[kept].to_csv("hospitals.csv", index=False)


def test_the_first_table_has_the_commands_of_the_readme() -> None:
    """They are run above."""

    def commands(page: Path) -> list[str]:
        lines = [line.split("#")[0] for line in page.read_text().splitlines() if line.startswith("eber ")]
        return [" ".join(line.split()) for line in lines]

    assert commands(FIRST_TABLE) == commands(README)[:4]
