"""Folders of saved models: each file damaged, and each forged by somebody who makes the checksums fit."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from eber import EBERClassifier, EnvironmentPool, EnvironmentSearch, ERMClassifier, RecalibratedClassifier
from eber.estimators.persistence import FORMAT, MANIFEST, TUNED_FORMAT
from eber.io.checksummed_json import encode_checksummed
from eber.tables.model_folder import FORMAT as TABLE_FORMAT
from eber.tables.model_folder import TABLE_FILE, TableModel
from tests.trust.fuzzing.parsers import Parser
from tests.trust.models import rows
from tests.trust.mutations import refused_or_read

SAVED = Path(__file__).parents[2] / "data" / "models-v1"
Use = Callable[[Path], bool]


def model_parsers(scratch: Path) -> dict[str, Parser]:
    """A classifier of version 1, the folder of a model for tables, and tuned models with scikit-learn's in them."""
    classifier = shutil.copytree(SAVED / "EBERClassifier-adapted", scratch / "classifier")
    bundle = shutil.copytree(SAVED / "bundle", scratch / "bundle")
    parsers = _parsers_of("classifier", classifier, FORMAT, functools.partial(_use, EBERClassifier))
    good = json.loads((bundle / TABLE_FILE).read_bytes())["content"]
    parsers["bundle-content"] = Parser((_json(good),), functools.partial(_forge_table, bundle), is_json=True)
    for model in _tuned():
        name = type(model).__name__
        model.save(scratch / name)
        parsers |= _parsers_of(name, scratch / name, TUNED_FORMAT, functools.partial(_use, type(model)))
    return parsers


def _tuned() -> list[Any]:
    """One of each kind, after a moment of training, with trees and matrices of scikit-learn in them."""
    short: dict[str, Any] = {"epochs": 1, "random_state": 0, "hidden_dims": (3,)}
    trees = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4, random_state=0)
    forest = RandomForestClassifier(n_estimators=2, max_depth=2, random_state=0)
    few = rows.select(np.isin(rows.environments, np.unique(rows.environments)[:3]))
    data = {"X": few.X[:, :2], "y": few.y, "environments": few.environments}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits are no good ones, and are not meant to be
        pool = EnvironmentPool(
            [
                ("erm", EnvironmentSearch(ERMClassifier(**short), [{}])),
                ("logistic", EnvironmentSearch(LogisticRegression(), [{}])),
                ("boosting", EnvironmentSearch(trees, [{}])),
                ("forest", EnvironmentSearch(forest, [{}])),
            ]
        ).fit(**data)
        search = EnvironmentSearch(EBERClassifier(**short), [{}]).fit(**data)
        recalibrated = RecalibratedClassifier(LogisticRegression()).fit(**data)
    return [pool, search, recalibrated]


def _parsers_of(name: str, folder: Path, format_: str, use: Use) -> dict[str, Parser]:
    manifest = (folder / MANIFEST).read_bytes()
    content = json.loads(manifest)["content"]
    weights = folder / content["weights"]["file"]
    return {
        f"{name}-manifest": Parser((manifest,), functools.partial(_damage, folder, use)),
        f"{name}-content": Parser((_json(content),), functools.partial(_forge, folder, format_, use), is_json=True),
        f"{name}-weights": Parser((weights.read_bytes(),), functools.partial(_forge_weights, folder, format_, use)),
    }


def _damage(folder: Path, use: Use, content: bytes) -> bool:
    """The manifest, byte for byte."""
    with _put(folder / MANIFEST, content):
        return use(folder)


def _forge(folder: Path, format_: str, use: Use, content: bytes) -> bool:
    """What the manifest says, with a checksum that fits; the weights are the right ones."""
    document = _parsed(content)
    if not isinstance(document, dict):
        return False
    document["weights"] = json.loads((folder / MANIFEST).read_bytes())["content"]["weights"]
    with _put(folder / MANIFEST, encode_checksummed(document, format_, 1)):
        return use(folder)


def _forge_weights(folder: Path, format_: str, use: Use, content: bytes) -> bool:
    """The weights, with a checksum that fits."""
    document = json.loads((folder / MANIFEST).read_bytes())["content"]
    weights = folder / document["weights"]["file"]
    document["weights"]["sha256"] = hashlib.sha256(content).hexdigest()
    with _put(folder / MANIFEST, encode_checksummed(document, format_, 1)), _put(weights, content):
        return use(folder)


def _forge_table(folder: Path, content: bytes) -> bool:
    document = _parsed(content)
    if not isinstance(document, dict):
        return False
    document["classifier"] = json.loads((folder / TABLE_FILE).read_bytes())["content"]["classifier"]
    with _put(folder / TABLE_FILE, encode_checksummed(document, TABLE_FORMAT, 1)):
        return _use_table(folder)


class _put:
    """A file with other content, for as long as the block runs."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content, self.before = path, content, path.read_bytes()

    def __enter__(self) -> None:
        self.path.write_bytes(self.content)

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.before)


def _use(cls: Any, folder: Path) -> bool:
    """Load a model and ask it; where it answers it does so with probabilities."""
    model = None
    with refused_or_read(str(folder)):
        model = cls.load(folder)
    if model is None:
        return False
    with refused_or_read(""):
        n_features = model.n_features_in_
        X: Any = np.random.default_rng(0).normal(size=(40, n_features))
        if hasattr(model, "feature_names_in_"):
            X = pd.DataFrame(X, columns=model.feature_names_in_)
        _check(model.predict_proba(X))
        assert len(model.predict(X)) == len(X)
        assert repr(model)
        return True
    return False


def _use_table(folder: Path) -> bool:
    model = None
    with refused_or_read(str(folder)):
        model = TableModel.load(folder)
    if model is None:
        return False
    assert repr(model)
    assert model._repr_html_()
    assert all(isinstance(note, str) for note in model.notes)
    assert model.held_out_scores.ndim == 2
    with refused_or_read(""):  # its columns may be other ones than the table has
        found = model.predict_table(SAVED / "new.csv").frame
        _check(found[[f"p({label})" for label in model.classifier.classes_]].to_numpy())
        return True
    return False


def _check(proba: Any) -> None:
    assert np.isfinite(proba).all(), "answers that are no numbers"
    assert (proba >= 0).all(), "answers that are no probabilities"
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
