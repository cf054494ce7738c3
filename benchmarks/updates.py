"""Time of a step of each baseline, in units of DomainBed's update of it in the same run.

One model, 4 environments of 16 rows, the featurizer of the reference trajectories.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.domainbed import ALGORITHMS, Algorithm
from benchmarks.measure import Step, least_seconds
from eber.nn.networks import Classifier, build_network
from eber.objectives.andmask import ANDMaskObjective
from eber.objectives.base import Batch, Objective, PenaltySchedule
from eber.objectives.coral import CORALObjective
from eber.objectives.eqrm import EQRMObjective
from eber.objectives.groupdro import GroupDROObjective
from eber.objectives.ib_erm import IBERMObjective
from eber.objectives.ib_irm import IBIRMObjective
from eber.objectives.iga import IGAObjective
from eber.objectives.mmd import MMDObjective
from eber.objectives.spectral_decoupling import SDObjective
from eber.training import Trainer, TrainingSettings

ENVIRONMENTS, ROWS, COLUMNS, HIDDEN, WIDTH, CLASSES = 4, 16, 10, 16, 32, 2
STEPS = 20
ONE = PenaltySchedule((1.0,))
OBJECTIVES: dict[str, Callable[[int], Objective]] = {
    "GroupDRO": lambda m: GroupDROObjective((0.01,), m),
    "CORAL": lambda m: CORALObjective(ONE, m),
    "MMD": lambda m: MMDObjective(ONE, m),
    "SD": lambda m: SDObjective(ONE),
    "ANDMask": lambda m: ANDMaskObjective((0.6,), m),
    "IGA": lambda m: IGAObjective(ONE, m),
    "IB_ERM": lambda m: IBERMObjective(ONE, m),
    "IB_IRM": lambda m: IBIRMObjective(ONE, ONE, m),
    "EQRM": lambda m: EQRMObjective((0.75,), m),
}


def own_steps(objective: Objective, batch: Batch) -> Step:
    """Steps of the library's loop."""
    network = build_network("mlp", (COLUMNS,), (), CLASSES, hidden_dims=(HIDDEN,), representation_dim=WIDTH)
    settings = TrainingSettings(1, ENVIRONMENTS * ROWS, 1e-3)
    trainer = Trainer([Classifier(network)], objective, settings, [torch.Generator()])

    def steps() -> None:
        for _ in range(STEPS):
            trainer.step(batch)

    return steps


def their_steps(algorithm: Algorithm, batch: Batch) -> Step:
    """As many updates of DomainBed's."""
    minibatches = [(batch.x[0, batch.e[0] == j], batch.y[0, batch.e[0] == j]) for j in range(ENVIRONMENTS)]

    def steps() -> None:
        for _ in range(STEPS):
            algorithm.update(minibatches)

    return steps


def updates() -> dict[str, dict[str, float]]:
    """Our time over theirs, method by method."""
    g = torch.Generator().manual_seed(0)
    size = (1, ENVIRONMENTS * ROWS)
    e = torch.arange(ENVIRONMENTS).repeat_interleave(ROWS)[None]
    batch = Batch(torch.randn(*size, COLUMNS, generator=g), torch.randint(0, CLASSES, size, generator=g), e)
    ratios = {}
    for name, objective in OBJECTIVES.items():
        algorithm = ALGORITHMS[name](COLUMNS, HIDDEN, WIDTH, CLASSES)
        contestants = {"ours": own_steps(objective(ENVIRONMENTS), batch), "theirs": their_steps(algorithm, batch)}
        seconds = least_seconds(contestants, blocks=20)
        ratios[name] = seconds["ours"] / seconds["theirs"]
    return {"ours / DomainBed's": ratios}
