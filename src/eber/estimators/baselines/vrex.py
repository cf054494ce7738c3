"""Risk extrapolation by variance."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.vrex import VRExObjective


class VRExClassifier(PenalisedClassifier):
    """Risk extrapolation by variance (V-REx; Krueger et al. 2021).

    ``mean_e R_e + penalty_weight · Var_e(R_e)``: the risk shall be the same in every environment.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    _initial_weight = 1.0

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return VRExObjective(schedule, jobs[0].n_environments)
