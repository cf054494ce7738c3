"""The command line, run in this process."""

from __future__ import annotations

import pytest

from eber.cli.main import main


def eber(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command; its status."""
    monkeypatch.setattr("sys.argv", ["eber", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
