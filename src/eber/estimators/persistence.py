"""A fitted classifier as two files in a folder: weights as safetensors, everything else as JSON.

`model.json` names the weights file by the hash of its content and carries a hash of itself, so a truncated or altered
file is refused. It is written last and renamed into place: a folder holds the old model or the new one, never half of
one. Loading builds a module from known classes and fills in numbers; no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import nn

import eber
from eber.exceptions import ModelFileError

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

FORMAT = "eber-model"
FORMAT_VERSION = 1
MANIFEST = "model.json"

Classifier = TypeVar("Classifier", bound="EnvironmentClassifier")


def save_estimator(estimator: EnvironmentClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to the folder `path`, which is made if need be."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    weights = safetensors.torch.save({k: v.contiguous() for k, v in estimator.module_.state_dict().items()})
    digest = hashlib.sha256(weights).hexdigest()
    name = f"weights-{digest[:16]}.safetensors"
    attributes = {
        key: _to_json(value, key)
        for key, value in vars(estimator).items()
        if key.endswith("_") and not key.startswith("_") and key != "module_"
    }
    content = {
        "class": type(estimator).__name__,
        "eber_version": eber.__version__,
        "parameters": {key: _parameter_to_json(key, value) for key, value in estimator.get_params(deep=False).items()},
        "attributes": attributes,
        "weights": {"file": name, "sha256": digest},
    }
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": _digest(content), "content": content}
    _write(folder / name, weights)
    _write(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
    for stale in folder.glob("weights-*.safetensors"):
        if stale.name != name:
            stale.unlink()


def load_estimator(
    cls: type[Classifier], path: str | os.PathLike[str], featurizer: Callable[..., nn.Module] | None
) -> Classifier:
    """Read a classifier of class `cls` from the folder `path`."""
    folder = Path(path)
    content = _read_manifest(folder)
    if content["class"] != cls.__name__:
        raise ModelFileError(f"{folder} holds a {content['class']}, not a {cls.__name__}: load it with that class.")
    weights = _read_weights(folder, content["weights"])
    parameters = {key: _from_json(value) for key, value in content["parameters"].items()}
    for key, value in list(parameters.items()):
        if isinstance(value, dict) and "callable" in value:
            if key == "featurizer" and featurizer is not None:
                parameters[key] = featurizer
            elif key == "featurizer":
                raise ModelFileError(
                    f"{folder} was fitted with the featurizer {value['callable']}, which is code and is not stored: "
                    "pass it again as load(path, featurizer=...)."
                )
            else:
                parameters[key] = _Missing(key, value["callable"])
    try:
        estimator = cls(**parameters)
        for key, value in content["attributes"].items():
            setattr(estimator, key, estimator._restore(key, _from_json(value)))
        module = estimator._module().double()
        module.load_state_dict(weights)
    except (TypeError, RuntimeError, KeyError, AttributeError) as error:
        raise ModelFileError(
            f"{folder / MANIFEST} does not describe a {cls.__name__} of this version: {error}"
        ) from error
    module.eval()
    estimator.module_ = module
    return estimator


class _Missing:
    """Stands for a callable that was not stored; says so when it is needed."""

    def __init__(self, parameter: str, name: str) -> None:
        self.parameter, self.name = parameter, name

    def __call__(self, *args: Any) -> Any:
        raise ModelFileError(
            f"The callable {self.name} given as {self.parameter} is code and was not stored with the model; set it "
            f"again with set_params({self.parameter}=...)."
        )


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise ModelFileError(f"{folder} holds no saved model: there is no {MANIFEST} in it.") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{file} is not readable JSON; it is truncated, altered or not a saved model.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{file} is not a saved eber model.")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{file} has format version {manifest.get('format_version')!r}; this version of eber reads "
            f"{FORMAT_VERSION}. Update eber."
        )
    content = manifest.get("content")
    if not isinstance(content, dict) or manifest.get("sha256") != _digest(content):
        raise ModelFileError(f"{file} has been altered since it was saved: its checksum does not fit its content.")
    return content


def _read_weights(folder: Path, entry: dict[str, str]) -> dict[str, torch.Tensor]:
    file = folder / Path(entry["file"]).name
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{file} is missing or cannot be read; the saved model is incomplete.") from error
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ModelFileError(f"{file} is truncated or has been altered: its checksum is not the one in {MANIFEST}.")
    try:
        weights: dict[str, torch.Tensor] = safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{file} is not a safetensors file: {error}") from error
    return weights


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write(file: Path, data: bytes) -> None:
    """Write under a temporary name, then rename, so that a file is whole or not there."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _parameter_to_json(key: str, value: Any) -> Any:
    if callable(value):
        module, name = getattr(value, "__module__", "?"), getattr(value, "__qualname__", type(value).__name__)
        return {"callable": f"{module}.{name}"}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in some state is no setting; the seed it gave is among the attributes
    return _to_json(value, key)


def _to_json(value: Any, key: str) -> Any:
    """JSON for what a fitted classifier holds; arrays keep their kind, so that labels come back as they were."""
    if isinstance(value, np.ndarray):
        kind = {"i": "int64", "u": "uint64", "f": "float64", "b": "bool", "U": "str"}.get(value.dtype.kind)
        if kind is None:
            if value.dtype != object or not all(isinstance(item, str) for item in value.ravel()):
                raise ModelFileError(f"{key} holds {value.dtype} values, which cannot be saved; use numbers or text.")
            kind = "object"
        return {"array": value.tolist(), "dtype": kind}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _to_json(item, key) for name, item in asdict(value).items()}
    if isinstance(value, dict):
        return {str(name): _to_json(item, key) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item, key) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            return np.array(value["array"], dtype=value["dtype"])
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
