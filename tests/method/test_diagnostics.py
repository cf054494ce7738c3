"""Signs of a bad fit: silent on a good one, loud on a bad one, each for its own reason."""

import copy
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from eber import EBERClassifier
from eber.datasets.hospitals import draw_hospitals
from eber.datasets.parametric import draw
from eber.exceptions import EnvironmentWarning, FitWarning
from eber.method.diagnostics import MAX_ROWS, NAMES, Diagnostic, best_temperature, diagnose

MEAN_ENTROPY = "mean_environment_entropy"
CROSS_ENTROPY = "environment_cross_entropy"
TEMPERATURE = "environment_temperature"
NLL_OF_F0 = "environment_label_nll"
SPREAD = "environment_spread"
AT_BOUNDS = "sigma_at_bounds"
COLLAPSE = "latent_label_nll"
ALL = {MEAN_ENTROPY, CROSS_ENTROPY, TEMPERATURE, NLL_OF_F0, SPREAD, AT_BOUNDS, COLLAPSE}

rows = draw(random_state=0).train


@pytest.fixture(scope="module")
def good():
    """The default recipe on the parametric baseline. Warnings are errors: a good fit must have none."""
    return EBERClassifier(epochs=10, random_state=0).fit(rows.X, rows.y, environments=rows.environments)


def alarms(module, **options):
    """The alarming diagnostics of a module on the training rows, by key."""
    x = torch.from_numpy(rows.X.astype(np.float32)).double()
    y, e = torch.from_numpy(rows.y), torch.from_numpy(rows.environments)
    found = diagnose(module, x, y, e, **{"learned_weights": True, **options})
    return {diagnostic.key: diagnostic for diagnostic in found if diagnostic.alarming}


def spoiled(good, change):
    """A copy of the good fit's networks with weights set by hand."""
    module = copy.deepcopy(good.module_)
    with torch.no_grad():
        change(module)
    return alarms(module)


def test_a_good_fit_is_silent(good):
    assert {diagnostic.key for diagnostic in good.diagnostics_} == ALL
    assert not any(diagnostic.alarming for diagnostic in good.diagnostics_)
    assert alarms(good.module_) == {}


def test_one_environment_that_takes_all_is_seen(good):
    def change(module):
        module.h.head.weight.zero_()
        module.h.head.bias.copy_(torch.tensor([2.0, 0, 0, 0, 0, 0]))

    found = spoiled(good, change)
    assert found[MEAN_ENTROPY].value < 0.1 * math.log(6)
    assert "env_loss_weight=1" in found[MEAN_ENTROPY].advice
    assert CROSS_ENTROPY in found  # surely the wrong environment for five rows in six


def test_columns_that_are_not_environments_are_seen(good):
    """p(e|x) as sharp as before, but with environments mistaken for one another."""

    def change(module):
        module.h.head.weight.copy_(module.h.head.weight.roll(1, 0))
        module.h.head.bias.copy_(module.h.head.bias.roll(1, 0))

    found = spoiled(good, change)
    assert CROSS_ENTROPY in found
    assert found[CROSS_ENTROPY].value > math.log(6)
    assert MEAN_ENTROPY not in found


def test_an_unsure_environment_classifier_is_seen(good):
    def change(module):
        module.h.head.weight.mul_(0.1)
        module.h.head.bias.mul_(0.1)

    found = spoiled(good, change)
    assert set(found) == {TEMPERATURE}
    assert found[TEMPERATURE].value > 10
    assert "raise environment_gain" in found[TEMPERATURE].advice


def test_an_f0_that_has_drifted_is_seen(good):
    def change(module):
        module.f0.head.weight.neg_()
        module.f0.head.bias.neg_()

    assert set(spoiled(good, change)) == {NLL_OF_F0}


def test_components_that_do_not_differ_between_environments_are_seen(good):
    found = spoiled(good, lambda module: module.g.tables[1].zero_())
    assert set(found) == {SPREAD}
    assert found[SPREAD].value == pytest.approx(0, abs=1e-9)


def test_environments_that_are_alike_are_no_alarm():
    """Hospitals that hardly differ overlap in the latent; the fit is good all the same."""
    table = draw_hospitals(1300)
    columns = ["lactate", "respiratory_rate", "heart_rate", "systolic_pressure", "creatinine"]
    X = table[columns].apply(pd.to_numeric, errors="coerce").pipe(lambda x: ((x - x.mean()) / x.std()).fillna(0))
    model = EBERClassifier(epochs=20, random_state=0).fit(X, table["sepsis"], environments=table["hospital"])
    spread = next(diagnostic for diagnostic in model.diagnostics_ if diagnostic.key == SPREAD)
    assert 0.15 < spread.value < 0.6
    assert not spread.alarming


def test_a_fit_that_was_far_too_short_is_seen_and_told_to_go_on():
    with pytest.warns(FitWarning) as caught:
        EBERClassifier(epochs=1, random_state=0).fit(rows.X, rows.y, environments=rows.environments)
    assert any("--epochs" in str(warning.message) for warning in caught)


def test_a_posterior_that_has_collapsed_is_seen(good):
    """z no longer depends on x, y and e; nothing else is wrong with the fit but that environments overlap as well."""
    found = spoiled(good, lambda module: module.g.head.weight.zero_())
    assert set(found) == {COLLAPSE, SPREAD}
    assert found[COLLAPSE].value >= math.log(2)
    assert "check that x says anything about y" in found[COLLAPSE].advice


def test_a_decoder_that_ignores_the_latent_is_seen(good):
    assert set(spoiled(good, lambda module: module.f1[0].weight.zero_())) == {COLLAPSE}


def test_labels_that_x_says_nothing_about_are_seen():
    """The best latent for them is an empty one."""
    noise = np.random.default_rng(0).integers(2, size=len(rows.y))
    with pytest.warns(FitWarning) as caught:
        EBERClassifier(epochs=10, random_state=0).fit(rows.X, noise, environments=rows.environments)
    assert any("the posterior has collapsed" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("sign", [-1, 1])
def test_components_at_their_bounds_are_seen(sign, good):
    def change(module):
        module.g.head.weight[1].zero_()
        module.g.head.bias[1] = sign * 20.0

    found = spoiled(good, change)
    assert found[AT_BOUNDS].value == 1
    assert set(found) <= {AT_BOUNDS, SPREAD, COLLAPSE}  # flat components overlap, and hold nothing


def test_the_decomposed_reading_without_an_environment_loss_alarms():
    """It leaves p(e|x) to the bound alone, and one component takes all."""
    bad = EBERClassifier(objective="decomposed", env_loss_weight=0.0, learning_rate=0.01, epochs=3, random_state=0)
    with pytest.warns(FitWarning) as caught:
        bad.fit(rows.X, rows.y, environments=rows.environments)
    assert caught[0].filename == __file__  # it points at who called
    alarming = [diagnostic for diagnostic in bad.diagnostics_ if diagnostic.alarming]
    assert {MEAN_ENTROPY, CROSS_ENTROPY} <= {diagnostic.key for diagnostic in alarming}
    assert [str(warning.message) for warning in caught] == [str(diagnostic) for diagnostic in alarming]


def test_what_does_not_apply_is_left_out(good):
    x, y, e = torch.from_numpy(rows.X), torch.from_numpy(rows.y), torch.from_numpy(rows.environments)
    supplied = {diagnostic.key for diagnostic in diagnose(good.module_, x, y, e, learned_weights=False)}
    assert supplied == {NLL_OF_F0, SPREAD, AT_BOUNDS, COLLAPSE}
    plain = EBERClassifier.paper_form(epochs=1, random_state=0)
    with pytest.warns(FitWarning):
        plain.fit(rows.X, rows.y, environments=rows.environments)
    assert AT_BOUNDS not in {diagnostic.key for diagnostic in plain.diagnostics_}
    with pytest.warns((EnvironmentWarning, FitWarning)):
        alone = EBERClassifier(epochs=1, random_state=0).fit(rows.X, rows.y)
    assert {diagnostic.key for diagnostic in alone.diagnostics_} == {NLL_OF_F0, AT_BOUNDS, COLLAPSE}


def test_many_rows_are_looked_at_evenly(good):
    """A sample of the rows gives nearly the figures of all of them, and rows of every environment are in it."""
    times = MAX_ROWS // len(rows) + 2
    x = torch.from_numpy(np.tile(rows.X, (times, 1)).astype(np.float32)).double()
    y, e = torch.from_numpy(np.tile(rows.y, times)), torch.from_numpy(np.tile(rows.environments, times))
    assert len(x) > MAX_ROWS
    for sampled, whole in zip(diagnose(good.module_, x, y, e, True), good.diagnostics_, strict=True):
        assert sampled.name == whole.name
        assert sampled.value == pytest.approx(whole.value, rel=0.1, abs=0.01)


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_the_temperature_undoes_a_scaling_of_the_logits(factor):
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((4000, 3))
    e = (logits + rng.gumbel(size=logits.shape)).argmax(1)  # drawn from softmax(logits)
    temperature, gain = best_temperature(factor * logits, e)
    assert temperature == pytest.approx(1 / factor, rel=0.1)
    assert gain >= 0
    assert (gain > 0.01) == (factor != 1.0)


def test_a_diagnostic_reads_as_a_sentence_with_its_figures(good):
    text = str(good.diagnostics_[0])
    assert text.startswith("entropy of the mean p(e|x) = 1.79 (threshold 0.896): a few environments take far")


def test_every_diagnostic_has_a_name_of_its_own(good):
    assert {diagnostic.key: diagnostic.name for diagnostic in good.diagnostics_} == NAMES
    assert len(set(NAMES.values())) == len(NAMES)


def test_a_saved_diagnostic_is_known_by_its_key_or_as_at_first_by_its_name():
    figures: dict[str, Any] = {"value": 1.0, "threshold": 2.0, "alarming": False, "advice": "none"}
    expected = Diagnostic(TEMPERATURE, **figures)
    assert Diagnostic.from_saved(key=TEMPERATURE, **figures) == expected
    assert Diagnostic.from_saved(name="temperature of p(e|x)", **figures) == expected
    for unknown in ({"key": "temper"}, {"name": "temper"}, {}):
        with pytest.raises(ValueError, match="there is no diagnostic"):
            Diagnostic.from_saved(**unknown, **figures)
