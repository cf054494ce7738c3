"""Information bottleneck with empirical risk minimisation."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.ib_erm import IBERMObjective


class IBERMClassifier(PenalisedClassifier):
    """Information bottleneck with empirical risk minimisation (IB-ERM; Ahuja et al. 2021).

    ``mean_e R_e + penalty_weight · mean_e mean_k Var_e(feature_k)``: features that vary no more than prediction needs.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return IBERMObjective(schedule, jobs[0].n_environments)
