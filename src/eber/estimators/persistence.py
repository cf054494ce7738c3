"""A fitted classifier as two files in a folder: weights as safetensors, everything else as JSON.

`model.json` names the weights file by the hash of its content and carries a hash of itself, so a truncated or altered
file is refused. It is written last and renamed into place: a folder holds the old model or the new one, never half of
one. Loading builds a module from known classes and fills in numbers; no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import nn

import eber
from eber.estimators.load_checks import (
    answer_one_row,
    check_description,
    check_points,
    check_weights,
    describe_networks,
    most_bytes,
)
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import encode_checksummed, is_of_format, read_checksummed
from eber.io.files import read_regular, sole_writer, sweep_temporaries, write_atomically
from eber.io.named_parts import JOURNAL, begun_parts, new_part
from eber.training import global_generator, prepare_inference

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

FORMAT = "eber-model"
FORMAT_VERSION = 1
MANIFEST = "model.json"
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.safetensors")
_KINDS = {"i": "int64", "u": "uint64", "f": "float64", "b": "bool", "U": "str"}

Classifier = TypeVar("Classifier", bound="EnvironmentClassifier")


def fitted_attributes(estimator: EnvironmentClassifier) -> dict[str, Any]:
    """What `fit` and `adapt` have learned, by scikit-learn's convention of a trailing underscore."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def encode_estimator(estimator: EnvironmentClassifier) -> dict[str, bytes]:
    """The files of a fitted classifier, by name; the manifest, which makes them a model, comes last."""
    attributes = fitted_attributes(estimator)
    module = attributes.pop("module_")
    # Cloned, since safetensors refuses layers that share their weights.
    weights = safetensors.torch.save({name: v.contiguous().clone() for name, v in module.state_dict().items()})
    digest = hashlib.sha256(weights).hexdigest()
    name = f"weights-{digest[:16]}.safetensors"
    content = {
        "class": type(estimator).__name__,
        "eber_version": eber.__version__,
        "parameters": _parameters_to_json(estimator.get_params(deep=False)),
        # Parameters may be set after the fit; the networks are built again from those of the fit.
        "fit_parameters": _parameters_to_json(estimator._fit_parameters),
        "attributes": {key: _to_json(value, key) for key, value in attributes.items()},
        "weights": {"file": name, "sha256": digest},
    }
    return {name: weights, MANIFEST: encode_checksummed(content, FORMAT, FORMAT_VERSION)}


def save_estimator(estimator: EnvironmentClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to the folder `path`, which is made if need be."""
    write_files(Path(path), encode_estimator(estimator))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write what `encode_estimator` gave, and remove the weights of an earlier model; other files are left alone."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: a model is a folder; give another name, or remove the file.")
    if (folder / MANIFEST).exists() and not is_of_format(folder / MANIFEST, FORMAT):
        raise FileExistsError(f"{folder / MANIFEST} is not of a model that was saved here; give another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with sole_writer(folder):
        (weights,) = (name for name in files if name != MANIFEST)
        with new_part(folder, weights, _WEIGHTS, lambda: _named_weights(folder), lambda path: path.unlink(True)):
            for name, data in files.items():
                write_atomically(folder / name, data)


def remove_files(folder: Path) -> None:
    """Remove what `write_files` wrote, and the folder where nothing else is in it."""
    if folder.is_symlink():
        folder.unlink()
        return
    if not folder.is_dir():
        return
    sweep_temporaries(folder)
    parts = [part for part in (_named_weights(folder), *begun_parts(folder)) if part and _WEIGHTS.fullmatch(part)]
    for name in (*parts, MANIFEST, JOURNAL, ".lock"):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # somebody keeps files of his own in it
        folder.rmdir()


def _named_weights(folder: Path) -> str | None:
    """The weights of the model that a folder holds, if it holds one."""
    try:
        return str(_read_manifest(folder)["weights"]["file"])
    except (ModelFileError, LookupError, TypeError):
        return None


def load_estimator(
    cls: type[Classifier], path: str | os.PathLike[str], featurizer: Callable[..., nn.Module] | None
) -> Classifier:
    """Read a classifier of class `cls` from the folder `path`."""
    folder = Path(path)
    prepare_inference()
    content = _read_manifest(folder)
    if content.get("class") != cls.__name__:
        held = content.get("class")
        raise ModelFileError(f"{folder} holds a model of class {held}, not {cls.__name__}: load it with that class.")
    try:
        fit_parameters = _parameters_from_json(content["fit_parameters"], featurizer, folder)
        estimator = cls(**fit_parameters)
        for key, value in content["attributes"].items():
            if not key.endswith("_") or key.startswith("_"):
                raise ValueError(f"{key!r} is nothing that a fit learns")
            setattr(estimator, key, estimator._restore(key, _from_json(value)))
        check_description(estimator)
        networks = describe_networks(estimator)
        weights = _read_weights(folder, content["weights"], most_bytes(estimator, networks))
        check_weights(networks, weights)
        with global_generator(seed=0) if estimator._draws_globally else nullcontext():
            module = estimator._module().double()
        module.load_state_dict(weights)
        module.eval()
        estimator.module_ = module
        estimator._fit_parameters = fit_parameters
        answer_one_row(estimator)
        estimator.set_params(**_parameters_from_json(content["parameters"], featurizer, folder))
        check_points(estimator)
        estimator._validate_params()
    except ModelFileError:
        raise
    except (TypeError, ValueError, RuntimeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ModelFileError(
            f"{folder / MANIFEST} does not describe a model of class {cls.__name__} of this version ({reason})."
        ) from error
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
    try:
        return read_checksummed(folder / MANIFEST, FORMAT, FORMAT_VERSION, "Save the model again.", ModelFileError)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelFileError(f"{folder} holds no saved model: there is no {MANIFEST} in it.") from error


def _read_weights(folder: Path, entry: dict[str, str], limit: int) -> dict[str, torch.Tensor]:
    file = folder / Path(entry["file"]).name
    try:
        data = read_regular(file, limit)
    except ValueError as error:
        raise ModelFileError(str(error)) from error
    except OSError as error:
        raise ModelFileError(f"{file} is missing or cannot be read; the saved model is incomplete.") from error
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ModelFileError(f"{file} is truncated or has been altered: its checksum is not the one in {MANIFEST}.")
    try:
        weights: dict[str, torch.Tensor] = safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{file} is not a safetensors file ({error}).") from error
    return weights


def _parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: _parameter_to_json(key, value) for key, value in parameters.items()}


def _parameter_to_json(key: str, value: Any) -> Any:
    if callable(value):
        module, name = getattr(value, "__module__", "?"), getattr(value, "__qualname__", type(value).__name__)
        return {"callable": value.name if isinstance(value, _Missing) else f"{module}.{name}"}
    if isinstance(value, np.random.RandomState):
        return None  # a generator in some state is no setting; the seed it gave is among the attributes
    return _to_json(value, key)


def _parameters_from_json(
    entries: dict[str, Any], featurizer: Callable[..., nn.Module] | None, folder: Path
) -> dict[str, Any]:
    parameters = {key: _from_json(value) for key, value in entries.items()}
    for key, value in parameters.items():
        if isinstance(value, dict) and "callable" in value:
            if key != "featurizer":
                parameters[key] = _Missing(key, value["callable"])
            elif featurizer is not None:
                parameters[key] = featurizer
            else:
                raise ModelFileError(
                    f"{folder} was fitted with the featurizer {value['callable']}, which is code and is not stored: "
                    "pass it again as load(path, featurizer=...)."
                )
    return parameters


def _to_json(value: Any, key: str) -> Any:
    """JSON for what a fitted classifier holds; arrays keep their kind, so that labels come back as they were."""
    if isinstance(value, np.ndarray):
        kind = _KINDS.get(value.dtype.kind)
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
    if isinstance(value, tuple):
        return {"tuple": [_to_json(item, key) for item in value]}
    if isinstance(value, list):
        return [_to_json(item, key) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(f"{key} holds a {type(value).__name__}, which cannot be saved; use numbers or text.")


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            if value["dtype"] not in (*_KINDS.values(), "object"):
                raise ValueError(f"{value['dtype']!r} is no kind of array that is saved")
            return np.array(value["array"], dtype=value["dtype"])
        if set(value) == {"tuple"}:
            return tuple(_from_json(item) for item in value["tuple"])
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
