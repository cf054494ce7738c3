"""Which columns of a table are features, of what kind, and why the others are not."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from eber.io.text import cut, shortened
from eber.tables.files import TableFile

MAX_LISTED = 6
"""Columns of a kind that are listed by name."""
IDENTIFIER_WORDS = {"id", "ids", "uuid", "guid", "identifier", "mrn", "rowname", "rownames", "unnamed", "accession"}
SUBJECTS = (
    "patient",
    "subject",
    "participant",
    "person",
    "individual",
    "donor",
    "customer",
    "client",
    "user",
    "student",
)
CASES = ("case",)
"""Words for what a row may be of, each with a second row elsewhere; a case may also be one visit, so it comes last."""
NUMBER_WORDS = {"no", "nr", "num", "number", "code", "key"}
FeatureKind = Literal["numeric", "boolean", "ordinal", "categorical"]


@dataclass(frozen=True)
class Feature:
    """A column that the model sees.

    Parameters
    ----------
    name : str
    kind : str
        "numeric", "boolean", "ordinal" or "categorical".
    odd_texts : tuple of str
        Texts in a numeric column that count as missing.
    steps : tuple of str
        Values of an ordinal column in their order.
    codes : tuple of float
        Numbers in a numeric column that count as missing.
    signs : bool
        Whether a minus is a value of the column: it holds findings such as + and -.
    """

    name: str
    kind: FeatureKind
    odd_texts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    codes: tuple[float, ...] = ()
    signs: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Parameters
    ----------
    label, environment : str
        Names of those two columns.
    features : tuple of Feature
    identifiers : tuple of str
        Columns that name rows.
    dropped : mapping
        Column to the reason why it is no feature, the identifiers among them.
    remarks : tuple of str
        Sentences about values that were read in a way that their writer may not expect.
    positive : str
        The positive one of two classes, as text; empty for more classes, and in models that were saved without it.
    missing : tuple of str
        Values that count as missing in every column because the user said so.
    """

    label: str
    environment: str
    features: tuple[Feature, ...]
    identifiers: tuple[str, ...]
    dropped: Mapping[str, str]
    remarks: tuple[str, ...] = ()
    positive: str = ""
    missing: tuple[str, ...] = ()

    @property
    def listed(self) -> str:
        """The features by kind and name, in one sentence."""
        groups: dict[str, list[str]] = {}
        for feature in self.features:
            groups.setdefault(feature.kind, []).append(feature.name)
        parts = []
        for kind, names in groups.items():
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            parts.append(f"{len(names)} {kind} ({', '.join(names[:MAX_LISTED])}{more})")
        return f"Columns that are used: {'; '.join(parts)}."

    @property
    def signs(self) -> tuple[str, ...]:
        """Features in which a minus is a value."""
        return tuple(feature.name for feature in self.features if feature.signs)

    @property
    def notes(self) -> list[str]:
        """What was decided, in sentences."""
        lines = list(self.remarks)
        lines += [f"Column {name!r} is not used: {reason}." for name, reason in self.dropped.items()]
        for feature in self.features:
            if feature.odd_texts:
                shown = ", ".join(repr(text) for text in feature.odd_texts[:5])
                lines.append(f"Column {feature.name!r} holds numbers; {shown} in it count as missing.")
            if feature.steps:
                lines.append(f"Column {feature.name!r} is taken as steps in this order: {', '.join(feature.steps)}.")
        return lines

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "label": self.label,
            "environment": self.environment,
            "features": [
                {**vars(f), "odd_texts": list(f.odd_texts), "steps": list(f.steps), "codes": list(f.codes)}
                for f in self.features
            ],
            "identifiers": list(self.identifiers),
            "dropped": dict(self.dropped),
            "remarks": list(self.remarks),
            "positive": self.positive,
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Schema:
        """From plain data."""
        # The first folders of this format have no remarks, codes, signs, positive class or values that are missing.
        features = tuple(
            Feature(
                f["name"],
                f["kind"],
                tuple(f["odd_texts"]),
                tuple(f["steps"]),
                tuple(float(code) for code in f.get("codes", ())),
                f.get("signs", False),
            )
            for f in content["features"]
        )
        return cls(
            content["label"],
            content["environment"],
            features,
            tuple(content["identifiers"]),
            dict(content["dropped"]),
            tuple(content.get("remarks", ())),
            content.get("positive", ""),
            tuple(content.get("missing", ())),
        )


def subject_column(schema: Schema) -> str:
    """The identifier whose name says that it names subjects (patient_id, MRN, SubjectNumber); empty without one.

    Other identifiers repeat without a subject being the same: beds, devices and free text do.
    """
    for subjects in (SUBJECTS, CASES):
        for name in schema.identifiers:
            if _is_about(words_of(name), subjects):
                return name
    return ""


def _is_about(words: list[str], subjects: Sequence[str]) -> bool:
    """Whether a name is one of these words, or has one beside a word such as "id"; patient_bed_id is about beds."""
    naming = IDENTIFIER_WORDS | NUMBER_WORDS
    if "mrn" in words or (len(words) == 1 and words[0].removesuffix("id") in subjects):
        return True
    return any({a, b} & set(subjects) and {a, b} & naming for a, b in itertools.pairwise(words))


def require_columns(file: TableFile, names: Sequence[str]) -> None:
    """Refuse names that the table has not, with the nearest that it has."""
    for name in names:
        if name not in file.names:
            near = difflib.get_close_matches(name, file.names, n=1, cutoff=0.5)
            fold = [other for other in file.names if other.casefold() == name.casefold()]
            hint = f" Did you mean {shortened((fold or near)[0])}?" if fold or near else ""
            shown = ", ".join(map(cut, file.names[:12])) + (", ..." if len(file.names) > 12 else "")
            raise ValueError(f"{file.title} has no column {name!r}.{hint} Its columns are {shown}.")


def require_features(file: TableFile, schema: Schema, *further: str) -> None:
    """Refuse a table without the columns that a model needs, or with two of a name where the fit had one."""
    names = [*further, *(feature.name for feature in schema.features)]
    require_columns(file, names)
    for name in names:
        second = f"{name}.2"
        if second in file.renamed and second not in (*names, *schema.dropped):
            raise ValueError(
                f"{file.title} has two columns called {name!r}, and the data of the fit had one: rename or remove the "
                "other, so that it is clear which is meant."
            )


def as_at_the_fit(file: TableFile, schema: Schema) -> TableFile:
    """The same rows, with values missing where they would have been so at the fit."""
    return replace(file, missing=schema.missing, signs=schema.signs)


def words_of(name: str) -> list[str]:
    """The words of a column's name, in small letters."""
    return [word.lower() for word in re.findall(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+", name)]
