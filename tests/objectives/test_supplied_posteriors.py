"""Posteriors supplied on a grid give what the same posteriors give when they are Gaussian components."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from eber.method.distributions import gauss_hermite
from eber.method.inference import predict
from eber.method.model import EBERNetworks
from eber.method.posteriors import GridPosterior
from eber.objectives.base import Batch
from eber.objectives.eber import TERMS, EBERObjective, ExpectationRule
from eber.objectives.eber_supplied import SuppliedEBERObjective
from tests.small_networks import make_batch, make_networks

GRID = np.linspace(-12, 12, 4801)


class Discretised:
    """The components of a module on one window for all environments."""

    def __init__(self, module: EBERNetworks) -> None:
        self.module = module

    def __call__(self, X: NDArray[np.float64]) -> GridPosterior:
        with torch.no_grad():
            c = self.module.conditionals(torch.from_numpy(X))
            z = torch.from_numpy(GRID)[None, :, None].expand(1, -1, len(X))
            log_q = c.log_q_zxye(z).permute(3, 1, 2, 0)  # (n, K, m, W)
            log_q = torch.log_softmax(log_q, -1)
        index = np.tile(np.arange(len(GRID)), (self.module.n_environments, 1))
        return GridPosterior(GRID[:, None], index, log_q.numpy())


@pytest.mark.parametrize("source", ["learned", "supplied"])
def test_supplied_objective_equals_the_stratified_reading(source: str) -> None:
    module, batch = make_networks(1), make_batch(1)
    if source == "supplied":
        given = torch.log_softmax(torch.randn(3, len(batch.y), dtype=torch.float64), 0)
        batch = Batch(batch.x, batch.y, batch.e, given)
    generator = torch.Generator()
    rule = ExpectationRule(1, 96, quadrature=True)
    gaussian = EBERObjective("stratified", rule, env_loss_weight=0.8, tie_weight=0.4).terms(module, batch, generator)
    grid = SuppliedEBERObjective(Discretised(module), env_loss_weight=0.8, tie_weight=0.4).terms(
        module, batch, generator
    )
    for name in ("loss", *TERMS):
        assert grid[name].item() == pytest.approx(gaussian[name].item(), abs=1e-3), name


def test_prediction_with_supplied_posteriors_is_that_of_the_same_components() -> None:
    module, batch = make_networks(2), make_batch(2)
    rule = gauss_hermite(64, 1)
    gaussian = predict(module, batch.x, rule)
    grid = predict(module, batch.x, rule, posteriors=Discretised(module))
    np.testing.assert_allclose(grid.p_y_given_x, gaussian.p_y_given_x, atol=1e-6)
    np.testing.assert_allclose(grid.mean_z, gaussian.mean_z, atol=1e-6)
