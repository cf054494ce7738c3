"""Plain data as a JSON file that shows whether it is whole.

The file says what it is (`format`, `format_version`) and carries a checksum of its content. A byte more, less or other
than what was written is noticed, blanks and superfluous digits too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eber.io.files import read_regular

MAX_BYTES = 64 << 20
"""Of such a file."""


def encode_checksummed(content: Mapping[str, Any], format_: str, version: int) -> bytes:
    """The file's bytes."""
    checksum = hashlib.sha256(_encode(content)).hexdigest()
    return _encode({"format": format_, "format_version": version, "sha256": checksum, "content": content})


def is_of_format(path: Path, format_: str) -> bool:
    """Whether a file begins as those of a format do, so that it may be replaced by another of them, damaged or not."""
    start = re.compile(rb'\s*\{\s*"format":\s*"' + re.escape(format_.encode()) + b'"')
    with path.open("rb") as file:
        return start.match(file.read(200)) is not None


def read_checksummed(
    path: Path, format_: str, version: int, advice: str, error_class: type[ValueError] = ValueError
) -> dict[str, Any]:
    """The content of a sealed file.

    Parameters
    ----------
    advice : str
        A sentence: what to do when the file is damaged.
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
        raise error_class(f"{path} has format version {found!r}; this version of eber reads {version}. Update eber.")
    content = document.get("content")
    if not isinstance(content, dict) or data != encode_checksummed(content, format_, version):
        raise error_class(
            f"{path} has been altered since it was saved: its checksum does not fit its content. {advice}"
        )
    return content


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()
