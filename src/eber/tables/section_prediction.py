"""Predictions for one large Parquet file of a folder: ranges of its row groups are tasks, and are joined at the end.

A file is predicted section by section whoever does it, and a section begins a batch of its own, so that what the tasks
write is to the last bit what one process writes. Sections that are done lie beside what says so, hidden in ``.done``,
until all of the file are; then they become the output, which is whole or not there as any other.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import digest_of, sole_writer, sweep_temporaries, write_atomically
from eber.tables.files import TableFile, open_table
from eber.tables.model_folder import TableModel
from eber.tables.prediction import SECTION_ROWS, Asked, answers_writer, only_writer, predict_section
from eber.tables.readers.parquet import ParquetRows
from eber.training import one_thread

SECTION_FORMAT, VERSION = "eber-predicted-section", 1


@dataclass(frozen=True)
class Section:
    """Some row groups of a file.

    Parameters
    ----------
    part : Path
        The file.
    number : int
        Its place among the sections.
    groups : pair of int
        Its row groups, from the first to the one after the last.
    first_row : int
        The rows of the file before it.
    made_of : mapping
        What the output of the whole file is made of, with the digest of the file.
    marks : tuple
        Of the file when that digest was taken.
    """

    part: Path
    number: int
    groups: tuple[int, int]
    first_row: int
    made_of: dict[str, Any]
    marks: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash((self.part, self.number))


def sections_of(file: TableFile) -> list[tuple[tuple[int, int], int]]:
    """Of each section of a Parquet file, its row groups from the first to the one after the last, and its rows."""
    (part,) = file.parts
    metadata = pq.read_metadata(part)
    found = []
    for section in file.sections(SECTION_ROWS):
        assert isinstance(section.rows, ParquetRows)
        groups = section.rows.groups
        assert groups is not None
        found.append((groups, sum(metadata.row_group(group).num_rows for group in range(*groups))))
    return found


def predict_one_section(model: TableModel, section: Section, done: Path, asked: Asked) -> dict[str, Any]:
    """Predict a section, unless that is done; what there is to know about its rows, as plain data.

    Parameters
    ----------
    done : Path
        What will say that the whole file is done; its sections lie beside it.
    """
    out, says = section_paths(done, section.number)
    known = _read(says)
    if known and known["made_of"] == section.made_of and out.is_file() and digest_of(out) == known["output"]:
        counts: dict[str, Any] = known["counts"]
        return counts
    file = open_table(section.part)
    if file.marks != section.marks:
        raise ValueError(f"{section.part} was changed while it was read. Give the command again when it is whole.")
    assert isinstance(file.rows, ParquetRows)
    rows = replace(file, rows=replace(file.rows, groups=section.groups))
    done.parent.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(mode=0o700, exist_ok=True)  # the output may be one that not everybody may read
    with one_thread():
        report = predict_section(model, rows, out, asked, section.first_row)
    counts = report.counts_to_json()
    content = {"made_of": section.made_of, "output": digest_of(out), "counts": counts}
    write_atomically(says, encode_checksummed(content, SECTION_FORMAT, VERSION))
    return counts


def join_sections(out: Path, done: Path, n_sections: int) -> None:
    """Write the output of a file from those of its sections, row group by row group, as they were written."""
    writer = None
    with only_writer(out) as temporary:
        try:
            for number in range(n_sections):
                with pq.ParquetFile(section_paths(done, number)[0]) as answers:
                    writer = writer or answers_writer(temporary, out.suffix, _plain(answers.schema_arrow))
                    for group in range(answers.num_row_groups):
                        writer.write_table(answers.read_row_group(group))
        finally:
            if writer is not None:
                writer.close()


def _plain(schema: Any) -> Any:
    """A schema without what reading has noted beside its columns."""
    return pa.schema([field.remove_metadata() for field in schema])


def section_paths(done: Path, number: int) -> tuple[Path, Path]:
    """Where the answers to a section go, hidden from who reads the folder, and what says that they are done."""
    folder = sections_folder(done)
    return folder / f".{number:06d}.parquet", folder / f"{number:06d}.json"


def sections_folder(done: Path) -> Path:
    """Where the sections of a file lie until it is done."""
    return done.with_suffix(".sections")


def forget_sections(done: Path) -> None:
    """Remove the sections of a file that is done."""
    shutil.rmtree(sections_folder(done), ignore_errors=True)


def sweep_sections(done: Path) -> None:
    """Remove what processes that were ended left of sections that they had begun."""
    folder = sections_folder(done)
    if folder.is_dir():
        with sole_writer(folder):
            sweep_temporaries(folder)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_checksummed(path, SECTION_FORMAT, VERSION, "The section is predicted again.")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
