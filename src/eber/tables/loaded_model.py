"""Whether the parts of a model that was read from a folder fit together."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import FeatureKind, Schema
from eber.tables.training import FeatureColumns
from eber.tables.unlike_training import UnlikeTraining
from eber.tuning.calibration import Calibration
from eber.tuning.few_labels import said

TEXT_KINDS = ("categorical", "ordinal")


def answer_one_row(
    classifier: Any, schema: Schema, preprocessing: Preprocessing, calibration: Calibration | None
) -> None:
    """Refuse a model whose columns, preprocessing and classifier do not fit together.

    Rows with and without values go the way that the rows of a file will go.
    """
    texts = [schema.label, schema.environment, *schema.identifiers, *schema.dropped, *schema.dropped.values()]
    texts += [*schema.remarks, schema.positive, *schema.missing]
    texts += [text for feature in schema.features for text in (feature.name, *feature.odd_texts)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name in it is no text")
    encodings = preprocessing.encodings
    kinds = [(feature.name, feature.kind) for feature in schema.features]
    # In another order the classifier would take one column for another.
    if not {kind for _, kind in kinds} <= set(get_args(FeatureKind)) or kinds != [(e.name, e.kind) for e in encodings]:
        raise ValueError("its columns and its preprocessing are of different tables")
    if not all(0 < encoding.scale < math.inf for encoding in encodings):
        raise ValueError("a column in it has no scale")
    if not all(math.isfinite(encoding.mean) and math.isfinite(encoding.fill) for encoding in encodings):
        raise ValueError("a column in it has no mean")
    if not all(len(set(encoding.levels)) == len(encoding.levels) <= encoding.n_levels for encoding in encodings):
        raise ValueError("values of a column in it are not different ones")
    if not all(isinstance(feature.signs, bool) for feature in schema.features):
        raise ValueError("a column in it is neither of signs nor not")
    columns = FeatureColumns(
        {
            feature.name: pa.array([None, "?"]) if feature.kind in TEXT_KINDS else np.array([np.nan, 1.0])
            for feature in schema.features
        },
        n_rows=2,
    )
    preprocessing.unseen(columns)
    unlike = UnlikeTraining(preprocessing)
    unlike.count(columns)
    unlike.sentences()
    X = preprocessing.transform(columns)
    classifier.predict_proba(X)
    if calibration is not None and len(calibration.mean) > 1 + len(classifier.classes_):
        # Only EBER's environments have predictions of their own, and there is a weight for each.
        calibration.apply(*said(classifier, X))
