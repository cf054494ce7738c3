"""Maximum mean discrepancy between environments."""

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
from eber.objectives.mmd import DISTANCES, MMDObjective


class MMDClassifier(PenalisedClassifier):
    """Maximum mean discrepancy between environments (MMD; Gretton et al. 2012, Li, Pan, Wang and Kot 2018).

    ``mean_e R_e + penalty_weight · mean over pairs of environments of mean k(a, a') + mean k(b, b') - 2 mean k(a, b)``
    on the features: these shall have the same distribution in every environment. It fails where `CORALClassifier`
    does.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.
    distances : {"expansion", "differences"}, default="expansion"
        How squared distances within the kernel are worked out. ``"expansion"`` is DomainBed's, and its rounding makes
        the penalty smaller by about 1e-4 of it; ``"differences"`` is exact and takes a little longer.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **PenalisedClassifier._parameter_constraints,
        "distances": [StrOptions(set(DISTANCES))],
    }

    def __init__(
        self,
        *,
        penalty_weight: float = 1.0,
        distances: str = "expansion",
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
        self.distances = distances

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return MMDObjective(schedule, jobs[0].n_environments, self.distances)
