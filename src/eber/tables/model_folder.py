"""A model folder: classifier, columns, preprocessing and model card, all as plain data.

``classifier-HASH/`` is what the classifier's own `save` writes; ``table.json`` holds schema, preprocessing and model
card, with a checksum, and names the classifier that they belong to; ``card.md`` is the card for people: what the model
is, what it was fitted on and how well it does. Nothing is pickled and no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import html
import importlib.metadata
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

import eber
from eber.estimators.base import EnvironmentClassifier
from eber.estimators.persistence import MANIFEST, encode_estimator, remove_files, write_files
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import MAX_BYTES, encode_checksummed, is_of_format, read_checksummed
from eber.io.files import read_regular, sole_writer, write_atomically
from eber.io.named_parts import JOURNAL, new_part
from eber.io.text import printable
from eber.runs.fitting import CLASSIFIERS
from eber.tables.preprocessing import ColumnEncoding, Preprocessing
from eber.tables.schema import FeatureKind, Schema
from eber.tables.training import FeatureColumns, TrainingTable
from eber.tables.unlike_training import UnlikeTraining

FORMAT, FORMAT_VERSION = "eber-table-model", 1
TABLE_FILE, CARD_PAGE = "table.json", "card.md"
MAX_LISTED_LEVELS = 8
"""Values of a categorical column that the card names."""
TEXT_KINDS = ("categorical", "ordinal")
CLASSIFIER_FOLDER = "classifier"
AGAIN = "Fit the model again."
_CLASSIFIER = re.compile(rf"{CLASSIFIER_FOLDER}-[0-9a-f]{{16}}")
_OURS = re.compile(rf"{_CLASSIFIER.pattern}|{re.escape(JOURNAL)}|\.lock|\..*\.tmp")
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
        """Write the folder, which is the old model until ``table.json`` has been replaced, and the new one then."""
        prepare_folder(folder)
        files = encode_estimator(self.classifier)
        digest = _digest(files[MANIFEST])
        place = folder / f"{CLASSIFIER_FOLDER}-{digest[:16]}"
        content = {
            "class": type(self.classifier).__name__,
            "schema": self.schema.to_json(),
            "preprocessing": self.preprocessing.to_json(),
            "card": self.card,
            # The classifier and its preprocessing belong together: columns in another order would be silent nonsense.
            "classifier": {"folder": place.name, "sha256": digest},
        }
        parts = new_part(folder, place.name, _CLASSIFIER, lambda: _named_classifier(folder), remove_files)
        with sole_writer(folder), parts:
            write_files(place, files)
            (folder / CARD_PAGE).unlink(missing_ok=True)  # rather none than one of another fit
            write_atomically(folder / TABLE_FILE, encode_checksummed(content, FORMAT, FORMAT_VERSION))
            write_atomically(folder / CARD_PAGE, card_page(self.card, self.preprocessing))

    @classmethod
    def load(cls, folder: Path) -> Bundle:
        """Read a folder that `save` wrote."""
        try:
            content = _read_content(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ModelFileError(
                f"{folder} holds no model that `eber fit` saved: there is no {TABLE_FILE} in it."
            ) from error
        classes = {kind.__name__: kind for kind in CLASSIFIERS.values()}
        try:
            kind = classes[content["class"]]
            schema = Schema.from_json(content["schema"])
            preprocessing = Preprocessing.from_json(content["preprocessing"])
            card = content["card"]
            place = folder / Path(content["classifier"]["folder"]).name
            manifest = read_regular(place / MANIFEST, MAX_BYTES)
            if _digest(manifest) != content["classifier"]["sha256"]:
                raise ModelFileError(f"{place}: the classifier and {TABLE_FILE} are of different fits. {AGAIN}")
            bundle = cls(kind.load(place), schema, preprocessing, card)
            _answer_one_row(bundle)
        except ModelFileError:
            raise
        except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ModelFileError(f"{folder} is incomplete or of another version ({error}). {AGAIN}") from error
        return bundle


def _read_content(folder: Path) -> dict[str, Any]:
    return read_checksummed(folder / TABLE_FILE, FORMAT, FORMAT_VERSION, AGAIN, ModelFileError)


def _named_classifier(folder: Path) -> str | None:
    """The folder of the classifier that a model consists of, if there is a model."""
    try:
        return str(_read_content(folder)["classifier"]["folder"])
    except (ModelFileError, OSError, LookupError, TypeError):
        return None


def prepare_folder(folder: Path) -> None:
    """Make the folder of a model, and refuse one that holds anything else or cannot be written to."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder to save the model in.")
    folder.mkdir(parents=True, exist_ok=True)
    # What a fit that was killed has left may be written over.
    others = [path for path in folder.iterdir() if not _OURS.fullmatch(path.name)]
    has_model = (folder / TABLE_FILE).exists() and is_of_format(folder / TABLE_FILE, FORMAT)
    if others and not has_model:
        raise ValueError(f"{folder} holds other things and no model; give an empty or a new folder.")
    with sole_writer(folder):
        pass


def _answer_one_row(bundle: Bundle) -> None:
    """Refuse a model whose columns, preprocessing and classifier do not fit together.

    Rows with and without values go the way that the rows of a file will go.
    """
    schema = bundle.schema
    texts = [schema.label, schema.environment, *schema.identifiers, *schema.dropped, *schema.dropped.values()]
    texts += schema.remarks
    texts += [text for feature in schema.features for text in (feature.name, *feature.odd_texts)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name in it is no text")
    kinds = {feature.name: feature.kind for feature in schema.features}
    if not set(kinds.values()) <= set(get_args(FeatureKind)) or kinds != {
        encoding.name: encoding.kind for encoding in bundle.preprocessing.encodings
    }:
        raise ValueError("its columns and its preprocessing are of different tables")
    if not all(0 < encoding.scale < math.inf for encoding in bundle.preprocessing.encodings):
        raise ValueError("a column in it has no scale")
    columns = FeatureColumns(
        {
            feature.name: pa.array([None, "?"]) if feature.kind in TEXT_KINDS else np.array([np.nan, 1.0])
            for feature in schema.features
        },
        n_rows=2,
    )
    bundle.preprocessing.unseen(columns)
    departures = UnlikeTraining(bundle.preprocessing)
    departures.count(columns)
    departures.sentences()
    bundle.classifier.predict_proba(bundle.preprocessing.transform(columns))


def describe(
    table: TrainingTable,
    classifier: EnvironmentClassifier,
    method: str,
    scores: Sequence[Mapping[str, Any]],
    remarks: Sequence[str],
) -> dict[str, Any]:
    """The model card: what was fitted, on what, how, and how well it does where it has not been.

    Parameters
    ----------
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
            "sha256": table.fingerprint,
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


def card_page(card: Mapping[str, Any], preprocessing: Preprocessing) -> str:
    """The model card in Markdown."""
    data = card["data"]
    lines = [
        f"# {card['method']} for {_text(data['label'])}",
        "",
        f"Fitted on {data['rows']} rows of {_text(data['file'])} (SHA-256 {data['sha256']}) from "
        f"{_environments(len(data['environments']))} ({_text(data['environment'])}). "
        f"Classes: {_text(', '.join(data['classes']))}.",
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


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
