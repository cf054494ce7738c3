"""Invariant gradient variances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions
from torch import nn

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.estimators.rows import ClassWeight
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.fishr import AVERAGES, FishrObjective


class FishrClassifier(PenalisedClassifier):
    """Invariant gradient variances (Fishr; Rame, Dancette and Cord 2022), with its moving average of 0.95.

    ``mean_i -log p(y_i|x_i) + penalty_weight · mean_e |v_e - mean_e v_e|^2 / size`` with v_e the variance of the
    gradients of the rows of environment e with respect to the classifier, smoothed over the steps.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.
    moving_average : {"discounted_sum", "exponential"}, default="discounted_sum"
        How variances are smoothed. ``"exponential"`` is the paper's average, v <- 0.95 v + 0.05 v_e; DomainBed, whose
        penalty weights one finds in the literature, divides it by 0.05: ``"discounted_sum"``, whose penalty is 400
        times that of the other.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **PenalisedClassifier._parameter_constraints,
        "moving_average": [StrOptions(set(AVERAGES))],
    }

    def __init__(
        self,
        *,
        penalty_weight: float = 1.0,
        moving_average: str = "discounted_sum",
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
            penalty_weight=penalty_weight,
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
        self.moving_average = moving_average

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return FishrObjective(schedule, jobs[0].n_environments, moving_average=self.moving_average)
