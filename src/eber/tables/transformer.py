"""The preprocessing of `eber fit` as a step of a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from eber.tables.column_decisions import find_schema
from eber.tables.files import TableFile, open_table
from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import Schema, as_at_the_fit, require_features
from eber.tables.training import decode

NO_COLUMN = ""
"""A name that no column of an opened table has: here neither a label nor an environment is among them."""


class TablePreprocessor(TransformerMixin, BaseEstimator):
    """Mixed columns to a matrix of numbers, by the rules of `eber fit`.

    Numeric columns are imputed by their median and standardised, yes/no columns become 0 and 1, ordered categories the
    number of their step, other categories a column for each frequent value; a further column says where a value was
    missing. Identifiers, dates and constants are left out, and `notes_` says so.

    Parameters
    ----------
    drop : str or iterable of str
        Columns not to be used.
    features : str or iterable of str, optional
        Exactly the columns to be used, identifiers and constants too if they are named here.

    Attributes
    ----------
    schema_ : Schema
        Which columns are used, as what, and why the others are not.
    preprocessing_ : Preprocessing
        What the rows of the fit showed: medians, means, categories.
    notes_ : list of str
        What was decided about columns, in sentences.
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Examples
    --------
    >>> import pandas as pd
    >>> from eber import TablePreprocessor
    >>> table = pd.DataFrame({"age": [30, 50, None], "smokes": ["yes", "no", "no"], "ward": ["A", "B", "A"]})
    >>> step = TablePreprocessor().fit(table)
    >>> step.get_feature_names_out().tolist()
    ['age', 'age is missing', 'smokes', 'ward = A', 'ward = B']
    >>> step.transform(table)[:, 2]
    array([1., 0., 0.])
    """

    def __init__(self, drop: str | Iterable[str] = (), features: str | Iterable[str] | None = None) -> None:
        self.drop = drop
        self.features = features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what each column is, and learn medians, means and categories.

        Parameters
        ----------
        X : DataFrame of pandas, polars or pyarrow, or array of shape (n, d)
            The columns of an array are called x0, x1, ...
        y : ignored
        """
        file = self._open(X, reset=True)
        rows = file.read()
        if rows.num_rows == 1:
            raise ValueError("X has a single row (1 sample), in which nothing varies; give several rows to learn from.")
        # Without environments no column can be told to be a name for them.
        nowhere = np.zeros(rows.num_rows)
        chosen = None if self.features is None else _names(self.features)
        schema = find_schema(
            file,
            rows,
            nowhere,
            label=NO_COLUMN,
            environment=NO_COLUMN,
            drop=_names(self.drop),
            features=chosen,
        )
        self.preprocessing_ = Preprocessing.fit(decode(rows, file, schema), schema)
        self.schema_: Schema = schema
        self.notes_ = [*file.notes, *schema.notes]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The matrix, (n, d).

        Columns are found by name: their order does not matter, and columns that the fit has not seen are not used.
        """
        check_is_fitted(self)
        # A minus is what it was at the fit, whatever the other rows of this table hold.
        file = as_at_the_fit(self._open(X, reset=False), self.schema_)
        require_features(file, self.schema_)
        parts, n_rows = list[NDArray[np.float64]](), 0
        for rows in file.batches([feature.name for feature in self.schema_.features]):
            parts.append(self.preprocessing_.transform(decode(rows, file, self.schema_, n_rows)))
            n_rows += rows.num_rows
        if not parts:
            raise ValueError(f"{file.title} has columns but no rows.")
        return np.concatenate(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the matrix, such as "age", "ward = A" and "age is missing".

        Parameters
        ----------
        input_features : ignored
            The names are those of the fit.
        """
        check_is_fitted(self)
        return np.array(self.preprocessing_.names_out, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _open(self, X: Any, *, reset: bool) -> TableFile:
        """The rows as a table; the names and the number of the columns are noted, or held against those of the fit."""
        if sparse.issparse(X):
            raise TypeError(
                "Sparse input is not supported: TablePreprocessor takes a DataFrame with a name and a kind for each "
                "column; give X.toarray() where all columns are numbers."
            )
        if hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
            file = open_table(X)
            if reset:
                self.feature_names_in_ = np.array(file.names, dtype=object)
                self.n_features_in_ = len(file.names)
            return file
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(array.shape[1])])
        return open_table(pd.DataFrame(array, columns=names).infer_objects())


def _names(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
