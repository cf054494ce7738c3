"""What a saved model must stand before it is handed out: a checksum shows only that nobody changed it by accident.

Sizes are compared with those of the weights before anything of that size is made, so that a forged number cannot fill
the memory; and the model answers for one row before anybody asks it in earnest, so that one which cannot is refused at
once and not in the middle of a file.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

MAX_POINTS = 1_000_000
"""Integration points that a saved model may ask for."""


def check_sizes(estimator: EnvironmentClassifier, weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse networks that are larger than the weights. What a featurizer of one's own makes is not looked at."""
    estimator._validate_params()
    estimator._check_parameters()
    check_points(estimator)
    if not all(isinstance(size, int) and size > 0 for size in estimator.input_shape_):
        raise ValueError(f"its rows have the shape {estimator.input_shape_}")
    if len(estimator.classes_) < 2:
        raise ValueError("it has fewer than two classes")
    if not (isinstance(latent_dim := getattr(estimator, "latent_dim_", 1), int) and latent_dim > 0):
        raise ValueError(f"its latent has {latent_dim!r} dimensions")
    if len(getattr(estimator, "environments_", ("all",))) == 0:
        raise ValueError("it has no environments")
    n_weights = sum(value.numel() for value in weights.values())
    for widths in _layers(estimator):
        if any(a * b > n_weights for a, b in itertools.pairwise(widths)):
            raise ValueError("its weights are fewer than the networks it describes have")


def _layers(estimator: EnvironmentClassifier) -> list[list[int]]:
    """Widths of layers that follow each other; between two stand at least so many weights as their product."""
    parameters, shape = estimator.get_params(deep=False), estimator.input_shape_
    hidden = estimator.hidden_dims if estimator.featurizer == "mlp" else ()
    places = math.prod(shape) if len(shape) == 1 else math.prod(size // 4 for size in shape[1:])  # pooled twice
    chains = [[places, *hidden, estimator.representation_dim]] if isinstance(estimator.featurizer, str) else []
    if "decoder_hidden_dims" in parameters:
        chains.append([estimator.latent_dim_, *parameters["decoder_hidden_dims"], len(estimator.classes_)])
    return chains


def check_points(estimator: EnvironmentClassifier) -> None:
    """Refuse integration rules that would fill the memory."""
    if (getattr(estimator, "prediction_points", None) or 0) > MAX_POINTS:
        raise ValueError(f"it asks for more than {MAX_POINTS} integration points")


def answer_one_row(estimator: EnvironmentClassifier) -> None:
    """Refuse a model that has no answer, or one that is no probability, for a row of zeros."""
    parameters = estimator.get_params(deep=False)
    if any(callable(value) for name, value in parameters.items() if name != "featurizer"):
        return  # such code is not stored; it is asked for when it is needed
    X: Any = np.zeros((1, *estimator.input_shape_))
    if hasattr(estimator, "feature_names_in_"):
        X = pd.DataFrame(X, columns=estimator.feature_names_in_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proba, z = estimator.predict_proba(X), estimator.transform(X)
        label = estimator.predict(X)
    right = proba.shape == (1, len(estimator.classes_)) and np.isclose(proba.sum(), 1) and (proba >= 0).all()
    if not (right and np.isfinite(z).all() and label.shape == (1,)):
        raise ValueError("it gives no probabilities")
