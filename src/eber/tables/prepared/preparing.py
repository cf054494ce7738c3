"""From a table of any size to a prepared one: three passes over the source, and one over the buckets."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import eber
from eber.io.files import sole_writer
from eber.io.text import count
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.files import TableFile
from eber.tables.prepared.folder import SAMPLE, TABLE_FILE, PreparedTable
from eber.tables.prepared.gathering import Gathering, bucket_ends, bucket_path
from eber.tables.prepared.layout import ENVIRONMENTS, FEATURES, LABELS, create_files, row_bytes
from eber.tables.prepared.planning import plan
from eber.tables.prepared.scattering import Encoder, Scattering
from eber.tables.tasks import Each, all_answers, one_after_the_other
from eber.tables.training import require_label_and_environment

MAKING = ".making"
PLAN = "plan.json"
_OURS = re.compile(r"plan\.json|sample\.parquet|(section|bucket)-\d+\.json|section-\d+-\d+\.rows|\..*\.tmp")
"""What lies in the folder of what is on its way."""
SECTION_ROWS = 1_000_000
BUCKET_BYTES = 128 << 20
"""Rows that are shuffled in memory together."""


def prepare(
    file: TableFile,
    out: Path,
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    choices: ColumnChoices = NO_CHOICES,
    seed: int = 0,
    say: Callable[[str], object] = lambda sentence: None,
    each: Each = one_after_the_other,
) -> PreparedTable:
    """Prepare a table into a folder; see `eber.prepare_table`.

    A folder in which this was stopped is gone on with where the source and what was asked are the same.

    Parameters
    ----------
    say : callable
        Told what was decided, and how far it is.
    each : callable
        Who reads and scatters sections, and gathers buckets.
    """
    require_label_and_environment(file, label, environment)
    file = replace(file, missing=choices.missing)
    fingerprint = file.fingerprint
    asked = {
        "version": eber.__version__,
        "label": label,
        "environment": environment,
        "drop": list(drop),
        "features": None if features is None else list(features),
        "choices": choices.to_json(),
        "reading": dict(file.reading.given),
        "seed": seed,
    }
    out.mkdir(parents=True, exist_ok=True)
    with sole_writer(out):
        if (out / TABLE_FILE).exists():
            known = _made_before(out, fingerprint, asked)
            if _is_begun(out):  # and was stopped when all but this was done
                shutil.rmtree(out / MAKING)
            return known
        making = _making(out)
        found = _known_plan(out, making, fingerprint, asked)
        if found is None:
            for leftover in list(making.iterdir()):
                leftover.unlink()
            found = plan(file, file.sections(SECTION_ROWS), out, fingerprint, asked, say, making / SAMPLE, each)
            file.require_unchanged()
            found.save(making / PLAN)
        for sentence in (*found.contents, *found.notes):
            say(sentence)
        _require_space(found, making, say)
        made = _scatter_and_gather(found, replace(file, signs=found.signs), making, say, each)
        if (making / SAMPLE).exists():  # else it was moved before this was stopped
            (making / SAMPLE).rename(out / SAMPLE)
        made.save(out / TABLE_FILE)
        shutil.rmtree(making)
    return made


def _making(out: Path) -> Path:
    """The folder of what is on its way; a folder with files of others is refused."""
    making = out / MAKING
    own = (".lock", *((MAKING, FEATURES, LABELS, ENVIRONMENTS, SAMPLE) if _is_begun(out) else ()))
    others = [path.name for path in out.iterdir() if path.name not in own or path.is_symlink()]
    if others:
        raise ValueError(f"{out} holds other files ({others[0]}); give a folder that is empty or not there.")
    making.mkdir(exist_ok=True)
    return making


def _is_begun(out: Path) -> bool:
    """Whether a table was begun in a folder: what is on its way lies there, and nothing else beside it."""
    making = out / MAKING
    return (
        making.is_dir()
        and not making.is_symlink()
        and all(_OURS.fullmatch(path.name) and not path.is_symlink() for path in making.iterdir())
    )


def _made_before(out: Path, fingerprint: str, asked: dict[str, Any]) -> PreparedTable:
    found = PreparedTable.read(out)
    if (found.fingerprint, dict(found.asked)) == (fingerprint, asked):
        return found
    what = "another table" if found.fingerprint != fingerprint else "the same table, prepared in another way"
    raise ValueError(f"{out} holds {what}; give another folder, or remove this one.")


def _known_plan(out: Path, making: Path, fingerprint: str, asked: dict[str, Any]) -> PreparedTable | None:
    """What was decided before this was stopped, where it holds still."""
    try:
        found = PreparedTable.read(out, making / PLAN)
    except (FileNotFoundError, ValueError):
        return None
    return found if (found.fingerprint, dict(found.asked)) == (fingerprint, asked) else None


def _require_space(found: PreparedTable, making: Path, say: Callable[[str], object]) -> None:
    """Say what it takes on the disk, before anything is written; refuse where that is not free."""
    size = len(found) * row_bytes(len(found.preprocessing.names_out))
    there = sum(path.stat().st_blocks * 512 for folder in (making, found.folder) for path in folder.iterdir())
    free = shutil.disk_usage(making).free + there
    say(
        f"{len(found)} rows of {count(len(found.preprocessing.names_out), 'column')} take {_bytes(size)} in "
        f"{found.folder}, and as much again until it is done; {_bytes(free)} are free."
    )
    if free < 2 * size:
        raise OSError(
            f"{found.folder} needs {_bytes(2 * size)} until it is done, but {_bytes(free)} are free: make room, or "
            "give a folder on another disk."
        )


def _scatter_and_gather(
    found: PreparedTable, file: TableFile, making: Path, say: Callable[[str], object], each: Each
) -> PreparedTable:
    """The rows, written; what was done before is not done again."""
    n_columns, seed = len(found.preprocessing.names_out), found.asked["seed"]
    n_buckets = max(1, math.ceil(len(found) * row_bytes(n_columns) / BUCKET_BYTES))
    encoder = Encoder(
        found.schema,
        found.preprocessing,
        {text: j for j, text in enumerate(found.class_texts)},
        {str(name): j for j, name in enumerate(found.environments)},
    )
    sections = file.sections(SECTION_ROWS)
    scattering = Scattering(encoder, sections, making, n_buckets, seed)
    tasks = list(range(len(sections)))
    scattered = all_answers(scattering.scatter, tasks, _with_progress(each, "Scattered", "section", say), "scattered")
    sizes = [scattered[number] for number in tasks]
    buckets = list(range(n_buckets))
    if not create_files(found.folder, len(found), n_columns):
        for bucket in buckets:
            bucket_path(making, bucket).unlink(missing_ok=True)
    gathering = Gathering(making, found.folder, sizes, n_columns, seed)
    digests = all_answers(gathering.gather, buckets, _with_progress(each, "Shuffled", "bucket", say), "shuffled")
    return replace(
        found, ends=tuple(bucket_ends(sizes, n_buckets)), digests=tuple(digests[bucket] for bucket in buckets)
    )


def _with_progress(each: Each, done: str, noun: str, say: Callable[[str], object]) -> Each:
    """The same, with a line for every tenth of the tasks."""

    def told(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        step = max(1, len(tasks) // 10)
        for number, answer in enumerate(each(function, tasks), 1):
            yield answer
            if number % step == 0 or number == len(tasks):
                say(f"{done} {number} of {count(len(tasks), noun)}.")

    return told


def _bytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
