"""The recipes of CONTRIBUTING.md run as they stand and give what they say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eber.datasets.parametric import ParametricParameters, draw
from eber.evaluation import metrics
from eber.method.diagnostics import Diagnostic
from eber.tables import files

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def code_of(title: str) -> str:
    """The blocks of a section, one after the other."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert blocks
    return "\n\n".join(blocks)


def recipe(title: str) -> dict[str, Any]:
    """What the code of a section defines when it is run."""
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code_of(title), str(PAGE), "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_a_method() -> None:
    """It is fitted, and its weight matters."""
    rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
    classifier = recipe("Add a method")["WorstEnvironmentClassifier"]
    fits = [classifier(epochs=2, random_state=0, penalty_weight=weight) for weight in (0.0, 10.0)]
    plain, worst = (fit.fit(rows.X, rows.y, environments=rows.environments) for fit in fits)
    history = worst.history_
    assert set(history) == {"loss", "risk", "worst"}
    np.testing.assert_allclose(history["loss"], np.add(history["risk"], 10 * np.array(history["worst"])), rtol=1e-5)
    assert np.all(np.greater(history["worst"], history["risk"]))
    assert np.abs(plain.predict_proba(rows.X) - worst.predict_proba(rows.X)).max() > 1e-4


def test_a_method_in_every_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eber.methods import find_method, own

    monkeypatch.setattr(own, "registered", {})
    code = code_of("Add a method") + code_of("Bring a method into every comparison")
    (tmp_path / "worst_environment.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    classifier = importlib.import_module("worst_environment").WorstEnvironmentClassifier
    method = find_method("worst environment")
    assert method.classifier is classifier
    assert method.build(penalty_weight=10.0).penalty_weight == 10.0


def test_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", dict(metrics.METRICS))
    scores = recipe("Add a metric")["scores"]
    assert scores == pytest.approx({"nll": 1.5 * np.log(2), "surprise": np.log(4)})


def test_a_table_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FORMATS", (recipe("Add a table format")["FORMAT"], *files.FORMATS))
    path = tmp_path / "t.jsonl"
    path.write_text('{"site": "a", "x": 1}\n{"site": "b", "x": 2}\n')
    assert files.open_table(path).read().to_pydict() == {"site": ["a", "b"], "x": [1, 2]}
    path.write_text('{"site": ')
    with pytest.raises(ValueError, match=r"t\.jsonl cannot be read as JSON lines"):
        files.open_table(path)


def test_a_data_set() -> None:
    data = recipe("Add a data set")["data"]
    assert data.X.shape == (3, 2)
    assert data.environment_names == ["north", "south"]


def test_a_diagnostic() -> None:
    sign = recipe("Add a diagnostic")["sign"]
    assert isinstance(sign, Diagnostic)
    assert sign.alarming
    assert str(sign).startswith("share of idle environments = 0.667 (threshold 0.5): ")
