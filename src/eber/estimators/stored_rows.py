"""A fit of rows that lie on disk in random order, which memory need not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from eber.estimators.base import EnvironmentClassifier, train_jobs
from eber.objectives.base import Batch
from eber.training import EpochCallback, isolated_torch


@dataclass(frozen=True)
class StoredRows:
    """Rows in random order, mapped from files or in memory.

    Parameters
    ----------
    X : array of shape (n, d), float32
        Finite. Maps must be private (``mode="c"``): torch takes no array that may only be read.
    y, e : arrays of shape (n,)
        Index of each row's class and environment.
    classes, environments : arrays
        What the indices are of, sorted, two classes at least.
    """

    X: NDArray[np.float32]
    y: NDArray[Any]
    e: NDArray[Any]
    classes: NDArray[Any]
    environments: NDArray[Any]


def fit_stored(classifier: EnvironmentClassifier, rows: StoredRows, callback: EpochCallback | None = None) -> None:
    """Fit a classifier to stored rows: blocks of neighbours are visited together, in long stretches of the files.

    Rows that do not lie in random order give a bad fit. What is fitted is otherwise what `fit` fits.
    """
    classifier._validate_params()
    classifier._check_parameters()
    if classifier.n_members > 1:
        raise ValueError(f"Rows on disk are fitted by one member; n_members is {classifier.n_members}.")
    for name in ("class_weight", "early_stopping", "warm_start"):
        if value := getattr(classifier, name):
            raise ValueError(f"Rows on disk are fitted without {name}, which is {value!r}; leave it out.")
    seed = classifier._draw_seed()
    attributes: dict[str, Any] = {
        "classes_": rows.classes,
        "input_shape_": rows.X.shape[1:],
        "seed_": seed,
        "n_features_in_": rows.X.shape[1],
    }
    if classifier._uses_environments:
        attributes["environments_"] = rows.environments
    data = Batch(torch.from_numpy(rows.X), torch.from_numpy(rows.y), torch.from_numpy(rows.e))
    with isolated_torch(seed, classifier.n_threads, classifier._draws_globally) as generator:
        job = classifier._job(attributes, data, generator)
        job = job._replace(settings=replace(job.settings, stored_at_random=True))
        (outcome,) = train_jobs([job], callback)
    job.complete(outcome)
