"""Named parameters with defaults, and overrides that are checked against them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_ARTICLE = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Split "key=value" texts, as given to `--set`; the values are checked when they are applied."""
    parsed: dict[str, str] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{assignment!r} is not of the form key=value.")
        if key.strip() in parsed:
            raise ValueError(f"{key.strip()!r} is set twice.")
        parsed[key.strip()] = text.strip()
    return parsed


def override(defaults: Mapping[str, Value], overrides: Mapping[str, Any], where: str) -> dict[str, Value]:
    """The defaults with some of them replaced.

    Parameters
    ----------
    defaults : mapping
        Every parameter there is; its default's type is its type.
    overrides : mapping
        Texts are read as the type of the default; "16,32" is a tuple where the default is one.
    where : str
        What the parameters belong to, for errors.

    Raises
    ------
    ValueError
        For an unknown key (with the valid ones listed) or a value of another type than the default's.
    """
    result = dict(defaults)
    for key, value in overrides.items():
        if key not in defaults:
            near = difflib.get_close_matches(key, defaults, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{where} has no parameter {key!r}.{hint} Its parameters are {', '.join(defaults)}.")
        result[key] = _convert(value, defaults[key], f"{where}: parameter {key!r}")
    return result


def check_default(key: str, value: Any, where: str) -> None:
    """Refuse a default whose type could not be used to check overrides."""
    items = value if isinstance(value, tuple) else (value,)
    if not items or len({type(item) for item in items}) > 1 or type(items[0]) not in _ARTICLE:
        raise ValueError(
            f"{where}: the default of {key!r} is {value!r}; it must be a bool, int, float, str, or a non-empty tuple "
            f"of one of them."
        )


def _convert(value: Any, default: Value, what: str) -> Value:
    if not isinstance(default, tuple):
        return _convert_scalar(value, type(default), what)
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError(f"{what} is a list such as {_as_text(default)}; {value!r} is not.")
    return tuple(_convert_scalar(item, type(default[0]), what) for item in items)


def _convert_scalar(value: Any, kind: type, what: str) -> Scalar:
    converted = _from_text(value.strip(), kind) if isinstance(value, str) else _from_number(value, kind)
    if converted is None or (isinstance(converted, float) and not math.isfinite(converted)):
        raise ValueError(f"{what} must be {_ARTICLE[kind]}; {value!r} is not.")
    return converted


def _from_text(text: str, kind: type) -> Scalar | None:
    if kind is str:
        return text
    if kind is bool:
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    try:
        number: int | float = kind(text)
    except ValueError:
        return None
    return number


def _from_number(value: Any, kind: type) -> Scalar | None:
    """A Python value as the wanted type where nothing is lost: 1 is a float, but True is no int."""
    if kind is float and type(value) is int:
        return float(value)
    return value if type(value) is kind and isinstance(value, Scalar) else None


def _as_text(value: tuple[Scalar, ...]) -> str:
    return ",".join(str(item) for item in value)
