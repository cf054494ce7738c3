"""What a fitted classifier holds as JSON, and back: numbers, text, arrays and collections of them."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from eber.exceptions import ModelFileError

_KINDS = {"i": "int64", "u": "uint64", "f": "float64", "b": "bool", "U": "str"}


def to_json(value: Any, key: str) -> Any:
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
        return {name: to_json(item, key) for name, item in asdict(value).items()}
    if isinstance(value, dict):
        return {str(name): to_json(item, key) for name, item in value.items()}
    if isinstance(value, tuple):
        return {"tuple": [to_json(item, key) for item in value]}
    if isinstance(value, list):
        return [to_json(item, key) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(f"{key} holds a {type(value).__name__}, which cannot be saved; use numbers or text.")


def from_json(value: Any) -> Any:
    """What `to_json` was given."""
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            if value["dtype"] not in (*_KINDS.values(), "object"):
                raise ValueError(f"{value['dtype']!r} is no kind of array that is saved")
            return np.array(value["array"], dtype=value["dtype"])
        if set(value) == {"tuple"}:
            return tuple(from_json(item) for item in value["tuple"])
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value
