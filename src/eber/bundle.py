"""A model folder: classifier, columns, preprocessing and model card, all as plain data.

``classifier/`` is what the classifier's own `save` writes; ``table.json`` holds schema and preprocessing, with a
checksum; ``card.json`` and ``card.md`` say what the model is, what it was fitted on and how well it does. Nothing is
pickled and no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import eber
from eber.estimators.base import EnvironmentClassifier
from eber.estimators.persistence import MANIFEST
from eber.exceptions import ModelFileError
from eber.experiments.fitting import CLASSIFIERS
from eber.files import write_atomically
from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import Schema
from eber.tables.training import TrainingTable

FORMAT, FORMAT_VERSION = "eber-table-model", 1
TABLE_FILE, CARD_FILE, CARD_PAGE = "table.json", "card.json", "card.md"
CLASSIFIER_FOLDER = "classifier"
_VERSIONS_OF = ("numpy", "scikit-learn", "torch", "pyarrow")


@dataclass(frozen=True)
class Bundle:
    """A fitted model with all that is needed to use it on a file.

    Parameters
    ----------
    classifier : EnvironmentClassifier
        Fitted.
    schema : Schema
    preprocessing : Preprocessing
    card : mapping
        Plain data; see `describe`.
    """

    classifier: EnvironmentClassifier
    schema: Schema
    preprocessing: Preprocessing
    card: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Write the folder; the table's description comes last, and a folder without it is no model."""
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file; give a folder to save the model in.")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / TABLE_FILE).exists():
            raise ValueError(f"{folder} holds other things and no model; give an empty or a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        self.classifier.save(folder / CLASSIFIER_FOLDER)
        write_atomically(folder / CARD_FILE, json.dumps(self.card, indent=1) + "\n")
        write_atomically(folder / CARD_PAGE, card_page(self.card))
        content = {
            "class": type(self.classifier).__name__,
            "schema": self.schema.to_json(),
            "preprocessing": self.preprocessing.to_json(),
            # The classifier and its preprocessing belong together: columns in another order would be silent nonsense.
            "classifier": _digest((folder / CLASSIFIER_FOLDER / MANIFEST).read_bytes()),
        }
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "sha256": _checksum(content),
            "content": content,
        }
        write_atomically(folder / TABLE_FILE, json.dumps(document, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Bundle:
        """Read a folder that `save` wrote."""
        content = _read_document(folder / TABLE_FILE)
        classes = {kind.__name__: kind for kind in CLASSIFIERS.values()}
        try:
            kind = classes[content["class"]]
            schema = Schema.from_json(content["schema"])
            preprocessing = Preprocessing.from_json(content["preprocessing"])
            card = json.loads((folder / CARD_FILE).read_text())
            manifest = (folder / CLASSIFIER_FOLDER / MANIFEST).read_bytes()
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"{folder} is incomplete or of another version ({error}). Fit the model again."
            ) from error
        if _digest(manifest) != content["classifier"]:
            raise ModelFileError(
                f"{folder}: the classifier and {TABLE_FILE} are of different fits. Fit the model again."
            )
        return cls(kind.load(folder / CLASSIFIER_FOLDER), schema, preprocessing, card)


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


def card_page(card: Mapping[str, Any]) -> str:
    """The model card in Markdown."""
    data = card["data"]
    lines = [
        f"# {card['method']} for {data['label']}",
        "",
        f"Fitted on {data['rows']} rows of `{data['file']}` (SHA-256 {data['sha256']}) from "
        f"{len(data['environments'])} environments (`{data['environment']}`). Classes: {', '.join(data['classes'])}.",
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
            lines.append(f"| {entry['held_out']} | {entry['rows']} | {' | '.join(values)} |")
    else:
        lines.append("Not measured.")
    sections = {"Remarks": [*card["remarks"], *data["notes"]], "Signs of a bad fit": card["signs_of_a_bad_fit"]}
    for title, entries in sections.items():
        if entries:
            lines += ["", f"## {title}", "", *(f"- {entry}" for entry in entries)]
    lines += ["", "## Environments", "", "| environment | rows | rows of each class |", "|---|---|---|"]
    for entry in data["environments"]:
        classes = ", ".join(f"{label}: {count}" for label, count in entry["classes"].items())
        lines.append(f"| {entry['name']} | {entry['rows']} | {classes} |")
    lines += ["", "## Settings", ""]
    lines += [f"- {key}: {value}" for key, value in card["settings"].items()]
    lines += ["", f"Versions: {', '.join(f'{name} {version}' for name, version in card['versions'].items())}.", ""]
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelFileError(f"{path.parent} holds no model that `eber fit` saved: there is no {path.name}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not readable JSON; it is truncated or altered. Fit the model again."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} does not describe a model that `eber fit` saved.")
    if document.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {document.get('format_version')!r}; this version reads {FORMAT_VERSION}."
        )
    content = document.get("content")
    if not isinstance(content, dict) or document.get("sha256") != _checksum(content):
        raise ModelFileError(f"{path} has been altered since it was saved: its checksum does not fit its content.")
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return _digest(json.dumps(content, sort_keys=True).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
