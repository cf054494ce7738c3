"""The yardsticks of the benchmarks mean what the library means."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.domainbed import ALGORITHMS
from benchmarks.literal import LiteralEBER
from benchmarks.real_tables.fits import fit_settings
from benchmarks.real_tables.rules import chosen

from eber.compare.methods import THOROUGH, prepare
from eber.datasets.base import MultiEnvironmentData

STEPS = 60  # annealing ends at 50


def test_both_forms_of_the_literal_algorithm_have_one_value():
    torch.manual_seed(0)
    net = LiteralEBER(d=3, m=4)
    x, y, e = torch.randn(9, 3), torch.randint(0, 2, (9,)), torch.randint(0, 4, (9,))
    values = []
    for loss in (net.loss, net.loss_sharing):
        torch.manual_seed(1)  # the same draws of z
        values.append(loss(x, y, e))
    torch.testing.assert_close(*values)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_restated_updates_follow_domainbeds_own(name):
    golden = np.load(Path(__file__).parent / "golden" / "domainbed_binary.npz")
    x, y = torch.from_numpy(golden["x"]), torch.from_numpy(golden["y"]).long()
    algorithm = ALGORITHMS[name](x.shape[3], 16, 32, 2, anneal_steps=50)
    for i in (0, 1):
        start = {key: torch.from_numpy(golden[f"init/{i}.{key}"].copy()) for key in algorithm.network[i].state_dict()}
        algorithm.network[i].load_state_dict(start)
    records = [algorithm.update(list(zip(x[t], y[t], strict=True))) for t in range(STEPS)]
    for term in records[0]:
        expected = golden[f"{name}/{term}"][:STEPS]
        # See the README of the trajectories for MMD's penalty, and for EQRM's quantile.
        rtol = 3e-4 if (name, term) == ("MMD", "penalty") else 1e-4 if name == "EQRM" else 1e-5
        atol = 1e-5 * np.abs(expected).mean()
        np.testing.assert_allclose([record[term] for record in records], expected, rtol=rtol, atol=atol, err_msg=term)


def test_rules_on_kept_fits_answer_as_the_search_of_a_comparison():
    rng = np.random.default_rng(0)
    e = np.repeat(list("ABCD"), 30)
    X = rng.normal(size=(120, 6)) + 0.5 * rng.normal(size=(4, 6))[np.repeat(range(4), 30)]
    train = MultiEnvironmentData(X, rng.integers(2, size=120) | (X[:, 0] > 0), e)
    fits = fit_settings("Logistic regression", train, X[:10])
    left_out, proba = chosen(fits, train.y, e)
    search = prepare("Logistic regression", 0, 1, 4, THOROUGH).fit(X, train.y, environments=e)
    np.testing.assert_allclose(proba, search.predict_proba(X[:10]))
    np.testing.assert_allclose(left_out, search.left_out_proba_)
