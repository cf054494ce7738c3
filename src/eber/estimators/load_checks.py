"""What a saved model must stand before it is handed out: a checksum shows only that nobody changed it by accident.

The networks that a manifest describes are first built without memory for their numbers, and held against the weights,
so that a forged size cannot fill the memory; and the model answers for one row before anybody asks it in earnest, so
that one which cannot is refused at once and not in the middle of a file.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from eber.estimators.pieces import check_pieces
from eber.nn.networks import ConditionalNetwork

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

MAX_POINTS = 1_000_000
"""Integration points that a saved model may ask for."""
MAX_LAYERS = 1_000
"""Hidden layers of a network of a saved model."""
MAX_ROW_NUMBERS = 1 << 26
"""Numbers that a row, or what a layer makes of a row for all classes and environments, may have."""
MAX_WEIGHTS_BYTES = 2 << 30
"""Of a model with a featurizer of the user's own, about whose size nothing is known beforehand."""
LARGEST_WEIGHT = torch.finfo(torch.float32).max
"""Networks are trained in float32."""
_HEADER_BYTES = 16 << 20


def check_description(estimator: EnvironmentClassifier) -> None:
    """Refuse parameters and attributes that no fit has, before anything is built from them."""
    estimator._validate_params()
    estimator._check_parameters()
    check_points(estimator)
    shape = estimator.input_shape_
    if not all(isinstance(size, int) and size > 0 for size in shape) or math.prod(shape) > MAX_ROW_NUMBERS:
        raise ValueError(f"its rows have the shape {shape}")
    if len(estimator.classes_) < 2:
        raise ValueError("it has fewer than two classes")
    if not (isinstance(latent_dim := getattr(estimator, "latent_dim_", 1), int) and latent_dim > 0):
        raise ValueError(f"its latent has {latent_dim!r} dimensions")
    environments = getattr(estimator, "environments_", np.array(["all"]))
    if len(environments) == 0:
        raise ValueError("it has no environments")
    for name, values in (("classes", estimator.classes_), ("environments", environments)):
        if values.ndim != 1 or not np.array_equal(np.unique(values), values):
            raise ValueError(f"its {name} are not different values in their order")
    parameters = estimator.get_params(deep=False)
    if max(len(parameters[name]) for name in ("hidden_dims", "decoder_hidden_dims") if name in parameters) > MAX_LAYERS:
        raise ValueError(f"it has more than {MAX_LAYERS} layers")
    check_pieces(estimator)
    _check_mixtures(estimator, parameters.get("pseudo_environments") or len(environments))


def _check_mixtures(estimator: EnvironmentClassifier, n_components: int) -> None:
    adaptation = getattr(estimator, "adaptation_", None)
    mixtures = [] if adaptation is None else [adaptation.mixture, adaptation.training_mixture]
    if hasattr(estimator, "environment_prior_"):
        mixtures.append(estimator.environment_prior_)
    for mixture in mixtures:
        values: NDArray[np.float64] = np.asarray(mixture, dtype=np.float64)
        if values.shape != (n_components,) or not (values >= 0).all() or not np.isclose(values.sum(), 1, atol=1e-6):
            raise ValueError("its environments have weights that are no probabilities")
    record = getattr(estimator, "adaptation_record_", None)
    if record is not None:
        losses = np.array([record.before, record.after], dtype=np.float64)
        if (
            losses.shape != (2, len(record.environments))
            or not np.isfinite(losses).all()
            or not 0 <= record.strength <= 1
        ):
            raise ValueError("its record of adapting is none")


def describe_networks(estimator: EnvironmentClassifier) -> nn.Module:
    """The networks without memory for their numbers; a featurizer of the user's own is left out of them."""
    described = copy.copy(estimator)
    if estimator._draws_globally:
        described.featurizer = _Nothing
    with torch.device("meta"):
        module = described._module()
    for network in module.modules():
        if isinstance(network, ConditionalNetwork):
            layers = [layer for layer in (network.first, *network.layers, network.head) if layer is not None]
            if max(layer.weight.shape[0] for layer in layers) * math.prod(network.contexts) > MAX_ROW_NUMBERS:
                raise ValueError("its layers are too wide for so many classes and environments")
    return module


class _Nothing(nn.Module):
    """Stands for a featurizer that is not looked at."""

    def __init__(self, input_shape: Sequence[int], representation_dim: int) -> None:
        super().__init__()
        self.representation_dim = representation_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), self.representation_dim)


def most_bytes(estimator: EnvironmentClassifier, networks: nn.Module) -> int:
    """How large the file of the weights of such networks may be."""
    if estimator._draws_globally:
        return MAX_WEIGHTS_BYTES
    return 8 * sum(value.numel() for value in networks.state_dict().values()) + _HEADER_BYTES


def check_weights(networks: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of the networks, before these are given memory."""
    expected = networks.state_dict()
    if sum(value.numel() for value in weights.values()) < sum(value.numel() for value in expected.values()):
        raise ValueError("its weights are fewer than the networks it describes have")
    for name, value in expected.items():
        if name not in weights or weights[name].shape != value.shape:
            raise ValueError(f"its weights are of other networks than it describes: {name} differs")
        if not weights[name].is_floating_point():
            raise ValueError(f"its weights {name} are of the type {weights[name].dtype}")
        if not (weights[name].abs() <= LARGEST_WEIGHT).all():  # nor where they are NaN
            raise ValueError(f"its weights {name} are no numbers that a fit gives")


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
