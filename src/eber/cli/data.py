"""`eber data`: list, fetch and verify the real data."""

from __future__ import annotations

import typer

data = typer.Typer(help="The real data of the paper's experiments.", no_args_is_help=True)
