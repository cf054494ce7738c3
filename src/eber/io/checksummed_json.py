"""Plain data as a JSON file that shows whether it is whole.

The file says what it is (`format`, `format_version`) and carries a checksum of its content. A byte more, less or other
than what was written is noticed, blanks and superfluous digits too. It is looked for in the bytes themselves, so that
nothing is encoded again to read a file: folders may hold thousands of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eber.io.files import read_regular

_BEFORE_CONTENT, _AFTER_CONTENT = b',\n "content": ', b"\n}"
MAX_BYTES = 64 << 20
"""Of such a file."""


def encode_checksummed(content: Mapping[str, Any], format_: str, version: int) -> bytes:
    """The file's bytes."""
    return _document(_encode(content), format_, version)


def is_of_format(path: Path, format_: str) -> bool:
    """Whether a file begins as those of a format do, so that it may be replaced by another of them, damaged or not."""
    start = re.compile(rb'\s*\{\s*"format":\s*"' + re.escape(format_.encode()) + b'"')
    if not path.is_file():  # nor a pipe, which might never begin
        return False
    with path.open("rb") as file:
        return start.match(file.read(200)) is not None


def read_checksummed(
    path: Path, format_: str, version: int, advice: str, error_class: type[ValueError] = ValueError
) -> dict[str, Any]:
    """The content of a file, where it is whole.

    Parameters
    ----------
    advice : str
        A sentence: what to do when the file is damaged, or was written by an earlier version.
    error_class : type
        Of the error that is raised then.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        Where there is no such file.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as error:
        raise error_class(f"{path} cannot be read ({error}). {advice}") from error
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise error_class(f"{path} is not readable JSON; it is truncated or altered. {advice}") from error
    if not isinstance(document, dict) or document.get("format") != format_:
        raise error_class(f"{path} is not a file of the format {format_!r}. {advice}")
    if document.get("format_version") != version:
        found = document.get("format_version")
        what_to_do = advice if isinstance(found, int) and found < version else "Update eber."
        raise error_class(f"{path} has format version {found!r}; this version of eber reads {version}. {what_to_do}")
    content = document.get("content")
    if not isinstance(content, dict) or data != _document(_content_of(data), format_, version):
        raise error_class(
            f"{path} has been altered since it was saved: its checksum does not fit its content. {advice}"
        )
    return content


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _document(content: bytes, format_: str, version: int) -> bytes:
    """The file with this encoded content, as `_encode` would write the whole: texts in JSON have no line breaks."""
    head = _encode({"format": format_, "format_version": version, "sha256": hashlib.sha256(content).hexdigest()})
    return head.removesuffix(b"\n}") + _BEFORE_CONTENT + content.replace(b"\n", b"\n ") + _AFTER_CONTENT


def _content_of(data: bytes) -> bytes:
    """The encoded content of a file, on which its checksum is; of a damaged file, anything."""
    return data.partition(_BEFORE_CONTENT)[2].removesuffix(_AFTER_CONTENT).replace(b"\n ", b"\n")
