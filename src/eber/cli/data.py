"""`eber data`: list, fetch and verify the real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

data = typer.Typer(help="The real data of the paper's experiments.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder; EBER_DATA, else the user's cache when not given.", show_default=False),
]


def _folder(given: Path | None) -> Path:
    from eber.datasets.fetch import default_data_dir

    return given or default_data_dir()


@data.command("list", short_help="Show where data sets come from.")
def list_() -> None:
    """Show the data sets: what they are, where they come from and under which licence."""
    from eber.datasets.sources import SOURCES

    for source in SOURCES.values():
        typer.secho(source.name, bold=True)
        for what, text in (
            ("what", source.title),
            ("licence", source.licence),
            ("cite", source.citation),
            ("page", source.page),
            ("files", ", ".join(file.path for file in source.files)),
        ):
            # One line each, however long: an address that is cut or wrapped cannot be copied.
            typer.echo(f"  {what:<8} {text}")


@data.command(short_help="Download data sets.")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets by name, or all.", show_default=False)],
    folder: Folder = None,
) -> None:
    """Download data sets from their official sources; a broken-off download goes on where it was."""
    from eber.datasets.download import DownloadError
    from eber.datasets.fetch import fetch as fetch_source
    from eber.datasets.sources import SOURCES

    for name in SOURCES if names == ["all"] else names:
        try:
            places = fetch_source(name, _folder(folder))
        except DownloadError as error:
            raise OSError(str(error)) from error
        for place in places:
            typer.echo(place)


@data.command(short_help="Check files against their checksums.")
def verify(folder: Folder = None) -> None:
    """Check every file of the data folder against its checksum; status 1 unless all are right."""
    from eber.datasets.fetch import verify as verify_folder

    findings = verify_folder(_folder(folder))
    colours = {"checksum right": "green", "content right": "green", "unknown": "yellow", "content other": "yellow"}
    for finding in findings:
        line = f"{finding.state}: {finding.path}" + (f" ({finding.detail})" if finding.detail else "")
        typer.secho(line, fg=colours.get(finding.state, "red"))
    if any(finding.state in ("missing", "unfinished", "checksum wrong") for finding in findings):
        raise typer.Exit(1)
