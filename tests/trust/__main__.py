"""``python -m tests.trust``: the long version of these tests, and the figures of docs/promises.md."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    os.environ["EBER_TRUST"] = "long"
    # Read by the processes that the tests start, which begin in other folders.
    root = Path(__file__).parent.parent.parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.exit(pytest.main([str(Path(__file__).parent), "-q", *sys.argv[1:]]))
