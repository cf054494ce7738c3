"""The baselines follow reference trajectories: loss and penalty at each step, and the final weights.

Any file of this form in EBER_GOLDEN_DIR (default: tests/golden) is followed; its README there says what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from eber.nn.networks import Classifier, build_network
from eber.objectives.base import Batch, Objective, PenaltySchedule
from eber.objectives.erm import ERMObjective
from eber.objectives.fishr import FishrObjective
from eber.objectives.irm import IRMObjective
from eber.objectives.vrex import VRExObjective
from eber.training import Trainer, TrainingSettings

FOLDER = Path(os.environ.get("EBER_GOLDEN_DIR", Path(__file__).parents[1] / "golden"))
FILES = sorted(FOLDER.glob("*.npz"))
ANNEAL = 50

METHODS: dict[str, Callable[[int], Objective]] = {
    "ERM": lambda m: ERMObjective(),
    "IRM": lambda m: IRMObjective(PenaltySchedule((100.0,), ANNEAL, 1.0), m),
    "VREx": lambda m: VRExObjective(PenaltySchedule((10.0,), ANNEAL, 1.0), m),
    "Fishr": lambda m: FishrObjective(PenaltySchedule((1000.0,), ANNEAL, 0.0), m),
}
WEIGHTS = {"0.input": "first", "0.output": "layers.0", "1": "head"}


def test_there_are_trajectories_to_follow() -> None:
    assert FILES, f"no .npz file in {FOLDER}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
@pytest.mark.parametrize("method", METHODS)
def test_baseline_follows_its_trajectory(file: Path, method: str) -> None:
    golden = np.load(file)
    x, y = torch.from_numpy(golden["x"]), torch.from_numpy(golden["y"]).long()
    steps, m, rows, d = x.shape
    hidden, width = golden["init/0.input.weight"].shape[0], golden["init/0.output.weight"].shape[0]
    network = build_network(
        "mlp", (d,), (), golden["init/1.weight"].shape[0], hidden_dims=(hidden,), representation_dim=width
    )
    for theirs, ours in WEIGHTS.items():
        for part in ("weight", "bias"):
            network.get_parameter(f"{ours}.{part}").data = torch.from_numpy(golden[f"init/{theirs}.{part}"].copy())
    settings = TrainingSettings(1, m * rows, 1e-3, reset_optimizer_at=None if method == "ERM" else ANNEAL)
    trainer = Trainer([Classifier(network)], METHODS[method](m), settings, [torch.Generator()])
    e = torch.arange(m).repeat_interleave(rows)[None]
    records = [trainer.step(Batch(x[t].reshape(1, -1, d), y[t].reshape(1, -1), e)) for t in range(steps)]
    for name in ("loss",) if method == "ERM" else ("loss", "penalty"):
        expected = golden[f"{method}/{name}"]
        # IRM's penalty is a product that may pass zero, and its loss with it, and V-REx's comes close: there, float32
        # leaves only the size of the whole trajectory to compare with.
        atol = 1e-5 * np.abs(expected).mean()
        np.testing.assert_allclose([record.of(name) for record in records], expected, rtol=1e-5, atol=atol)
    for theirs, ours in WEIGHTS.items():
        final = golden[f"{method}/final/{theirs}.weight"]
        np.testing.assert_allclose(network.get_parameter(f"{ours}.weight").detach(), final, rtol=1e-3, atol=1e-5)
