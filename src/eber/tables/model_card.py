"""The model card: what was fitted, on what, how, and how well it does where it has not been."""

from __future__ import annotations

import html
import importlib.metadata
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import eber
from eber.io.text import printable
from eber.tables.preprocessing import ColumnEncoding, Preprocessing
from eber.tables.schema import Schema
from eber.tuning.pool import EnvironmentPool
from eber.tuning.search import EnvironmentSearch

MAX_LISTED_LEVELS = 8
"""Values of a categorical column that the card names."""
_VERSIONS_OF = ("numpy", "scikit-learn", "torch", "pyarrow")


class Described(Protocol):
    """A table as far as its card speaks of it."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def weight(self) -> str:
        """The column that says how much each row counts; empty for none."""

    @property
    def class_counts(self) -> dict[str, dict[str, int]]:
        """Environment to the rows of each of its classes."""

    def __len__(self) -> int: ...


def describe(
    table: Described,
    classifier: Any,
    method: str,
    scores: Sequence[Mapping[str, Any]],
    remarks: Sequence[str],
    kept: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The model card: what was fitted, on what, how, and how well it does where it has not been.

    Parameters
    ----------
    scores : sequence of mappings
        Of each held-out fold: its name, its rows, and its metrics.
    remarks : sequence of str
        What to know about the folds.
    kept : sequence of mappings
        The settings that a search chose; empty for none.
    """
    environments = [
        {"name": name, "rows": sum(classes.values()), "classes": classes}
        for name, classes in table.class_counts.items()
    ]
    signs = getattr(classifier, "diagnostics_", [])
    return {
        "method": method,
        "data": {
            "file": table.name,
            "sha256": table.fingerprint,
            "rows": len(table),
            "label": table.schema.label,
            "environment": table.schema.environment,
            "classes": [str(label) for label in classifier.classes_],
            "positive": table.schema.positive,
            "weight": table.weight,
            "environments": environments,
            "notes": list(table.notes),
        },
        "settings": _settings(classifier, kept),
        "held_out_scores": [dict(entry) for entry in scores],
        "remarks": list(remarks),
        "signs_of_a_bad_fit": [str(sign) for sign in signs if sign.alarming],
        "versions": {
            "eber": eber.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _VERSIONS_OF},
        },
    }


def _settings(classifier: Any, kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Parameters by name; where settings were chosen those that were kept, and of a pool its weights."""
    if isinstance(classifier, EnvironmentPool):
        settings: dict[str, Any] = {}
        for name, weight, search in zip(classifier.names_, classifier.weights_, classifier.searches_, strict=True):
            settings[f"weight of {name}"] = round(float(weight), 3)
            settings |= {f"{name}: {key}": value for key, value in _settings(search, search.chosen_).items()}
        return settings
    base = classifier.estimator if isinstance(classifier, EnvironmentSearch) else classifier
    settings = {key: _plain(value) for key, value in base.get_params(deep=False).items()}
    return {**settings, "kept by the search": [dict(candidate) for candidate in kept]} if kept else settings


def card_page(card: Mapping[str, Any], preprocessing: Preprocessing) -> str:
    """The model card in Markdown."""
    data = card["data"]
    # Cards of the first folders name no positive class.
    positive = f"; {data['positive']} is the positive one" if data.get("positive") else ""
    weighted = f" Rows count by their weight ({_text(data['weight'])})." if data.get("weight") else ""
    lines = [
        f"# {card['method']} for {_text(data['label'])}",
        "",
        f"Fitted on {data['rows']} rows of {_text(data['file'])} (SHA-256 {data['sha256']}) from "
        f"{_environments(len(data['environments']))} ({_text(data['environment'])}). "
        f"Classes: {_text(', '.join(data['classes']) + positive)}.{weighted}",
        "",
        "## How it does in an environment that it was not fitted on",
        "",
    ]
    scores = card["held_out_scores"]
    if scores:
        metrics = [key for key in scores[0] if key not in ("held_out", "rows")]
        lines += [f"| held out | rows | {' | '.join(metrics)} |", "|---" * (len(metrics) + 2) + "|"]
        for entry in scores:
            values = ("–" if entry[key] is None else f"{entry[key]:.3f}" for key in metrics)
            lines.append(f"| {_cell(entry['held_out'])} | {entry['rows']} | {' | '.join(values)} |")
    else:
        lines.append("Not measured.")
    sections = {
        # Cards of earlier folders do not say it.
        "How far off it may be in a new environment": card.get("new_environment", []),
        "Remarks": [*card["remarks"], *data["notes"]],
        "Signs of a bad fit": card["signs_of_a_bad_fit"],
    }
    for title, entries in sections.items():
        if entries:
            lines += ["", f"## {title}", "", *(f"- {_text(entry)}" for entry in entries)]
    lines += ["", "## Columns", "", "| column | kind | missing | values |", "|---|---|---|---|"]
    for encoding in preprocessing.encodings:
        missing = encoding.missing_share if encoding.rows else "–"
        lines.append(f"| {_cell(encoding.name)} | {encoding.kind} | {missing} | {_cell(_values_of(encoding))} |")
    lines += ["", "## Environments", "", "| environment | rows | rows of each class |", "|---|---|---|"]
    for entry in data["environments"]:
        classes = ", ".join(f"{label}: {count}" for label, count in entry["classes"].items())
        lines.append(f"| {_cell(entry['name'])} | {entry['rows']} | {_cell(classes)} |")
    lines += ["", "## Settings", ""]
    lines += [f"- {key}: {_text(str(value))}" for key, value in card["settings"].items()]
    lines += ["", f"Versions: {', '.join(f'{name} {version}' for name, version in card['versions'].items())}.", ""]
    return "\n".join(lines)


def _values_of(encoding: ColumnEncoding) -> str:
    """What the training rows had in a column: its range, or its values as far as there is room for them."""
    if encoding.kind == "boolean":
        return "yes, no"
    if encoding.kind == "numeric":
        return "–" if encoding.low is None else f"{encoding.low:g} to {encoding.high:g}"
    if encoding.kind == "ordinal":
        return " < ".join(encoding.levels)
    shown = encoding.levels[:MAX_LISTED_LEVELS]
    more = encoding.n_levels - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _text(text: str) -> str:
    """Text that may hold anything, in one line of Markdown: no tag, link, picture or code is made of it."""
    return re.sub(r"([\\`*\[\]])", r"\\\1", html.escape(printable(" ".join(text.split())), quote=False))


def _cell(text: str) -> str:
    """The same as a cell of a table."""
    return _text(text).replace("|", r"\|")


def _environments(number: int) -> str:
    return "1 environment" if number == 1 else f"{number} environments"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
