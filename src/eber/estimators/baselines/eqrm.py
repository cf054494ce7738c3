"""Empirical quantile risk minimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import AnnealedClassifier
from eber.estimators.rows import ClassWeight
from eber.objectives.base import Objective
from eber.objectives.eqrm import GRADIENTS, EQRMObjective


class EQRMClassifier(AnnealedClassifier):
    """Empirical quantile risk minimisation (EQRM; Eastwood et al. 2022).

    The `quantile` of the environments' risks, for the distribution that a Gaussian kernel density sees in them: what a
    new environment's risk stays below with that probability, if it is drawn as the training environments were.

    Parameters
    ----------
    quantile : float, default=0.75
        Between 0 and 1; alpha in the paper. Towards 1 it becomes the worst environment's risk and beyond, as the
        kernel's tail is followed.
    anneal_fraction, anneal_steps, reset_optimizer
        The burn-in, during which the loss is the mean of the risks; see `AnnealedClassifier`.
    gradient : {"bisection", "exact"}, default="bisection"
        What is differentiated. ``"bisection"`` is DomainBed's: only the best and the worst environment and the
        bandwidth are moved. ``"exact"`` is the gradient of the quantile itself, which every environment has a share
        in.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AnnealedClassifier._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "gradient": [StrOptions(set(GRADIENTS))],
    }

    def __init__(
        self,
        *,
        quantile: float = 0.75,
        gradient: str = "bisection",
        anneal_fraction: float = 0.0,
        anneal_steps: int | None = None,
        reset_optimizer: bool = False,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        column_pieces: int | None = None,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int | str = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        weight_decay: float = 0.0,
        n_members: int = 1,
        average_decay: float | None = None,
        class_weight: ClassWeight = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            anneal_fraction=anneal_fraction,
            anneal_steps=anneal_steps,
            reset_optimizer=reset_optimizer,
            featurizer=featurizer,
            hidden_dims=hidden_dims,
            representation_dim=representation_dim,
            column_pieces=column_pieces,
            input_scale=input_scale,
            centre_features=centre_features,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            weight_decay=weight_decay,
            n_members=n_members,
            average_decay=average_decay,
            class_weight=class_weight,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            n_threads=n_threads,
            random_state=random_state,
            verbose=verbose,
        )
        self.quantile = quantile
        self.gradient = gradient

    def _left_out(self) -> str:
        return "The quantile of the risks never becomes the loss"

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        quantiles = [float(job.estimator.quantile) for job in jobs]
        burn_in = self._anneal_steps(len(jobs[0].data.y))
        return EQRMObjective(quantiles, jobs[0].n_environments, burn_in, self.gradient)
