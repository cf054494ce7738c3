"""How much is tried: little in the default suite, much under ``make trust``."""

from __future__ import annotations

import os

LONG = os.environ.get("EBER_TRUST") == "long"


def times(short: int, long: int) -> int:
    """How often something is tried."""
    return long if LONG else short
