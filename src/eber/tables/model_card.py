"""The model card: what was fitted, on what, how, and how well it does where it has not been."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import eber
from eber.estimators.base import EnvironmentClassifier
from eber.tables.preprocessing import ColumnEncoding, Preprocessing
from eber.tables.training import TrainingTable

MAX_LISTED_LEVELS = 8
"""Values of a categorical column that the card names."""
_VERSIONS_OF = ("numpy", "scikit-learn", "torch", "pyarrow")


def describe(
    table: TrainingTable,
    classifier: EnvironmentClassifier,
    method: str,
    data: str,
    scores: Sequence[Mapping[str, Any]],
    remarks: Sequence[str],
) -> dict[str, Any]:
    """The model card: what was fitted, on what, how, and how well it does where it has not been.

    Parameters
    ----------
    data : str
        Fingerprint of the data.
    scores : sequence of mappings
        Of each held-out fold: its name, its rows, and its metrics.
    remarks : sequence of str
        What to know about the folds.
    """
    environments = []
    for name in np.unique(table.environments):
        labels, counts = np.unique(table.y[table.environments == name], return_counts=True)
        classes = {str(label): int(count) for label, count in zip(labels, counts, strict=True)}
        environments.append({"name": str(name), "rows": int(counts.sum()), "classes": classes})
    signs = getattr(classifier, "diagnostics_", [])
    return {
        "method": method,
        "data": {
            "file": table.name,
            "sha256": data,
            "rows": len(table),
            "label": table.schema.label,
            "environment": table.schema.environment,
            "classes": [str(label) for label in classifier.classes_],
            "positive": table.schema.positive,
            "environments": environments,
            "notes": list(table.notes),
        },
        "settings": {key: _plain(value) for key, value in classifier.get_params(deep=False).items()},
        "held_out_scores": [dict(entry) for entry in scores],
        "remarks": list(remarks),
        "signs_of_a_bad_fit": [str(sign) for sign in signs if sign.alarming],
        "versions": {
            "eber": eber.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _VERSIONS_OF},
        },
    }


def card_page(card: Mapping[str, Any], preprocessing: Preprocessing) -> str:
    """The model card in Markdown."""
    data = card["data"]
    # Cards of the first folders name no positive class.
    positive = f"; {data['positive']} is the positive one" if data.get("positive") else ""
    lines = [
        f"# {card['method']} for {data['label']}",
        "",
        f"Fitted on {data['rows']} rows of `{data['file']}` (SHA-256 {data['sha256']}) from "
        f"{_environments(len(data['environments']))} (`{data['environment']}`). Classes: {', '.join(data['classes'])}"
        f"{positive}.",
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
    sections = {"Remarks": [*card["remarks"], *data["notes"]], "Signs of a bad fit": card["signs_of_a_bad_fit"]}
    for title, entries in sections.items():
        if entries:
            lines += ["", f"## {title}", "", *(f"- {entry}" for entry in entries)]
    lines += ["", "## Columns", "", "| column | kind | missing | values |", "|---|---|---|---|"]
    for encoding in preprocessing.encodings:
        missing = encoding.missing_share if encoding.rows else "–"
        lines.append(f"| {_cell(encoding.name)} | {encoding.kind} | {missing} | {_cell(_values_of(encoding))} |")
    lines += ["", "## Environments", "", "| environment | rows | rows of each class |", "|---|---|---|"]
    for entry in data["environments"]:
        classes = ", ".join(f"{label}: {count}" for label, count in entry["classes"].items())
        lines.append(f"| {_cell(entry['name'])} | {entry['rows']} | {_cell(classes)} |")
    lines += ["", "## Settings", ""]
    lines += [f"- {key}: {value}" for key, value in card["settings"].items()]
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


def _cell(text: str) -> str:
    """Text that may hold anything, as a cell of a Markdown table."""
    return " ".join(text.replace("|", r"\|").split())


def _environments(number: int) -> str:
    return "1 environment" if number == 1 else f"{number} environments"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
