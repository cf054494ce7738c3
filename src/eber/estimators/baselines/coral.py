"""Correlation alignment."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.coral import CORALObjective


class CORALClassifier(PenalisedClassifier):
    """Correlation alignment (deep CORAL; Sun and Saenko 2016).

    ``mean_e R_e + penalty_weight · mean over pairs of environments of mean (mu_a - mu_b)^2 + mean (C_a - C_b)^2``:
    features shall have the same mean and covariance in every environment. Where environments differ in the shares of
    the classes, features that tell the classes apart cannot, and it costs accuracy.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return CORALObjective(schedule, jobs[0].n_environments)
