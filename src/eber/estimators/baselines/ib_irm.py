"""Information bottleneck with invariant risk minimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval
from torch import nn

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.estimators.rows import ClassWeight
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.ib_irm import IBIRMObjective


class IBIRMClassifier(PenalisedClassifier):
    """Information bottleneck with invariant risk minimisation (IB-IRM; Ahuja et al. 2021).

    ``mean_e R_e + penalty_weight · mean_e |grad_w R_e(w · logits)|^2 + bottleneck_weight · mean_e mean_k
    Var_e(feature_k)``: invariance as in `IRMClassifier`, by features that vary no more than prediction needs.

    Parameters
    ----------
    penalty_weight : float, default=1.0
        Weight of IRM's penalty; 1 before annealing ends.
    bottleneck_weight : float, default=1.0
        Weight of the features' variance; 0 before annealing ends.
    anneal_fraction, anneal_steps, reset_optimizer
        Annealing of both; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **PenalisedClassifier._parameter_constraints,
        "bottleneck_weight": [Interval(Real, 0, None, closed="left")],
    }
    _initial_weight = 1.0

    def __init__(
        self,
        *,
        penalty_weight: float = 1.0,
        bottleneck_weight: float = 1.0,
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
        self.bottleneck_weight = bottleneck_weight

    def _left_out(self) -> str | None:
        if self.bottleneck_weight == 0:
            return super()._left_out()
        return f"The bottleneck never gets its weight of {self.bottleneck_weight:g}"

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return IBIRMObjective(schedule, self._schedule(jobs, "bottleneck_weight", 0.0), jobs[0].n_environments)
