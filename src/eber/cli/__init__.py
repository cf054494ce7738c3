"""The `eber` command."""

from eber.cli.main import main

__all__ = ["main"]
