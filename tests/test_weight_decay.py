"""Decoupled weight decay: AdamW's, on weights alone, and each model's own where several are trained side by side."""

import numpy as np
import pytest
import torch
from torch import nn

from eber import (
    EBERClassifier,
    ERMClassifier,
    FishrClassifier,
    IRMClassifier,
    MultiEnvironmentData,
    VRExClassifier,
    fit_many,
)
from eber.datasets.parametric import ParametricParameters, draw
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms
from eber.training import Trainer, TrainingSettings

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
]

FORMS = {
    "EBER by hand": lambda **p: EBERClassifier(**p),
    "EBER by autograd": lambda **p: EBERClassifier(objective="decomposed", **p),
    "ERM": lambda **p: ERMClassifier(**p),
    "IRM": lambda **p: IRMClassifier(**p),
    "V-REx": lambda **p: VRExClassifier(**p),
    "Fishr": lambda **p: FishrClassifier(**p),
}


def squares(stack, batch, step, generators):
    """Mean squared error of linear maps."""
    predicted = torch.stack([module(x)[:, 0] for module, x in zip(stack.modules, batch.x, strict=True)])
    return LossTerms.from_tensors(stack, (predicted - batch.y).square().mean(1))


def linear(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(3, 1)


@pytest.fixture(scope="module")
def table():
    rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
    return MultiEnvironmentData(rows.X, rows.y, rows.environments)


def test_it_is_adamw_on_weights_and_adam_on_biases():
    generator = torch.Generator().manual_seed(0)
    decays = (0.0, 0.5, 20.0)
    modules, judges = ([linear(seed) for seed in range(3)] for _ in range(2))
    optimizers = [
        torch.optim.AdamW(
            [{"params": [m.weight], "weight_decay": decay}, {"params": [m.bias], "weight_decay": 0.0}], lr=0.01
        )
        for m, decay in zip(judges, decays, strict=True)
    ]
    trainer = Trainer(modules, squares, TrainingSettings(1, 8, 0.01), [generator] * 3, decays)
    for _ in range(30):
        x, y = torch.randn(3, 8, 3, generator=generator), torch.randint(2, (3, 8), generator=generator)
        trainer.step(Batch(x, y, torch.zeros_like(y)))
        for s, (judge, optimizer) in enumerate(zip(judges, optimizers, strict=True)):
            optimizer.zero_grad()
            (judge(x[s])[:, 0] - y[s]).square().mean().backward()
            optimizer.step()
    for module, judge in zip(modules, judges, strict=True):
        torch.testing.assert_close(module.weight, judge.weight, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(module.bias, judge.bias, rtol=1e-5, atol=1e-6)
    assert modules[2].weight.norm() < 0.5 * linear(2).weight.norm()


@pytest.mark.parametrize("form", FORMS)
def test_biases_are_kept_and_all_else_decays(form, table):
    module = FORMS[form]()._begin(table.X, table.y, table.environments, 0, torch.Generator()).module
    stack = ModuleStack([module, module])
    marked = stack.on_weights(torch.tensor([1.0, 3.0]))
    biases = [p.numel() for name, p in module.named_parameters() if name.endswith("bias")]
    others = sum(p.numel() for p in module.parameters()) - sum(biases)
    assert biases
    for s, value in enumerate((1.0, 3.0)):
        entries = stack.of_model(marked, s)
        assert (entries == value).sum() == others
        assert (entries == 0).sum() == sum(biases)


@pytest.mark.parametrize("form", FORMS)
def test_the_fit_without_decay_is_the_plain_one_also_among_others(form, table):
    alone = FORMS[form](epochs=3, random_state=1).fit(table.X, table.y, environments=table.environments)
    together = [FORMS[form](epochs=3, random_state=1, weight_decay=decay) for decay in (30.0, 0.0, 3.0)]
    fit_many(together, table)
    strong, plain, weak = (classifier.predict_proba(table.X) for classifier in together)
    np.testing.assert_allclose(plain, alone.predict_proba(table.X), rtol=0, atol=1e-6)
    strong_alone = FORMS[form](epochs=3, random_state=1, weight_decay=30.0)
    strong_alone.fit(table.X, table.y, environments=table.environments)
    np.testing.assert_allclose(strong, strong_alone.predict_proba(table.X), rtol=0, atol=1e-6)
    assert np.abs(plain - weak).max() > 1e-5
    norms = [sum(float(p.detach().square().sum()) for p in classifier.module_.parameters()) for classifier in together]
    assert norms[0] < norms[2] < norms[1]


def test_fits_that_differ_in_decay_have_one_shape(table):
    first, second = (
        ERMClassifier(weight_decay=decay)._begin(table.X, table.y, table.environments, 0, torch.Generator()).shape
        for decay in (0, 3)
    )
    assert first == second


def test_a_negative_decay_is_refused(table):
    with pytest.raises(ValueError, match="weight_decay"):
        ERMClassifier(weight_decay=-1.0).fit(table.X, table.y)
