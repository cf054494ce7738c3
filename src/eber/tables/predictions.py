"""What a model said about the rows of a table, and what to know about these rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from eber.io.display import html_display, html_table, text_display, text_table
from eber.io.text import count, shortened
from eber.method.adaptation import Adaptation, AdaptationRecord
from eber.tables.columns import say_limits
from eber.tables.frames import exact_frame
from eber.tables.preprocessing import Preprocessing
from eber.tables.unlike_training import UnlikeTraining

SHOWN_ROWS, SHOWN_COLUMNS = 5, 5
_UNLIKE_COUNTS = ("rows", "outside", "far", "missing")


def add_counts(totals: dict[str, tuple[int, str]], found: Mapping[str, tuple[int, str]]) -> None:
    """Add counts of further rows; the example stays the first of all."""
    for name, (number, first) in found.items():
        before, example = totals.get(name, (0, first))
        totals[name] = (before + number, example)


@dataclass
class PredictionReport:
    """What was predicted, and what to know about it.

    Parameters
    ----------
    rows : int
    unseen : dict
        Categorical column to how many rows have a value that the fit has not seen, and the first such value.
    limits : dict
        Numeric column to how many rows have a detection limit in it, and the first such value.
    ignored : tuple of str
        Columns of the table that the model does not use.
    formulas : int
        Cells of a CSV file that begin like a formula and were given an apostrophe.
    unlike : UnlikeTraining, optional
        Counts of what is unlike anything in training.
    adaptation : Adaptation, optional
    mixture : dict
        Training environment to its weight in the mixture that an adaptation estimated.
    adaptation_record : AdaptationRecord, optional
        What adapting did in training environments that the fit had left out.
    intervals : str
        What `low` and `high` are; empty where there are none.
    learned : tuple of str
        What labelled rows changed.
    files, files_done_before : int
        Of a folder that is predicted file by file: how many, and how many of them an earlier command had done.
    others : tuple of str
        Files of predictions in that folder whose rows are not there any more.
    written : pyarrow Schema, optional
        Columns of a file of predictions, with their types, which CSV does not keep.
    """

    rows: int = 0
    unseen: dict[str, tuple[int, str]] = field(default_factory=dict)
    limits: dict[str, tuple[int, str]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    formulas: int = 0
    unlike: UnlikeTraining | None = None
    adaptation: Adaptation | None = None
    mixture: dict[str, float] = field(default_factory=dict)
    adaptation_record: AdaptationRecord | None = None
    intervals: str = ""
    learned: tuple[str, ...] = ()
    files: int = 0
    files_done_before: int = 0
    others: tuple[str, ...] = ()
    written: Any = None

    @property
    def unlike_training(self) -> list[str]:
        """Sentences about columns that are unlike anything in training."""
        return self.unlike.sentences() if self.unlike is not None and self.unlike.rows else []

    def add(self, other: PredictionReport) -> None:
        """Take the rows of another file into account, which came after these."""
        self.rows += other.rows
        self.formulas += other.formulas
        self.ignored = self.ignored or other.ignored
        add_counts(self.unseen, other.unseen)
        add_counts(self.limits, other.limits)
        if self.unlike is not None and other.unlike is not None:
            self.unlike.add(other.unlike)

    def counts_to_json(self) -> dict[str, Any]:
        """What was counted, as plain data."""
        unlike = self.unlike
        return {
            "rows": self.rows,
            "unseen": {name: list(found) for name, found in self.unseen.items()},
            "limits": {name: list(found) for name, found in self.limits.items()},
            "ignored": list(self.ignored),
            "formulas": self.formulas,
            "unlike": {} if unlike is None else {key: getattr(unlike, key) for key in _UNLIKE_COUNTS},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], preprocessing: Preprocessing) -> PredictionReport:
        """From what `counts_to_json` gave."""
        return cls(
            content["rows"],
            {name: (number, first) for name, (number, first) in content["unseen"].items()},
            {name: (number, first) for name, (number, first) in content["limits"].items()},
            tuple(content["ignored"]),
            content["formulas"],
            UnlikeTraining(preprocessing, **content["unlike"]),
        )

    @property
    def remarks(self) -> list[str]:
        """All of it in sentences."""
        lines = []
        if self.ignored:
            lines.append(f"Columns that the model does not know are ignored: {', '.join(self.ignored)}.")
        rows = count(self.rows, "row")
        for name, (strange, first) in self.unseen.items():
            lines.append(
                f"Column {name!r}: {strange} of {rows} {'has' if strange == 1 else 'have'} a value that the fit has "
                f"not seen, such as {first!r}; it counts as none of the known ones."
            )
        lines += [say_limits(name, limits, self.rows, first) for name, (limits, first) in self.limits.items()]
        lines += self.unlike_training
        if self.formulas:
            lines.append(
                f"{count(self.formulas, 'cell')} {'begins' if self.formulas == 1 else 'begin'} as a formula does and "
                "got an apostrophe in front, so that a spreadsheet shows text. Parquet keeps such text as it is."
            )
        if self.files_done_before:
            lines.append(f"{self.files_done_before} of {count(self.files, 'file')} had been done before.")
        if self.others:
            lines.append(
                f"Beside these predictions {'lies' if len(self.others) == 1 else 'lie'} "
                f"{count(len(self.others), 'file')} of an earlier command, such as {shortened(self.others[0])}, made "
                "of rows that are not in this folder any more."
            )
        return [*lines, *self._adaptation_remarks(), *self.learned, *([self.intervals] if self.intervals else [])]

    def _adaptation_remarks(self) -> list[str]:
        a = self.adaptation
        if a is None:
            return []
        record = self.adaptation_record
        if record is not None and not record.helped and np.array_equal(a.mixture, a.training_mixture):
            return [
                f"Not adapted to these {count(a.n_rows, 'row')}: {record}. --force-adapt, in Python force=True, adapts "
                "all the same."
            ]
        order = sorted(self.mixture, key=lambda name: -self.mixture[name])
        shown = ", ".join(f"{name} {self.mixture[name]:.0%}" for name in order if self.mixture[name] >= 0.005)
        return [
            f"Adapted to {count(a.n_rows, 'row')}. Estimated mixture of training environments: {shown}.",
            f"Likelihood gain {a.log_likelihood_gain:.3f} nats a row (p = {a.p_value:.2g}); sharpness of p(e|x) "
            f"{a.sharpness:.2f}; effective sample size {count(round(a.effective_rows), 'row')} of known environment.",
            "Nothing speaks against trusting it." if a.trusted else f"Do not trust it: {'; '.join(a.reasons)}.",
            *([] if record is None else [f"{_sentence(str(record))} {_say_strength(record.strength)}"]),
        ]


@dataclass(frozen=True, repr=False)
class TablePredictions:
    """Predictions for every row of a table.

    Parameters
    ----------
    frame : DataFrame, optional
        Of pandas, polars or pyarrow, as the rows were given; none where predictions went to a file.
    path : Path, optional
        That file, or folder of files.
    report : PredictionReport
        Counts, the adaptation and its mixture.
    """

    frame: Any
    path: Path | None
    report: PredictionReport

    def __len__(self) -> int:
        return self.report.rows

    @property
    def remarks(self) -> list[str]:
        """What to know about these rows, in sentences."""
        return self.report.remarks

    def to_pandas(self) -> pd.DataFrame:
        """The predictions as a DataFrame of pandas; those in files are read, with the types that were written."""
        if self.path is None:
            frame = self.frame
            return frame if isinstance(frame, pd.DataFrame) else _as_pandas(frame)
        answers = _read_csv(self.path, self.report.written) if self.path.suffix == ".csv" else _read_parquet(self.path)
        if answers.num_rows != len(self):
            raise ValueError(f"{self.path} holds {answers.num_rows} rows, and {len(self)} were predicted: others too.")
        return exact_frame(answers)

    def __repr__(self) -> str:
        shown = [] if self.frame is None else [text_table(*self._first_rows())]
        return text_display([self._title, *shown, *self.remarks])

    def _repr_html_(self) -> str:
        shown = "" if self.frame is None else html_table(*self._first_rows(), self._more)
        return html_display(self._title, [shown], {"Remarks": self.remarks})

    @property
    def _title(self) -> str:
        what = f"Predictions for {count(self.report.rows, 'row')}"
        return f"{what} in {self.path}." if self.path is not None else f"{what}; the frame has all of them."

    @property
    def _more(self) -> str:
        hidden = len(list(self.frame.columns)) - SHOWN_COLUMNS
        return f"The first rows; {count(hidden, 'further column')} not shown." if hidden > 0 else "The first rows."

    def _first_rows(self) -> tuple[list[str], list[list[str]]]:
        """A few rows and columns as texts."""
        start = self.frame.iloc[:SHOWN_ROWS] if isinstance(self.frame, pd.DataFrame) else self.frame[:SHOWN_ROWS]
        table = pa.table(start.reset_index(drop=True) if isinstance(start, pd.DataFrame) else start)
        table = table.select(table.column_names[:SHOWN_COLUMNS])
        return table.column_names, [[_shown(value) for value in row.values()] for row in table.to_pylist()]


def _as_pandas(frame: Any) -> pd.DataFrame:
    found: pd.DataFrame = exact_frame(frame) if isinstance(frame, pa.Table) else frame.to_pandas()
    return found


def _read_csv(path: Path, schema: Any) -> Any:
    """Answers as they were written: 007 stays a text, and so does NA."""
    convert = pacsv.ConvertOptions(
        column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = pacsv.ParseOptions(newlines_in_values=True)
    return pacsv.read_csv(path, parse_options=parse, convert_options=convert)


def _read_parquet(path: Path) -> Any:
    """A file, or the files of a folder without what the names of its folders say."""
    return pq.read_table(path, partitioning=None)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _say_strength(strength: float) -> str:
    if strength == 1:
        return "There the estimated mixture was best as it is."
    return f"There it was best to go {strength:.0%} of the way from the training mixture to the estimated one."


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
