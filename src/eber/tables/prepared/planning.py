"""The first two passes: all that has to be known before a row can be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from eber.io.files import digest_of
from eber.tables.choices import ColumnChoices
from eber.tables.classes import choose_positive, say_unknown
from eber.tables.column_decisions import find_schema
from eber.tables.columns import as_texts
from eber.tables.files import TableFile
from eber.tables.prepared.folder import PreparedTable
from eber.tables.prepared.learning import MEDIAN_RANK_ERROR, Learning
from eber.tables.prepared.looking import SAMPLE_ROWS, look, write_sample
from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import Schema
from eber.tables.tasks import Each, in_order
from eber.tables.training import (
    check_class_names,
    check_environments,
    check_label,
    decode,
    refuse_headers,
    say_missing,
    settled_classes,
)

MAX_ENVIRONMENTS = 1_000_000


def plan(
    file: TableFile,
    sections: Sequence[TableFile],
    out: Path,
    fingerprint: str,
    asked: dict[str, Any],
    say: Callable[[str], object],
    sample: Path,
    each: Each,
) -> PreparedTable:
    """What becomes of a table, with no row written yet; `asked` as `PreparedTable` keeps it.

    The rows by which columns are judged are kept in the file `sample`. `each` reads the sections.
    """
    choices, drop, features = ColumnChoices.from_json(asked["choices"]), asked["drop"], asked["features"]
    label, environment = asked["label"], asked["environment"]
    say(f"Looking at all rows of {file.title} for its columns, classes and environments.")
    seen = look(file, sections, label, environment, asked["seed"], each)
    notes = [*file.notes, *say_missing(file, sum(seen.section_rows), seen.missing)]
    if not seen.n_rows:
        raise ValueError(f"{file.title} has no row with both a label ({label!r}) and an environment ({environment!r}).")
    refuse_headers(seen.counts[label, environment], file.title)
    write_sample(seen, sample)
    check_label(seen.sample[label], file.title, label, file.decimal_comma)
    texts = np.array(sorted({text for text, _ in seen.counts}))
    classes = settled_classes(texts, seen.n_rows, file.title, label)
    order = np.argsort(classes, kind="stable")
    classes, texts = classes[order], texts[order]
    sizes = np.array([sum(size for (of, _), size in seen.counts.items() if of == text) for text in texts])
    environments = np.array(sorted({name for _, name in seen.counts}))
    check_environments(environments, seen.n_rows, file.title, environment)
    check_class_names(classes, environments, file.title)
    if len(environments) > MAX_ENVIRONMENTS:
        raise ValueError(f"{file.title} has {len(environments)} environments; at most {MAX_ENVIRONMENTS} are possible.")
    where = f"The label {label!r} of {file.title}"
    positive, why_positive = choose_positive(classes, sizes, choices.positive, where)
    sample_environments = np.array(as_texts(seen.sample[environment]).to_pylist(), dtype=str)
    schema = find_schema(
        file,
        seen.sample,
        sample_environments,
        label=label,
        environment=environment,
        drop=drop,
        features=features,
        choices=choices,
        positive=positive,
    )
    notes += [*say_unknown(classes, sizes, label), *schema.notes]
    if seen.is_whole:
        preprocessing = Preprocessing.fit(decode(seen.sample, file, schema), schema)
    else:
        notes.append(
            f"Kinds of columns were decided by {SAMPLE_ROWS} random rows; medians are within "
            f"{100 * MEDIAN_RANK_ERROR:.2g} % of the rows of the middle one."
        )
        say("Looking at all rows again, for the statistics by which columns are standardised.")
        signed = [replace(section, signs=(*schema.signs, *seen.signs)) for section in sections]
        learned, lessons = Learning(schema), Lessons(signed, schema, seen.section_rows)
        for part in in_order(lessons.learn, range(len(sections)), each):
            learned.join(part)
        preprocessing = learned.preprocessing()
        notes += learned.notes
    counts = {
        str(name): {
            str(value): seen.counts[text, name]
            for value, text in zip(classes, texts, strict=True)
            if seen.counts[text, name]
        }
        for name in environments
    }
    return PreparedTable(
        out,
        file.name,
        fingerprint,
        asked,
        schema,
        preprocessing,
        classes,
        environments,
        tuple(texts.tolist()),
        counts,
        tuple(notes),
        why_positive,
        digest_of(sample),
    )


@dataclass(frozen=True)
class Lessons:
    """How the statistics of a section are taken; it can be pickled.

    Parameters
    ----------
    sections : sequence of TableFile
    schema : Schema
    section_rows : sequence of int
        All rows of each section.
    """

    sections: Sequence[TableFile]
    schema: Schema
    section_rows: Sequence[int]

    def learn(self, number: int) -> Learning:
        """The statistics of the rows of one section that have a label and an environment."""
        file, schema = self.sections[number], self.schema
        learning, before = Learning(schema), sum(self.section_rows[:number])
        names = [feature.name for feature in schema.features]
        for table in file.batches([*dict.fromkeys([*names, schema.label, schema.environment])]):
            columns = decode(table, file, schema, before)
            before += table.num_rows
            known = pc.and_(pc.is_valid(table[schema.label]), pc.is_valid(table[schema.environment]))
            rows = np.flatnonzero(np.asarray(known))
            learning.add(columns if len(rows) == table.num_rows else columns.select(rows))
        return learning
