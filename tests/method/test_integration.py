"""The expansion that takes the place of sampling where there are many classes, against far more points."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from eber.method import aggregates, integration
from eber.method.inference import predict
from eber.method.integration import Expansion, automatic_method, integration_rule
from tests.small_networks import make_batch, make_networks


@pytest.mark.parametrize(("K", "L"), [(4, 3), (9, 8)])
def test_the_expansion_is_the_integral_over_z(K: int, L: int) -> None:
    """Against 20,000 draws, whose standard error is at most 0.0036 and far less in the mean over components."""
    module, batch = make_networks(1, K=K, L=L), make_batch(1, K=K, B=3)
    found = predict(module, batch.x, Expansion.with_points(L, None, 0)).p_y_given_x
    exact = predict(module, batch.x, integration_rule(L, "monte_carlo", 20_000, seed=3)).p_y_given_x
    assert np.abs(found - exact).max() < 2e-3
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)


@pytest.mark.parametrize("steepness", [1.0, 4.0])
def test_where_the_expansion_is_too_coarse_points_are_asked(steepness: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadrature in two dimensions judges, with steep logits and gentle ones."""
    module, batch = make_networks(3, K=3, L=2), make_batch(3, K=3)
    with torch.no_grad():
        module.f1[0].weight.mul_(steepness)  # type: ignore[operator]
    exact = predict(module, batch.x, integration_rule(2, "quadrature", 64, seed=0)).p_y_given_xe

    def largest_error(tolerance: float) -> float:
        monkeypatch.setattr(integration, "EXPANSION_TOLERANCE", tolerance)
        found = predict(module, batch.x, Expansion.with_points(2, 4096, 0)).p_y_given_xe
        return float(np.abs(found - exact).max())

    expanded, at_points = largest_error(np.inf), largest_error(3e-6)
    assert at_points < 2e-4
    assert expanded > 5 * at_points


def test_the_expansion_gives_probabilities_however_steep_the_decoder_is() -> None:
    module, batch = make_networks(3, K=5, L=4), make_batch(3, K=5)
    with torch.no_grad():
        module.f1[0].weight.mul_(1e4)  # type: ignore[operator]
    found = predict(module, batch.x, Expansion.with_points(4, None, 0)).p_y_given_xe
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-12)


def test_the_closed_form_gives_probabilities_where_it_is_sure() -> None:
    """p(k|x,e) adds up to one but for rounding, which must not leave less than nothing for the other class."""
    module, batch = make_networks(3, K=2, L=1), make_batch(3, K=2, B=500)
    with torch.no_grad():
        module.f1[0].bias.copy_(torch.tensor([0.0, 1e4]))  # type: ignore[operator]
    found = predict(module, batch.x, None).p_y_given_xe
    assert found.min() >= 0
    assert found.max() <= 1


def test_working_in_chunks_leaves_the_expansion_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    module, batch = make_networks(3, K=5, L=4), make_batch(3, K=5)
    rule = Expansion.with_points(4, 64, 0)
    whole = predict(module, batch.x, rule).p_y_given_xe
    monkeypatch.setattr(aggregates, "CHUNK_ELEMENTS", 500)
    np.testing.assert_allclose(predict(module, batch.x, rule).p_y_given_xe, whole, atol=1e-12)


@pytest.mark.parametrize(("steepness", "bound"), [(1.0, 1e-6), (6.0, 2e-5), (1e4, 1.0)])
def test_many_classes_in_float32_are_those_of_float64(steepness: float, bound: float) -> None:
    """Where the expansion is enough, and where components are asked at points; in several blocks.

    With a decoder as steep as in the last case the two may differ, but both give probabilities.
    """
    K, L = 20, 19
    module, batch = make_networks(2, K=K, L=L), make_batch(2, K=K, B=60)
    with torch.no_grad():
        module.f1[0].weight.mul_(steepness)  # type: ignore[operator]
    exact, found = (
        predict(module, batch.x, Expansion.with_points(L, None, 0, dtype)) for dtype in (torch.float64, torch.float32)
    )
    assert K * module.n_environments * 60 > integration.BLOCK_COMPONENTS
    error = np.abs(found.p_y_given_x - exact.p_y_given_x).max()
    assert error < bound
    np.testing.assert_allclose(found.mean_z, exact.mean_z, atol=1e-6)
    np.testing.assert_allclose(found.p_y_given_xe.sum(-1), 1, rtol=0, atol=1e-12)


def test_how_many_classes_decides_what_auto_stands_for() -> None:
    """Few classes are as they were; a model keeps what its fit chose."""
    assert automatic_method(integration.MANY_CLASSES - 1, 14, linear_decoder=True) == "expansion"
    assert automatic_method(integration.MANY_CLASSES, 15, linear_decoder=True) == "expansion_float32"
    assert automatic_method(50, 49, linear_decoder=True, expand=False) == "monte_carlo"


def test_its_points_have_the_moments_of_a_standard_normal_up_to_the_third() -> None:
    half = Expansion.with_points(7, 64, seed=1).half
    torch.testing.assert_close(half.T @ half / len(half), torch.eye(7, dtype=torch.float64))  # odd moments cancel
    assert len(Expansion.with_points(50, 64, seed=1).half) == 100
    assert torch.equal(half, Expansion.with_points(7, 64, seed=1).half)


def test_a_hidden_decoder_is_sampled_and_cannot_be_expanded() -> None:
    assert automatic_method(5, 4, linear_decoder=False) == "monte_carlo"
    module, batch = make_networks(3, K=5, L=4, decoder_hidden_dims=(3,)), make_batch(3, K=5)
    with pytest.raises(ValueError, match="'expansion' needs a linear decoder; use 'monte_carlo'"):
        predict(module, batch.x, Expansion.with_points(4, None, 0))
