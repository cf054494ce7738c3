"""Tuned classifiers as a folder: arrays as safetensors, everything else as JSON, as for a single classifier.

A search or a pool is a tree of parts. Each part is plain data that names its kind, and arrays whose names begin with
the part's place in the tree. Kinds are those listed here, whatever a folder says; nothing in it is run.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import eber
from eber import estimators
from eber.estimators.base import EnvironmentClassifier
from eber.estimators.load_checks import MAX_WEIGHTS_BYTES
from eber.estimators.persistence import (
    TUNED_FORMAT,
    TUNED_FORMAT_VERSION,
    describe,
    encode_files,
    read_manifest,
    read_weights,
    refusing_nonsense,
    restore,
    with_prefix,
    write_files,
)
from eber.exceptions import ModelFileError
from eber.io.plain_data import from_json, to_json
from eber.tuning.calibration import restored_calibration
from eber.tuning.load_checks import answer_one_row, check_tuned
from eber.tuning.plain_models import LinearModel, RateModel, TreeModel, plain_model
from eber.tuning.pool import EnvironmentPool
from eber.tuning.recalibration import RecalibratedClassifier
from eber.tuning.search import EnvironmentSearch

OURS: dict[str, type[EnvironmentClassifier]] = {
    name: kind
    for name, kind in vars(estimators).items()
    if isinstance(kind, type) and issubclass(kind, EnvironmentClassifier)
}
THEIRS = {kind.__name__: kind for kind in (LogisticRegression, HistGradientBoostingClassifier, RandomForestClassifier)}
PLAIN: dict[str, Any] = {kind.__name__: kind for kind in (LinearModel, TreeModel, RateModel)}
TUNED = {kind.__name__: kind for kind in (EnvironmentSearch, EnvironmentPool, RecalibratedClassifier)}
LEARNED = ("classes_", "n_features_in_", "feature_names_in_")
"""What all tuned classifiers learn; further attributes are those of each class."""
LEARNED_BY = {
    "EnvironmentSearch": ("rule_", "chosen_", "results_"),
    "EnvironmentPool": ("names_", "weights_"),
    "RecalibratedClassifier": ("calibration_",),
}
PARTS_OF = {"EnvironmentSearch": "estimators_", "EnvironmentPool": "searches_", "RecalibratedClassifier": "estimator_"}

Tensors = dict[str, torch.Tensor]


def encode_tuned(classifier: Any) -> dict[str, bytes]:
    """The files of a fitted search, pool or model of scikit-learn, by name; the manifest, which names them, last."""
    content, tensors = _describe(classifier)
    return encode_files({**content, "eber_version": eber.__version__}, tensors, TUNED_FORMAT, TUNED_FORMAT_VERSION)


def save_tuned(classifier: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted search or pool to the folder `path`, which is made if need be."""
    write_files(Path(path), encode_tuned(classifier))


def load_tuned(cls: type[Any], path: str | os.PathLike[str]) -> Any:
    """Read a search, a pool or a model that has become arrays from the folder `path`."""
    folder = Path(path)
    content = read_manifest(folder, TUNED_FORMAT, TUNED_FORMAT_VERSION)
    if content.get("class") != cls.__name__:
        held = content.get("class")
        raise ModelFileError(f"{folder} holds a model of class {held}, not {cls.__name__}: load it with that class.")
    with refusing_nonsense(folder, cls.__name__):
        loaded = _restore(content, read_weights(folder, content["weights"], MAX_WEIGHTS_BYTES), folder)
        check_tuned(loaded)
        answer_one_row(loaded)
    return loaded


def _describe(part: Any) -> tuple[dict[str, Any], Tensors]:
    """A part as plain data, and its arrays by name."""
    name = type(part).__name__
    if isinstance(part, EnvironmentClassifier):
        return describe(part)
    if name not in TUNED:
        model = plain_model(part)
        values = {field.name: getattr(model, field.name) for field in fields(model)}
        arrays = {key: value for key, value in values.items() if key not in LEARNED}
        plain = {key: to_json(value, key) for key, value in values.items() if key in LEARNED}
        return {"class": type(model).__name__, **plain}, {k: torch.from_numpy(v.copy()) for k, v in arrays.items()}
    learned = [key for key in (*LEARNED, *LEARNED_BY[name]) if hasattr(part, key)]
    content: dict[str, Any] = {
        "class": name,
        "parameters": _describe_parameters(part),
        "attributes": {key: to_json(getattr(part, key), key) for key in learned},
        "parts": [],
    }
    tensors: Tensors = {}
    if hasattr(part, "left_out_proba_"):
        tensors["left_out_proba_"] = torch.from_numpy(part.left_out_proba_.copy())
    inner_parts = getattr(part, PARTS_OF[name])
    for i, inner in enumerate(inner_parts if isinstance(inner_parts, list) else [inner_parts]):
        described, inner_tensors = _describe(inner)
        content["parts"].append(described)
        tensors |= {f"{i}.{key}": value for key, value in inner_tensors.items()}
    return content, tensors


def _restore(content: dict[str, Any], tensors: Tensors, folder: Path) -> Any:
    name = content["class"]
    if name in OURS:
        return restore(OURS[name], content, lambda limit: tensors, None, folder)
    if name in PLAIN:
        plain = {key: from_json(value) for key, value in content.items() if key in LEARNED}
        return PLAIN[name](**plain, **{key: value.numpy() for key, value in tensors.items() if "." not in key})
    part = TUNED[name](**_restore_parameters(content["parameters"]))
    for key, value in content["attributes"].items():
        if key not in (*LEARNED, *LEARNED_BY[name]):
            raise ValueError(f"{key!r} is nothing that a fit learns")
        setattr(part, key, from_json(value))
    if name == "RecalibratedClassifier":
        entry: Any = part.calibration_  # plain data until here
        part.calibration_ = restored_calibration(entry, len(part.classes_))
    inner = [_restore(described, with_prefix(tensors, f"{i}."), folder) for i, described in enumerate(content["parts"])]
    if name == "RecalibratedClassifier":
        (part.estimator_,) = inner
    else:
        part.left_out_proba_ = tensors["left_out_proba_"].numpy()
        setattr(part, PARTS_OF[name], inner)
    return part


def _describe_parameters(part: Any) -> dict[str, Any]:
    """Parameters as plain data, with estimators by class and parameters."""
    return {name: _describe_value(value, name) for name, value in part.get_params(deep=False).items()}


def _describe_value(value: Any, name: str) -> Any:
    kind = type(value).__name__
    if kind in (OURS | THEIRS | TUNED) and type(value) is (OURS | THEIRS | TUNED)[kind]:
        return {"estimator": kind, "parameters": _describe_parameters(value)}
    if name == "estimators" and value is not None:
        return {"estimators": [[key, _describe_value(estimator, key)] for key, estimator in value]}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in some state is no setting
    return to_json(value, name)


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: _restore_value(value) for name, value in parameters.items()}


def _restore_value(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"estimator", "parameters"}:
        return (OURS | THEIRS | TUNED)[value["estimator"]](**_restore_parameters(value["parameters"]))
    if isinstance(value, dict) and set(value) == {"estimators"}:
        return [(name, _restore_value(estimator)) for name, estimator in value["estimators"]]
    return from_json(value)
