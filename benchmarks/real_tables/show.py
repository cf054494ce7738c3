"""The tables of docs/real-tables.md, as Markdown."""

from __future__ import annotations

from pathlib import Path


def show(folder: Path, data_dir: Path, names: list[str]) -> None:
    """Print them."""
    from benchmarks.real_tables.rules import scores

    print(scores(folder, data_dir, names).to_string())
