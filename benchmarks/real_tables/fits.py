"""What every setting of a method says about left-out training rows and about the held-out environment.

That is all that a search, a pool and any other rule of choosing need: rules are applied to these arrays without another
fit (`benchmarks.real_tables.rules`). Arrays of one method without one environment are one file, written whole or not at
all, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.real_tables.tables import prepared
from benchmarks.real_tables.variants import BOOSTED_MIXTURE, VARIANTS, boosted_mixture, environments_told
from eber.compare.methods import THOROUGH, build, candidates_of
from eber.datasets.base import MultiEnvironmentData
from eber.io.files import write_atomically
from eber.model_selection import Fold
from eber.tables.training import TrainingTable
from eber.training import one_thread
from eber.tuning.grids import BOOSTING, NETWORK, Candidate
from eber.tuning.left_out import choose_folds, fit_left_out, fit_sound
from eber.tuning.search import MAX_FOLDS

SEED = 0
METHODS = ("Logistic regression", "Gradient boosting", "Random forest", "EBER", "ERM")


@dataclass(frozen=True)
class Fits:
    """C settings of a method, fitted without one environment of a table.

    Attributes
    ----------
    left_out : (C, n, K)
        Probabilities of training rows while they were left out.
    proba : (C, n_test, K)
        Probabilities of the rows of the held-out environment.
    seconds : float
        Processor time of all of it.
    """

    left_out: NDArray[np.float64]
    proba: NDArray[np.float64]
    seconds: float


def path_of(folder: Path, table: str, held_out: str, method: str) -> Path:
    """Where the arrays of a method are."""
    return folder / table / held_out / f"{method}.npz"


def read_fits(path: Path) -> Fits:
    """What `fit_and_keep` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        return Fits(arrays["left_out"], arrays["proba"], float(arrays["seconds"]))


def fit_and_keep(folder: Path, name: str, table: TrainingTable, held_out: str, methods: Sequence[str]) -> None:
    """Fit those of the methods that are not in the folder yet."""
    X, X_test, held = prepared(table, held_out)
    train = MultiEnvironmentData(X, table.y[~held], table.environments[~held])
    for method in methods:
        path = path_of(folder, name, held_out, method)
        if path.exists():
            continue
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits = fit_settings(method, train, X_test)
        content = io.BytesIO()
        np.savez(content, left_out=fits.left_out, proba=fits.proba, seconds=fits.seconds)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
        print(f"{name}, without {held_out}: {method}, {fits.seconds:.1f} s of processor time", flush=True)


def fit_settings(method: str, train: MultiEnvironmentData, X_test: NDArray[np.float64]) -> Fits:
    """Every setting of a method, or of a variant of EBER, as the comparison would fit it."""
    start = time.process_time()
    _, folds = choose_folds(train.y, train.environments, MAX_FOLDS)
    if method == BOOSTED_MIXTURE:
        left_out, proba = boosted_mixture(train, X_test, folds, BOOSTING)
        return Fits(left_out, proba, time.process_time() - start)
    variant = VARIANTS.get(method)
    told = train if variant is None else environments_told(train, variant, SEED)
    m = len(told.environment_names)
    classifier = build("EBER" if variant else method, SEED, THOROUGH.epochs(len(train.y)), m)
    if variant:
        classifier.set_params(**variant.parameters)
    candidates = NETWORK if variant else candidates_of(method)
    left_out, proba = _fit(classifier, candidates, told, X_test, folds)
    return Fits(left_out, proba, time.process_time() - start)


def _fit(
    classifier: Any,
    candidates: Sequence[Candidate],
    train: MultiEnvironmentData,
    X_test: NDArray[np.float64],
    folds: list[Fold],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    left_out = fit_left_out(classifier, candidates, train, folds, len(np.unique(train.y))).proba
    fits = [clone(classifier).set_params(**candidate) for candidate in candidates]
    errors = fit_sound(fits, [train] * len(fits))
    shape = (len(X_test), left_out.shape[2])
    proba = [
        np.full(shape, np.nan) if error else fitted.predict_proba(X_test)
        for fitted, error in zip(fits, errors, strict=True)
    ]
    return left_out, np.stack(proba)
