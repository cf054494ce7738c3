"""The baselines follow reference trajectories: loss and penalties at each step, and the final weights.

Any file of this form in EBER_GOLDEN_DIR (default: tests/golden) is followed; its README there says what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from eber.nn.networks import Classifier, build_network
from eber.objectives.andmask import ANDMaskObjective
from eber.objectives.base import Batch, Objective, PenaltySchedule
from eber.objectives.coral import CORALObjective
from eber.objectives.eqrm import EQRMObjective
from eber.objectives.erm import ERMObjective
from eber.objectives.fishr import FishrObjective
from eber.objectives.groupdro import GroupDROObjective
from eber.objectives.ib_erm import IBERMObjective
from eber.objectives.ib_irm import IBIRMObjective
from eber.objectives.iga import IGAObjective
from eber.objectives.irm import IRMObjective
from eber.objectives.mmd import MMDObjective
from eber.objectives.spectral_decoupling import SDObjective
from eber.objectives.vrex import VRExObjective
from eber.training import Trainer, TrainingSettings

FOLDER = Path(os.environ.get("EBER_GOLDEN_DIR", Path(__file__).parents[1] / "golden"))
FILES = sorted(FOLDER.glob("*.npz"))
ANNEAL = 50


def weight(value: float, initial: float | None = None) -> PenaltySchedule:
    """A penalty's weight, from step 50 on where it has another one before."""
    return PenaltySchedule((value,)) if initial is None else PenaltySchedule((value,), ANNEAL, initial)


@dataclass(frozen=True)
class Reference:
    """How a method of the files is set, and which of its terms the files have: their name to ours.

    Terms are followed to a relative 1e-5, but for those that the reference itself does not know as well.
    """

    objective: Callable[[int], Objective]
    terms: dict[str, str]
    rebuilt: bool = False
    tolerances: dict[str, float] = field(default_factory=dict)


PENALISED = {"loss": "loss", "penalty": "penalty"}
RISK_AND_PENALTY = {"loss": "risk", "penalty": "penalty"}
METHODS = {
    "ERM": Reference(lambda m: ERMObjective(), {"loss": "loss"}),
    "IRM": Reference(lambda m: IRMObjective(weight(100.0, 1.0), m), PENALISED, rebuilt=True),
    "VREx": Reference(lambda m: VRExObjective(weight(10.0, 1.0), m), PENALISED, rebuilt=True),
    "Fishr": Reference(lambda m: FishrObjective(weight(1000.0, 0.0), m), PENALISED, rebuilt=True),
    "GroupDRO": Reference(lambda m: GroupDROObjective((0.01,), m), {"loss": "loss"}),
    "CORAL": Reference(lambda m: CORALObjective(weight(1.0), m), RISK_AND_PENALTY),
    # The expansion of |u - v|^2 leaves 1e-7 where a row meets itself, which a gamma of 1000 makes 1e-4 of the kernel:
    # the last bit of the features decides, and the reference is that far from the penalty in float64.
    "MMD": Reference(lambda m: MMDObjective(weight(1.0), m), RISK_AND_PENALTY, tolerances={"penalty": 3e-4}),
    "SD": Reference(lambda m: SDObjective(weight(0.1)), RISK_AND_PENALTY),
    "ANDMask": Reference(lambda m: ANDMaskObjective((0.6,), m), {"loss": "loss"}),
    "IGA": Reference(lambda m: IGAObjective(weight(1.0), m), RISK_AND_PENALTY),
    "IB_ERM": Reference(
        lambda m: IBERMObjective(weight(10.0, 0.0), m), {"loss": "loss", "IB_penalty": "penalty"}, rebuilt=True
    ),
    "IB_IRM": Reference(
        lambda m: IBIRMObjective(weight(100.0, 1.0), weight(10.0, 0.0), m),
        {"loss": "loss", "IRM_penalty": "penalty", "IB_penalty": "bottleneck"},
        rebuilt=True,
    ),
    # Its quantile is found there by bisection, which ends when it moves by less than 1e-5.
    "EQRM": Reference(
        lambda m: EQRMObjective((0.75,), m, burn_in=ANNEAL), {"loss": "loss"}, rebuilt=True, tolerances={"loss": 1e-4}
    ),
}
WEIGHTS = {"0.input": "first", "0.output": "layers.0", "1": "head"}


def test_there_are_trajectories_to_follow() -> None:
    assert FILES, f"no .npz file in {FOLDER}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
@pytest.mark.parametrize("method", METHODS)
def test_baseline_follows_its_trajectory(file: Path, method: str) -> None:
    golden, reference = np.load(file), METHODS[method]
    x, y = torch.from_numpy(golden["x"]), torch.from_numpy(golden["y"]).long()
    steps, m, rows, d = x.shape
    hidden, width = golden["init/0.input.weight"].shape[0], golden["init/0.output.weight"].shape[0]
    network = build_network(
        "mlp", (d,), (), golden["init/1.weight"].shape[0], hidden_dims=(hidden,), representation_dim=width
    )
    for theirs, ours in WEIGHTS.items():
        for part in ("weight", "bias"):
            network.get_parameter(f"{ours}.{part}").data = torch.from_numpy(golden[f"init/{theirs}.{part}"].copy())
    settings = TrainingSettings(1, m * rows, 1e-3, reset_optimizer_at=ANNEAL if reference.rebuilt else None)
    trainer = Trainer([Classifier(network)], reference.objective(m), settings, [torch.Generator()])
    e = torch.arange(m).repeat_interleave(rows)[None]
    records = [trainer.step(Batch(x[t].reshape(1, -1, d), y[t].reshape(1, -1), e)) for t in range(steps)]
    for theirs, ours in reference.terms.items():
        expected, tolerance = golden[f"{method}/{theirs}"], reference.tolerances.get(theirs, 1e-5)
        # IRM's penalty is a product that may pass zero, and its loss with it, and V-REx's comes close: there, float32
        # leaves only the size of the whole trajectory to compare with.
        atol = tolerance * np.abs(expected).mean()
        found = [record.of(ours) for record in records]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=atol, err_msg=theirs)
    for theirs, ours in WEIGHTS.items():
        final = golden[f"{method}/final/{theirs}.weight"]
        np.testing.assert_allclose(network.get_parameter(f"{ours}.weight").detach(), final, rtol=1e-3, atol=1e-5)
