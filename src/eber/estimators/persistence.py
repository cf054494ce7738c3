"""A fitted classifier as two files in a folder: weights as safetensors, everything else as JSON.

`model.json` names the weights file by the hash of its content and carries a hash of itself, so a truncated or altered
file is refused. It is written last and renamed into place: a folder holds the old model or the new one, never half of
one. Loading builds a module from known classes and fills in numbers; no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
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
from eber.io.files import permissions, read_regular, sole_writer, sweep_temporaries, write_atomically
from eber.io.named_parts import JOURNAL, begun_parts, new_part
from eber.io.plain_data import from_json, to_json
from eber.training import global_generator, prepare_inference

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

FORMAT, TUNED_FORMAT = "eber-model", "eber-tuned-model"
FORMAT_VERSION = TUNED_FORMAT_VERSION = 1
FORMATS = {FORMAT: FORMAT_VERSION, TUNED_FORMAT: TUNED_FORMAT_VERSION}
"""What a folder of weights and a manifest may hold: one classifier, or a search or pool of several."""
MANIFEST = "model.json"
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.safetensors")

Classifier = TypeVar("Classifier", bound="EnvironmentClassifier")


def fitted_attributes(estimator: EnvironmentClassifier) -> dict[str, Any]:
    """What `fit` and `adapt` have learned, by scikit-learn's convention of a trailing underscore."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def encode_estimator(estimator: EnvironmentClassifier) -> dict[str, bytes]:
    """The files of a fitted classifier, by name; the manifest, which makes them a model, comes last."""
    return encode_files(*describe(estimator), FORMAT, FORMAT_VERSION)


def encode_files(
    content: dict[str, Any], tensors: dict[str, torch.Tensor], format_: str, version: int
) -> dict[str, bytes]:
    """Plain data and the arrays that belong to them as the two files of a model."""
    weights = safetensors.torch.save(tensors)
    digest = hashlib.sha256(weights).hexdigest()
    name = f"weights-{digest[:16]}.safetensors"
    content = {**content, "weights": {"file": name, "sha256": digest}}
    return {name: weights, MANIFEST: encode_checksummed(content, format_, version)}


def describe(estimator: EnvironmentClassifier) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A fitted classifier as plain data and the weights of its networks by name."""
    members = getattr(estimator, "members_", [])
    tensors = {
        name: value
        for i, single in enumerate(members or [estimator])
        for name, value in _tensors(single, _prefix(i) if members else "").items()
    }
    content: dict[str, Any] = {
        "class": type(estimator).__name__,
        "eber_version": eber.__version__,
        "parameters": _parameters_to_json(estimator.get_params(deep=False)),
        # Parameters may be set after the fit; the networks are built again from those of the fit.
        "fit_parameters": _parameters_to_json(estimator._fit_parameters),
        "attributes": _attributes_to_json(estimator),
    }
    if members:
        content["members"] = [
            {"fit_parameters": _parameters_to_json(m._fit_parameters), "attributes": _attributes_to_json(m)}
            for m in members
        ]
    return content, tensors


def _prefix(member: int) -> str:
    return f"members.{member}."


def _tensors(estimator: EnvironmentClassifier, prefix: str) -> dict[str, torch.Tensor]:
    # Cloned, since safetensors refuses layers that share their weights.
    return {prefix + name: v.contiguous().clone() for name, v in estimator.module_.state_dict().items()}


def _attributes_to_json(estimator: EnvironmentClassifier) -> dict[str, Any]:
    plain = {k: v for k, v in fitted_attributes(estimator).items() if k not in ("module_", "members_")}
    return {key: to_json(value, key) for key, value in plain.items()}


def save_estimator(estimator: EnvironmentClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to the folder `path`, which is made if need be."""
    write_files(Path(path), encode_estimator(estimator))


def write_files(folder: Path, files: Mapping[str, bytes], mode: int | None = None) -> None:
    """Write what `encode_files` gave, and remove the weights of an earlier model; other files are left alone.

    All of it has the permissions of the manifest that is replaced; `mode` are those of a model that lies elsewhere.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: a model is a folder; give another name, or remove the file.")
    manifest = folder / MANIFEST
    if manifest.exists() and not any(is_of_format(manifest, format_) for format_ in FORMATS):
        raise FileExistsError(f"{folder / MANIFEST} is not of a model that was saved here; give another folder.")
    mode = permissions(manifest, mode)
    if not folder.exists():
        folder.mkdir(parents=True)
        if mode is not None:
            folder.chmod(mode | 0o700 | (mode >> 2 & 0o011))  # whoever may read what is in it may enter
    with sole_writer(folder):
        (weights,) = (name for name in files if name != MANIFEST)
        with new_part(folder, weights, _WEIGHTS, lambda: _named_weights(folder), lambda path: path.unlink(True)):
            for name, data in files.items():
                write_atomically(folder / name, data, mode)


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
    for format_, version in FORMATS.items():
        with suppress(ModelFileError, LookupError, TypeError):
            return str(read_manifest(folder, format_, version)["weights"]["file"])
    return None


def load_estimator(
    cls: type[Classifier], path: str | os.PathLike[str], featurizer: Callable[..., nn.Module] | None
) -> Classifier:
    """Read a classifier of class `cls` from the folder `path`."""
    folder = Path(path)
    prepare_inference()
    content = read_manifest(folder, FORMAT, FORMAT_VERSION)
    if content.get("class") != cls.__name__:
        held = content.get("class")
        raise ModelFileError(f"{folder} holds a model of class {held}, not {cls.__name__}: load it with that class.")
    with refusing_nonsense(folder, cls.__name__):
        return restore(cls, content, lambda limit: read_weights(folder, content["weights"], limit), featurizer, folder)


@contextmanager
def refusing_nonsense(folder: Path, name: str) -> Iterator[None]:
    """Say in one sentence that a manifest does not describe a model, whatever that led to."""
    try:
        yield
    except ModelFileError:
        raise
    except (TypeError, ValueError, RuntimeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ModelFileError(
            f"{folder / MANIFEST} does not describe a model of class {name} of this version ({reason})."
        ) from error


def restore(
    cls: type[Classifier],
    content: dict[str, Any],
    read: Callable[[int], dict[str, torch.Tensor]],
    featurizer: Callable[..., nn.Module] | None,
    folder: Path,
) -> Classifier:
    """The classifier that `describe` described.

    Parameters
    ----------
    read : callable
        The largest number of bytes that weights of these networks can have -> the weights by name.
    """
    estimator = _described(cls, content, featurizer, folder)
    singles, prefixes = [estimator], [""]
    if estimator.n_members > 1:
        if len(content["members"]) != estimator.n_members:
            raise ValueError(f"it has {len(content['members'])} members, not {estimator.n_members}")
        singles = [_described(cls, entry, featurizer, folder) for entry in content["members"]]
        prefixes = [_prefix(i) for i in range(len(singles))]
        estimator.members_ = singles
    for single in singles:
        check_description(single)
    networks = [describe_networks(single) for single in singles]
    weights = read(sum(most_bytes(single, module) for single, module in zip(singles, networks, strict=True)))
    for single, module, prefix in zip(singles, networks, prefixes, strict=True):
        own = with_prefix(weights, prefix)
        check_weights(module, own)
        _fill(single, own)
        answer_one_row(single)
    if estimator.n_members > 1:
        answer_one_row(estimator)
    estimator.set_params(**_parameters_from_json(content["parameters"], featurizer, folder))
    check_points(estimator)
    estimator._validate_params()
    return estimator


def _described(
    cls: type[Classifier], entry: dict[str, Any], featurizer: Callable[..., nn.Module] | None, folder: Path
) -> Classifier:
    """A classifier with all that was learned but the networks."""
    estimator = cls(**_parameters_from_json(entry["fit_parameters"], featurizer, folder))
    estimator._validate_params()
    for key, value in entry["attributes"].items():
        if not key.endswith("_") or key.startswith("_"):
            raise ValueError(f"{key!r} is nothing that a fit learns")
        setattr(estimator, key, estimator._restore(key, from_json(value)))
    estimator._fit_parameters = estimator.get_params(deep=False)
    return estimator


def _fill(estimator: EnvironmentClassifier, weights: dict[str, torch.Tensor]) -> None:
    """Build the networks of a single fit and give them their weights."""
    with global_generator(seed=0) if estimator._draws_globally else nullcontext():
        module = estimator._module().double()
    module.load_state_dict(weights)
    module.eval()
    estimator.module_ = module


def with_prefix(weights: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The weights whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


class _Missing:
    """Stands for a callable that was not stored; says so when it is needed."""

    def __init__(self, parameter: str, name: str) -> None:
        self.parameter, self.name = parameter, name

    def __call__(self, *args: Any) -> Any:
        raise ModelFileError(
            f"The callable {self.name} given as {self.parameter} is code and was not stored with the model; set it "
            f"again with set_params({self.parameter}=...)."
        )


def read_manifest(folder: Path, format_: str, version: int) -> dict[str, Any]:
    """The plain data of a model folder."""
    try:
        return read_checksummed(folder / MANIFEST, format_, version, "Save the model again.", ModelFileError)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelFileError(f"{folder} holds no saved model: there is no {MANIFEST} in it.") from error


def read_weights(folder: Path, entry: dict[str, str], limit: int) -> dict[str, torch.Tensor]:
    """The arrays of a model folder, by name; a file of more bytes is not looked at."""
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
    if isinstance(value, dict):  # of classes, whose names need not be text
        return {"mapping": [[to_json(name, key), to_json(item, key)] for name, item in value.items()]}
    return to_json(value, key)


def _parameters_from_json(
    entries: dict[str, Any], featurizer: Callable[..., nn.Module] | None, folder: Path
) -> dict[str, Any]:
    parameters = {key: from_json(value) for key, value in entries.items()}
    for key, value in parameters.items():
        if isinstance(value, dict) and set(value) == {"mapping"}:
            parameters[key] = dict(value["mapping"])
        elif isinstance(value, dict) and "callable" in value:
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
