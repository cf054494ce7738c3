"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data, or a skip."""
    folder = os.environ.get("EBER_DATA")
    if not folder:
        pytest.skip("EBER_DATA does not name the folder with the real data")
    return Path(folder)
