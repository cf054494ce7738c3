"""The Python of the documentation runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import sklearn

from eber.compare import methods
from eber.compare.methods import Effort
from eber.datasets.hospitals import draw_hospitals
from tests.one_process import one_process  # noqa: F401

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "tables.md"


def examples(page: Path, containing: str) -> list[str]:
    """The Python of a page in which a name occurs."""
    found = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    return [example for example in found if containing in example]


@pytest.mark.usefixtures("one_process")
@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
@pytest.mark.parametrize("page", [TABLES, ROOT / "README.md"])
def test_the_workflow(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = examples(page, "compare_table")
    table = draw_hospitals(400)
    table = table[table["hospital"].isin(["Ashford", "Birchwood", "Dunmore"])]
    table.to_csv(tmp_path / "hospitals.csv", index=False)
    table.drop(columns=["sepsis", "hospital"]).to_csv(tmp_path / "new_hospital.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "QUICK", Effort(20, 0))
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(example, str(page), "exec"), variables)
    assert variables["comparison"].page == Path("results/hospitals/report.html")
    assert len(variables["predictions"].frame) in (100, len(table))


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
