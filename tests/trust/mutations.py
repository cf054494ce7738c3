"""Damaged and hostile versions of good input, and what counts as an acceptable answer to them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

STRANGE = (
    *(b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\\", b"{", b"["),
    *(b"NaN", b"nan", b"inf", b"-inf", b"1e400", b"-1e400", b"1e308", b"99999999999999999999", b"-1", b"0x10"),
    *(b"=1+1", b"None", b"true", b"../../x", b"%s%n", "ß€𝄞".encode(), b"A" * 5000),
)
"""What is put into the middle of a file."""


def mutants(data: bytes, count: int, rng: np.random.Generator) -> Iterator[bytes]:
    """So many files that differ from `data` by one to three accidents."""
    for _ in range(count):
        changed = data
        for _ in range(rng.integers(1, 4)):
            changed = _ACCIDENTS[rng.integers(len(_ACCIDENTS))](changed, rng)
        yield changed


def _place(data: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(data) + 1))


def _cut_off(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return data[:start] + data[start + int(rng.integers(1, 40)) :]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return data[:start] + data[start : start + int(rng.integers(1, 40))] * int(rng.integers(2, 30)) + data[start:]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return data[:start] + STRANGE[rng.integers(len(STRANGE))] + data[start:]


def _noise(data: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return data[:start] + rng.bytes(int(rng.integers(1, 60))) + data[start:]


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    """As a bad block does: nothing moves, so that what follows still stands where a file says it does."""
    start, noise = _place(data, rng), rng.bytes(int(rng.integers(1, 60)))
    return data[:start] + noise[: len(data) - start] + data[start + len(noise) :]


def _swap_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    a, b = rng.integers(len(lines), size=2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


_ACCIDENTS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _cut_off,
    _flip,
    _remove,
    _repeat,
    _insert,
    _noise,
    _overwrite,
    _swap_lines,
)

LEAVES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 3, 10**9, 10**40, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "x", "../../x", "cnn"),
    *([], {}, [1], ["x"], {"array": [1, 2], "dtype": "object"}, {"array": ["x"], "dtype": "O"}, {"tuple": [1]}),
    *({"callable": "os.system"}, {"array": [[1], [2, 3]], "dtype": "float64"}, {"array": [], "dtype": "V1000000000"}),
)
"""What is put in the place of a value by somebody who knows the format."""


def changed_document(document: Any, rng: np.random.Generator) -> Any:
    """Plain data with one value, at whatever depth, replaced or removed."""
    document = json.loads(json.dumps(document))
    node, path = document, list[Any]()
    while isinstance(node, dict | list) and node and (not path or rng.random() < 0.85):
        key = rng.choice(list(node)) if isinstance(node, dict) else int(rng.integers(len(node)))
        path.append((node, key))
        node = node[key]
    parent, key = path[-1]
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = LEAVES[rng.integers(len(LEAVES))]
    return document


@contextlib.contextmanager
def refused_or_read(what: str) -> Iterator[None]:
    """The block succeeds, or refuses in one clear sentence in which `what` stands; anything else is a finding."""
    try:
        yield
    except (ValueError, OSError) as error:
        message = str(error) or repr(error)
        assert what in message, f"it does not say what: {message!r}"
        assert len(message) < 2000, f"a sentence of {len(message)} characters: {message[:300]!r}"
    except Exception as error:
        pytest.fail(f"{type(error).__name__} instead of a clear refusal: {error}")
