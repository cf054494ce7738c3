"""Spectral decoupling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import nn

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.estimators.rows import ClassWeight
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.spectral_decoupling import SDObjective


class SDClassifier(PenalisedClassifier):
    """Spectral decoupling (SD; Pezeshki et al. 2021).

    ``mean_i -log p(y_i|x_i) + penalty_weight · mean_ik logit_ik^2``: small logits, so that the feature that is learned
    first does not keep the others from being learned.

    Parameters
    ----------
    penalty_weight : float, default=0.1
        Weight of the penalty, DomainBed's default. With 1, no probability gets far from one half.
    anneal_fraction, anneal_steps, reset_optimizer
        Annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`. `environments` may be given to `fit` and is not used.
    """

    _uses_environments = False

    def __init__(
        self,
        *,
        penalty_weight: float = 0.1,
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

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return SDObjective(schedule)
