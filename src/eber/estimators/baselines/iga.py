"""Inter-environmental gradient alignment."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.iga import IGAObjective


class IGAClassifier(PenalisedClassifier):
    """Inter-environmental gradient alignment (IGA; Koyama and Yamaguchi 2021).

    ``mean_e R_e + penalty_weight · sum_e |grad R_e - mean_j grad R_j|^2``: a step that helps one environment shall
    help all. It is the dearest of the baselines, with a second derivative for each environment of a batch.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return IGAObjective(schedule, jobs[0].n_environments)
