"""Invariant risk minimisation."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import PenalisedClassifier
from eber.objectives.base import Objective, PenaltySchedule
from eber.objectives.irm import IRMObjective


class IRMClassifier(PenalisedClassifier):
    """Invariant risk minimisation (Arjovsky, Bottou, Gulrajani and Lopez-Paz 2019).

    ``mean_e R_e + penalty_weight · mean_e |grad_w R_e(w · logits)|^2``: the same scale of the logits shall be the best
    in every environment.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    _initial_weight = 1.0

    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        return IRMObjective(schedule, jobs[0].n_environments)
