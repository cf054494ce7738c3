"""A random sample of a table that memory does not hold: what settings are chosen and methods are compared on.

A prepared table keeps the rows by which its columns were judged; of any other table such rows are drawn in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from eber.io.text import count
from eber.tables.choices import ColumnChoices
from eber.tables.files import TableFile, open_table
from eber.tables.prepared.folder import PreparedTable
from eber.tables.prepared.looking import Look, look, write_sample
from eber.tables.training import TrainingTable, read_training_table, require_label_and_environment

SAMPLE_FILE = "sample.parquet"


@dataclass(frozen=True)
class Sample:
    """Some rows of a table.

    Parameters
    ----------
    file : TableFile
        The rows, under the title of the table.
    source : str
        The path of the table.
    remark : str
        What is said on top of all that comes of it.
    is_prepared : bool
        Whether that path is a prepared table's.
    """

    file: TableFile
    source: str
    remark: str
    is_prepared: bool


def draw_sample(file: TableFile, label: str, environment: str, folder: Path) -> Sample:
    """Draw the sample of a table and keep it in a folder, where worker processes find it."""
    require_label_and_environment(file, label, environment)
    seen = look(file, [file], label, environment, seed=0)
    file.require_unchanged()
    folder.mkdir(parents=True, exist_ok=True)
    write_sample(seen, folder / SAMPLE_FILE)
    sampled = replace(open_table(folder / SAMPLE_FILE, missing=file.missing), title=file.title)
    return Sample(sampled, file.title, _remark(seen, environment), is_prepared=False)


def sample_of(prepared: PreparedTable) -> Sample:
    """The sample that a prepared table keeps."""
    file = open_table(prepared.checked_sample(), missing=prepared.choices.missing)
    n = sum(batch.num_rows for batch in file.batches([prepared.schema.environment]))
    remark = _say(n, len(prepared))
    return Sample(replace(file, title=str(prepared.folder)), str(prepared.folder), remark, is_prepared=True)


def read_sample(prepared: PreparedTable) -> tuple[TrainingTable, str]:
    """The sample of a prepared table to learn from, and what is said of it."""
    sample, asked = sample_of(prepared), prepared.asked
    data = read_training_table(
        sample.file,
        label=prepared.schema.label,
        environment=prepared.schema.environment,
        drop=asked["drop"],
        features=asked["features"],
        choices=ColumnChoices.from_json(asked["choices"]),
    )
    known = set(data.environments.tolist())
    lost = [str(name) for name in prepared.environments if str(name) not in known]
    more = f" {count(len(lost), 'environment')} too small to be in it, such as {lost[0]!r}." if lost else ""
    return data, sample.remark + more


def _remark(seen: Look, environment: str) -> str:
    names, drawn = {name for _, name in seen.counts}, set(map(str, seen.sample[environment].unique().to_pylist()))
    lost = len(names) - len(drawn)
    more = f" {count(lost, 'environment')} too small to be in it." if lost > 0 else ""
    return _say(seen.sample.num_rows, seen.n_rows) + more


def _say(n: int, of: int) -> str:
    return f"The table is too large for memory: a random sample of {n} of its {of} rows."
