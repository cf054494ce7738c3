"""The Python of the documentation runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sklearn

from eber.datasets.hospitals import draw_hospitals

TABLES = Path(__file__).parents[1] / "docs" / "tables.md"


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_the_search_of_penalty_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TABLES.read_text(), flags=re.DOTALL)
    draw_hospitals(400).to_csv(tmp_path / "hospitals.csv", index=False)
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        exec(compile(example, str(TABLES), "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"^(1|10|100)\.0 \{1\.0: ", said)
    assert "{'irmclassifier__penalty_weight': " in said
