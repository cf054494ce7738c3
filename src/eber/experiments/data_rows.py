"""Which classifier each row of a data experiment is: the methods with the paper's fixed settings, and the ablations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eber.estimators import PAPER_FORM, EBERClassifier, ERMClassifier
from eber.experiments.parametric import (
    ERM_SAME_RECIPE,
    NO_ENVIRONMENT_LOSS,
    WITHOUT_ENVIRONMENT_LOSS,
    decoder_layers,
)
from eber.experiments.penalty_grids import OWN_GRIDS
from eber.methods import find_method

AS_THEOREM_1 = {**WITHOUT_ENVIRONMENT_LOSS, "objective": "decomposed"}

CHANGES: dict[str, dict[str, Any]] = {
    NO_ENVIRONMENT_LOSS: WITHOUT_ENVIRONMENT_LOSS,
    "EBER in the paper's plain form": {**PAPER_FORM, **WITHOUT_ENVIRONMENT_LOSS},
    "EBER decomposed lambda_env=0": AS_THEOREM_1,
    "EBER in the paper's plain form decomposed": {**PAPER_FORM, **AS_THEOREM_1},
}
"""EBER with something replaced: without an environment loss, as the paper has it here; with the paper's plain form too;
and each with the terms of Theorem 1 estimated one by one, as the paper's appendix on Colored MNIST describes."""

ABLATIONS = (*CHANGES, ERM_SAME_RECIPE)

FIT_PARAMETERS: dict[str, Any] = {
    "latent_dim": 1,
    "env_loss_weight": 1.0,
    "tie_weight": 0.5,
    "objective": "stratified",
    "decoder_hidden_dims": (0,),
    "learning_rate": 1e-3,
    "batch_size": 128,
    "penalty_weights": (0.01, 0.1, 1.0, 10.0, 100.0),
    **OWN_GRIDS,
}
"""Parameters that all four have, as the paper or, for EBER's own, the default recipe has them."""

_EBER_PARAMETERS = ("latent_dim", "env_loss_weight", "tie_weight", "objective")


def penalty_parameter(method: str) -> str:
    """The parameter whose weight is chosen; empty where there is none, as in the rows that are built here."""
    return "" if method in ABLATIONS else find_method(method).penalty_parameter


def build_classifier(method: str, shared: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """An unfitted classifier of a method by name; one that is not known is refused, never replaced."""
    if method == ERM_SAME_RECIPE:
        recipe = EBERClassifier()
        of_recipe = {name: getattr(recipe, name) for name in ("input_scale", "centre_features", "average_decay")}
        return ERMClassifier(**shared, **of_recipe)
    of_eber = {name: parameters[name] for name in _EBER_PARAMETERS} | {
        "decoder_hidden_dims": decoder_layers(parameters)
    }
    if method in CHANGES:
        return EBERClassifier(**{**shared, **of_eber, **CHANGES[method]})
    return find_method(method).build(**shared, **of_eber)
