"""Group distributionally robust optimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval
from torch import nn

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import Baseline
from eber.estimators.rows import ClassWeight
from eber.objectives.base import Objective
from eber.objectives.groupdro import GroupDROObjective


class GroupDROClassifier(Baseline):
    """Group distributionally robust optimisation (GroupDRO; Sagawa, Koh, Hashimoto and Liang 2020).

    ``sum_e q_e R_e`` with ``q_e`` proportional to ``q_e exp(step_size · R_e)`` from step to step: the environments
    that are worst off are heard most, and with a large enough step size only they are.

    Parameters
    ----------
    step_size : float, default=0.01
        How fast the environments' weights move: eta in the paper. 0 leaves all weights equal.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **Baseline._parameter_constraints,
        "step_size": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        step_size: float = 0.01,
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
        self.step_size = step_size

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        return GroupDROObjective([float(job.estimator.step_size) for job in jobs], jobs[0].n_environments)
