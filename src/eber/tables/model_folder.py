"""A model folder: classifier, columns, preprocessing and model card, all as plain data.

``classifier-HASH/`` is what the classifier's own `save` writes; ``table.json`` holds schema, preprocessing and model
card, with a checksum, and names the classifier that they belong to; ``card.md`` is the card for people: what the model
is, what it was fitted on and how well it does. Nothing is pickled and no code from the folder is run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.estimators.base import EnvironmentClassifier
from eber.estimators.persistence import MANIFEST, encode_estimator, remove_files, write_files
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import MAX_BYTES, encode_checksummed, is_of_format, read_checksummed
from eber.io.display import html_display, html_table, text_display, text_table
from eber.io.files import permissions, read_regular, sole_writer, write_atomically
from eber.io.named_parts import JOURNAL, new_part
from eber.io.plain_data import from_json, to_json
from eber.io.text import count
from eber.methods import find_saved_class, saved_name
from eber.tables.loaded_model import answer_one_row
from eber.tables.model_card import card_page
from eber.tables.preprocessing import Preprocessing
from eber.tables.reading import Reading
from eber.tables.schema import Schema
from eber.tuning.calibration import Calibration, restored_calibration
from eber.tuning.persistence import PLAIN, TUNED, encode_tuned, load_tuned
from eber.tuning.plain_models import PLAIN_KINDS, plain_model
from eber.tuning.pool import EnvironmentPool
from eber.tuning.search import EnvironmentSearch

if TYPE_CHECKING:
    from eber.tables.predictions import TablePredictions

FORMAT, FORMAT_VERSION = "eber-table-model", 1
TABLE_FILE, CARD_PAGE = "table.json", "card.md"
TEXT_KINDS = ("categorical", "ordinal")
CLASSIFIER_FOLDER = "classifier"
AGAIN = "Fit the model again."
_CLASSIFIER = re.compile(rf"{CLASSIFIER_FOLDER}-[0-9a-f]{{16}}")
_OURS = re.compile(rf"{_CLASSIFIER.pattern}|{re.escape(JOURNAL)}|\.lock|\..*\.tmp")


@dataclass(frozen=True, repr=False)
class TableModel:
    """A fitted model with all that is needed to use it on a table: what `fit_table` and `load_model` give.

    Parameters
    ----------
    classifier : classifier
        Fitted, on the columns as `preprocessing` makes them: one of the library's own kind, a search or a pool, or a
        model of scikit-learn, which is read back as arrays (`eber.tuning.plain_models`).
    schema : Schema
        The columns of the table.
    preprocessing : Preprocessing
    card : mapping
        The model card as plain data; see :func:`eber.tables.model_card.describe`.
    calibration : Calibration, optional
        How environments differ, from leaving them out; or what labels of a new one have left of it.
    """

    classifier: Any
    schema: Schema
    preprocessing: Preprocessing
    card: Mapping[str, Any]
    calibration: Calibration | None = None

    @property
    def notes(self) -> list[str]:
        """What was decided about columns, rows and held-out environments, in sentences."""
        return [*self.card["data"]["notes"], *self.card["remarks"]]

    @property
    def held_out_scores(self) -> pd.DataFrame:
        """How it does where it was not fitted: one row for each held-out fold; none where that was not measured."""
        return pd.DataFrame(self.card["held_out_scores"])

    def predict_table(
        self,
        table: Any,
        out: str | Path | None = None,
        *,
        keep: Iterable[str] = (),
        adapt: bool = False,
        force: bool = False,
        labelled: Any = None,
        level: float = 0.9,
        sheet: str | None = None,
        query: str | None = None,
        encoding: str | None = None,
    ) -> TablePredictions:
        """Predict every row of a table; neither labels nor environments are needed in it.

        Parameters
        ----------
        table : str, Path or DataFrame
            A file or folder, or a DataFrame of pandas, polars or pyarrow.
        out : str or Path, optional
            File to write, .csv or .parquet; rows then go through batch after batch, and memory does not grow with
            them. Where the table is a folder it may be a folder too, which gets a file of predictions for each
            file of the table, under the same name; what it has already is not done again. Without it the predictions
            are a frame of the kind that was given, of pandas for a file.
        keep : iterable of str
            Columns to be copied into the predictions, as identifiers of the fit are in any case.
        adapt : bool
            First re-estimate, from these rows, which environments they resemble. An `AdaptationWarning` says when not
            to trust that; where it did not help in left-out training environments it is not done.
        force : bool
            Adapt also there.
        labelled : str, Path or DataFrame, optional
            Rows of the new environment whose labels are known, from which slope and intercepts are learned; see
            `adapt_to_labels`. It may be the table itself, with labels in some rows.
        level : float
            Probability with which a new environment lies between the columns `low` and `high`.
        sheet, query, encoding : str, optional
            How a file is read; see `compare_table`.

        Returns
        -------
        TablePredictions
            Its `frame`, or the path of the file, with what to know about these rows.
        """
        from eber.tables.prediction import predict_table  # which knows this class

        return predict_table(
            self,
            table,
            out,
            keep=keep,
            adapt=adapt,
            force=force,
            labelled=labelled,
            level=level,
            reading=Reading(sheet, query, encoding),
        )

    def predict_interval(
        self, table: Any, level: float = 0.9, *, sheet: str | None = None, query: str | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where each probability lies in a new environment with probability `level`.

        Returns
        -------
        low, high : arrays of shape (n, K)
            Columns as in ``classifier.classes_``. They narrow as labels arrive (`adapt_to_labels`), and with few
            training environments they are wide.
        """
        from eber.tables.prediction import predict_interval  # which knows this class

        return predict_interval(self, table, level, Reading(sheet, query))

    def adapt_to_labels(self, labelled: Any, *, sheet: str | None = None, query: str | None = None) -> TableModel:
        """A model that has learned from labelled rows of a new environment; given again, further labels add to them.

        Slope and intercepts of its probabilities are what these labels say, shrunk to what left-out training
        environments had. It is saved like any other, and its card says what was learned.

        Parameters
        ----------
        labelled : str, Path or DataFrame
            With the model's columns and its label; rows without a label are left out.
        """
        from eber.tables.labelled_rows import adapt_to_labels  # which knows this class

        return adapt_to_labels(self, labelled, Reading(sheet, query))[0]

    @property
    def fingerprint(self) -> str:
        """A text that changes whenever an answer of the model might."""
        plain = [self.schema.to_json(), self.preprocessing.to_json(), to_json(self.calibration, "calibration")]
        digest = hashlib.sha256(repr(plain).encode())
        for content in _encoded(self.classifier)[1].values():
            digest.update(content)
        return digest.hexdigest()

    def __repr__(self) -> str:
        heads, lines = self._scores()
        scores = [text_table(heads, lines)] if lines else ["Not measured how it does in a new environment."]
        return text_display([self._title, *scores, *self.card["signs_of_a_bad_fit"]])

    def _repr_html_(self) -> str:
        heads, lines = self._scores()
        scores = html_table(heads, lines, "How it does where it was not fitted.") if lines else ""
        return html_display(self._title, [scores], {"Notes": self.notes, "Bad signs": self.card["signs_of_a_bad_fit"]})

    @property
    def _title(self) -> str:
        data = self.card["data"]
        environments = count(len(data["environments"]), "environment")
        return (
            f"{self.card['method']} for {data['label']}, fitted on {count(data['rows'], 'row')} of {data['file']}: "
            f"{count(len(self.schema.features), 'feature')}, {environments} ({data['environment']})."
        )

    def _scores(self) -> tuple[list[str], list[list[str]]]:
        scores = self.card["held_out_scores"]
        metrics = [key for key in scores[0] if key not in ("held_out", "rows")] if scores else []
        lines = []
        for entry in scores:
            values = ("–" if entry[key] is None else f"{entry[key]:.3f}" for key in metrics)
            lines.append([entry["held_out"], str(entry["rows"]), *values])
        return ["held out", "rows", *metrics], lines

    def save(self, folder: str | Path) -> None:
        """Write the folder, which is the old model until ``table.json`` has been replaced, and the new one then."""
        folder = Path(folder)
        prepare_folder(folder)
        kind, files = _encoded(self.classifier)
        digest = _digest(files[MANIFEST])
        place = folder / f"{CLASSIFIER_FOLDER}-{digest[:16]}"
        content = {
            "class": saved_name(kind),
            "schema": self.schema.to_json(),
            "preprocessing": self.preprocessing.to_json(),
            "card": self.card,
            "calibration": to_json(self.calibration, "calibration"),
            # The classifier and its preprocessing belong together: columns in another order would be silent nonsense.
            "classifier": {"folder": place.name, "sha256": digest},
        }
        parts = new_part(folder, place.name, _CLASSIFIER, lambda: _named_classifier(folder), remove_files)
        with sole_writer(folder), parts:
            mode = permissions(folder / TABLE_FILE)
            of_card = permissions(folder / CARD_PAGE, mode)
            write_files(place, files, mode)
            (folder / CARD_PAGE).unlink(missing_ok=True)  # rather none than one of another fit
            write_atomically(folder / TABLE_FILE, encode_checksummed(content, FORMAT, FORMAT_VERSION))
            write_atomically(folder / CARD_PAGE, card_page(self.card, self.preprocessing), of_card)

    @classmethod
    def load(cls, folder: str | Path) -> TableModel:
        """Read a folder that `save` wrote."""
        folder = Path(folder)
        try:
            content = _read_content(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ModelFileError(
                f"{folder} holds no model that `eber fit` saved: there is no {TABLE_FILE} in it."
            ) from error
        try:
            name = content["class"]
            tuned: Any = (TUNED | PLAIN).get(name)
            kind: Any = None if tuned else find_saved_class(name)
            schema = Schema.from_json(content["schema"])
            preprocessing = Preprocessing.from_json(content["preprocessing"])
            card = content["card"]
            place = folder / Path(content["classifier"]["folder"]).name
            manifest = read_regular(place / MANIFEST, MAX_BYTES)
            if _digest(manifest) != content["classifier"]["sha256"]:
                raise ModelFileError(f"{place}: the classifier and {TABLE_FILE} are of different fits. {AGAIN}")
            classifier = load_tuned(tuned, place) if tuned else kind.load(place)
            # The first folders have none.
            entry = from_json(content.get("calibration"))
            calibration = None if entry is None else restored_calibration(entry, len(classifier.classes_))
            model = cls(classifier, schema, preprocessing, card, calibration)
            answer_one_row(classifier, schema, preprocessing, calibration)
            _show(model)
        except ModelFileError:
            raise
        except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ModelFileError(f"{folder} is incomplete or of another version ({error}). {AGAIN}") from error
        return model


def _encoded(classifier: Any) -> tuple[type[Any], dict[str, bytes]]:
    """The class that a classifier is saved as, and its files."""
    if isinstance(classifier, EnvironmentClassifier):
        return type(classifier), encode_estimator(classifier)
    if not isinstance(classifier, EnvironmentSearch | EnvironmentPool):
        classifier = plain_model(classifier)
    return type(classifier), encode_tuned(classifier)


def _read_content(folder: Path) -> dict[str, Any]:
    return read_checksummed(folder / TABLE_FILE, FORMAT, FORMAT_VERSION, AGAIN, ModelFileError)


def _named_classifier(folder: Path) -> str | None:
    """The folder of the classifier that a model consists of, if there is a model."""
    try:
        return str(_read_content(folder)["classifier"]["folder"])
    except (ModelFileError, OSError, LookupError, TypeError):
        return None


def can_hold(classifier: Any) -> bool:
    """Whether a model folder can hold a classifier, fitted or not, as plain data."""
    return isinstance(classifier, EnvironmentClassifier | EnvironmentPool) or type(classifier) in PLAIN_KINDS


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


def _show(model: TableModel) -> None:
    """Refuse a model whose card cannot be shown, at once and not when somebody looks at it."""
    card_page(model.card, model.preprocessing)
    if not (repr(model) and model._repr_html_() and all(isinstance(note, str) for note in model.notes)):
        raise ValueError("its card is none")
    if len(model.held_out_scores) != len(model.card["held_out_scores"]):
        raise ValueError("its scores are none")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
