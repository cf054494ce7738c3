"""The one loop: repeatable to the bit, alone in its use of torch, and all or nothing."""

from contextlib import nullcontext
from itertools import chain

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

from eber import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.exceptions import NonFiniteLossError
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms
from eber.training import AVERAGE_WARM_UP, ShuffledRows, Trainer, TrainingSettings, steps_in, train

CLASSIFIERS = [EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier]

# Fits of one or two epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def rows():
    return draw(ParametricParameters(n=25, m_validation=1, m_test=1, d=4), random_state=0).train


def fit(model, rows):
    return model.fit(rows.X, rows.y, environments=rows.environments)


def weights(model):
    return {name: value.clone() for name, value in model.module_.state_dict().items()}


def assert_same_weights(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


class Regression:
    """Mean squared error of linear maps against the label; notes the rows that the first one was shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, stack, batch, step, generators):
        self.seen.append(batch.x[0, :, 0].tolist())
        predicted = torch.stack([module(x)[:, 0] for module, x in zip(stack.modules, batch.x, strict=True)])
        loss = (predicted - batch.y).square().mean(1)
        return LossTerms.from_tensors(stack, loss, error=loss)


def numbered(n):
    """Rows whose first feature is their number."""
    x = torch.stack([torch.arange(n, dtype=torch.float32), torch.linspace(-1, 1, n)], 1)
    return Batch(x, torch.arange(n) % 2, torch.zeros(n, dtype=torch.int64))


def linear(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(2, 1)


def of_one_model(data):
    return Batch(data.x[None], data.y[None], data.e[None])


def one_pass(data, batch_size, seed=0):
    """Batches of one model."""
    batches = ShuffledRows([data], batch_size).one_pass([torch.Generator().manual_seed(seed)])
    return [batch.of_model(0) for batch in batches]


def trainer(settings, seed=0):
    return Trainer([linear(seed)], Regression(), settings, [torch.Generator().manual_seed(0)])


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_same_seed_gives_the_same_fit_to_the_bit(classifier, rows):
    first, again = (fit(classifier(epochs=2, random_state=5), rows) for _ in range(2))
    assert_same_weights(weights(first), weights(again))
    np.testing.assert_array_equal(first.predict_proba(rows.X), again.predict_proba(rows.X))
    assert first.history_ == again.history_


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_another_seed_gives_another_fit(classifier, rows):
    first, other = (fit(classifier(epochs=1, random_state=seed), rows) for seed in (5, 6))
    assert np.abs(first.predict_proba(rows.X) - other.predict_proba(rows.X)).max() > 1e-4


@pytest.mark.parametrize("objective", ["stratified", "algorithm", "decomposed", "collapsed"])
def test_every_reading_is_repeatable(objective, rows):
    first, again = (fit(EBERClassifier(objective=objective, epochs=1, random_state=5), rows) for _ in range(2))
    assert_same_weights(weights(first), weights(again))


def test_a_fit_neither_reads_nor_changes_the_global_generators(rows):
    fits = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the legacy generator is what must be left alone
        torch_before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
        fits.append(fit(EBERClassifier(epochs=1, random_state=0), rows))
        assert torch.equal(torch.get_rng_state(), torch_before)
        np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], numpy_before)  # noqa: NPY002
    assert_same_weights(*map(weights, fits))


def test_prediction_leaves_the_global_generator_alone(rows):
    model = fit(EBERClassifier(latent_dim=3, prediction="monte_carlo", epochs=1, random_state=0), rows)
    before = torch.get_rng_state()
    model.predict_proba(rows.X)
    assert torch.equal(torch.get_rng_state(), before)


def denormals_survive():
    return bool(torch.tensor(1e-40) * 1 != 0)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(
    ("learning_rate", "factor", "error"),
    [(1e-3, 1.0, None), (1e30, 1.0, NonFiniteLossError), (1e-3, np.nan, ValueError)],
    ids=["no failure", "diverges", "refuses the rows"],
)
def test_threads_and_denormals_are_put_back_even_when_the_fit_fails(flushed, learning_rate, factor, error, rows):
    """A fit that diverges raises its error after the loop, one that refuses its rows amid the work."""
    threads = torch.get_num_threads()
    torch.set_flush_denormal(flushed)
    torch.set_num_threads(2)
    try:
        model = EBERClassifier(epochs=1, n_threads=1, learning_rate=learning_rate, random_state=0)
        with nullcontext() if error is None else pytest.raises(error):
            model.fit(rows.X * factor, rows.y, environments=rows.environments)
        assert torch.get_num_threads() == 2
        assert denormals_survive() == (not flushed)
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("batch_size", [64, 150])
def test_a_loss_that_is_not_finite_names_the_step_and_what_to_try(classifier, batch_size, rows):
    """The first step throws the weights away; the second is in the same pass, or the next where batches are large."""
    assert len(rows.X) == 150
    with pytest.raises(NonFiniteLossError, match=r"became (nan|inf) at step 2\. .*lower learning_rate \(now 1e\+30\)"):
        fit(classifier(epochs=2, batch_size=batch_size, learning_rate=1e30, random_state=0), rows)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_features_of_impossible_size_end_the_fit_with_advice(classifier, rows):
    """The loss itself stays finite for some methods, while Adam's moments overflow and the weights stand still."""
    with pytest.raises(NonFiniteLossError, match="Standardise the features"):
        classifier(epochs=2, random_state=0).fit(rows.X * 1e30, rows.y, environments=rows.environments)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_failed_refit_leaves_the_earlier_fit_as_it_was(classifier, rows):
    model = fit(classifier(epochs=1, random_state=0), rows)
    before, attributes, learned = model.predict_proba(rows.X), set(vars(model)), weights(model)
    model.set_params(learning_rate=1e30, epochs=3)
    with pytest.raises(NonFiniteLossError):
        model.fit(rows.X[:, :3], rows.y == 0, environments=rows.environments + 10)
    assert set(vars(model)) == attributes
    assert_same_weights(weights(model), learned)
    np.testing.assert_array_equal(model.predict_proba(rows.X), before)


def test_a_failed_first_fit_leaves_the_classifier_unfitted(rows):
    model = EBERClassifier(learning_rate=1e30, epochs=2, random_state=0)
    with pytest.raises(NonFiniteLossError):
        fit(model, rows)
    with pytest.raises(NotFittedError):
        model.predict(rows.X)


def test_every_row_is_seen_once_a_pass_and_the_last_batch_is_used():
    objective, settings = Regression(), TrainingSettings(epochs=3, batch_size=8, learning_rate=1e-3)
    train([linear()], objective, [numbered(29)], settings, [torch.Generator().manual_seed(0)])
    assert [len(batch) for batch in objective.seen] == 3 * [8, 8, 8, 5]
    assert steps_in(29, settings) == len(objective.seen) == 12
    passes = [list(chain(*objective.seen[4 * i : 4 * i + 4])) for i in range(3)]
    assert [sorted(rows) for rows in passes] == 3 * [list(range(29))]
    assert passes[0] != passes[1]


def test_a_batch_larger_than_the_data_is_all_of_it():
    batches = one_pass(numbered(5), 64)
    assert [len(batch.y) for batch in batches] == [5]


def test_a_row_keeps_its_label_environment_and_weights_when_shuffled():
    n = 11
    data = Batch(numbered(n).x, torch.arange(n) + 100, torch.arange(n) + 200, torch.arange(2.0 * n).view(2, n))
    for batch in one_pass(data, 4, seed=3):
        row = batch.x[:, 0].long()
        assert torch.equal(batch.y, row + 100)
        assert torch.equal(batch.e, row + 200)
        assert torch.equal(batch.log_p_e_given_x, torch.stack([row, row + n]).float())


def test_the_order_of_the_rows_comes_from_the_loops_own_generator():
    def order(global_seed, seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(global_seed)
            return one_pass(numbered(50), 50, seed)[0].x[:, 0].tolist()

    assert order(1, seed=0) == order(2, seed=0)
    assert order(1, seed=0) != order(1, seed=3)


def test_the_history_is_the_mean_over_rows_and_not_over_batches():
    """The last batch has one row; with a learning rate of nearly zero all losses are those of the same weights."""
    data, module = numbered(9), linear()
    settings = TrainingSettings(epochs=1, batch_size=8, learning_rate=1e-12)
    expected = (module(data.x)[:, 0] - data.y).square().mean().item()
    (history,) = train([module], Regression(), [data], settings, [torch.Generator().manual_seed(0)])
    assert isinstance(history, list)
    assert history[0]["loss"] == history[0]["error"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e25])
def test_clipping_limits_the_length_of_the_gradient_and_keeps_its_direction(scale):
    """Each model's on its own: the second one's is short already."""
    modules = [linear(), linear(1)]
    stack, direction = ModuleStack(modules), torch.tensor([[2.0, -1.0, 2.0], [1.0, 2.0, 2.0]]) / 3
    for module, row in zip(modules, torch.tensor([[scale], [1e-4]]) * direction, strict=True):
        module.weight.grad.copy_(row[None, :2])
        module.bias.grad.copy_(row[2:])
    stack.clip(0.5)
    for s, length in enumerate((min(scale, 0.5), 1e-4)):
        expected = length * direction[s]
        torch.testing.assert_close(stack.of_model(stack.gradient, s), expected, rtol=1e-4, atol=0)
        torch.testing.assert_close(modules[s].weight.grad, expected[None, :2], rtol=1e-4, atol=0)


def test_clipping_reaches_the_fit(rows):
    plain, loose, tight = (
        fit(ERMClassifier(epochs=2, clip_norm=norm, random_state=0), rows).history_["loss"]
        for norm in (None, 1e9, 1e-9)
    )
    assert plain == loose
    assert tight[-1] > plain[-1]  # with gradients this short, Adam's own epsilon keeps the steps small


def test_the_vector_of_a_stack_is_the_modules_own():
    modules = [nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)) for _ in range(2)]
    before = [module(torch.ones(1, 2)) for module in modules]
    stack = ModuleStack(modules)
    for module, value in zip(modules, before, strict=True):
        assert torch.equal(module(torch.ones(1, 2)), value)
    stack.vector[stack.owner == 1] = 0
    assert torch.equal(modules[0](torch.ones(1, 2)), before[0])
    assert modules[1](torch.ones(1, 2)).item() == 0


def test_only_modules_of_one_shape_can_be_stacked():
    with pytest.raises(ValueError, match="same names and shapes"):
        ModuleStack([nn.Linear(2, 1), nn.Linear(3, 1)])


def test_a_model_that_fails_does_not_touch_its_neighbours():
    settings = TrainingSettings(epochs=2, batch_size=4, learning_rate=1e-3)
    good, bad = numbered(9), numbered(9)
    bad.x[3, 1] = torch.nan
    alone, neighbour, victim = linear(), linear(), linear(1)
    (history,) = train([alone], Regression(), [good], settings, [torch.Generator().manual_seed(0)])
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 0)]
    error, same = train([victim, neighbour], Regression(), [bad, good], settings, generators)
    assert isinstance(error, NonFiniteLossError)
    assert same == history
    torch.testing.assert_close(neighbour.weight, alone.weight, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("decay", [0.5, 0.98, 1.0])
def test_the_average_of_the_weights_is_the_one_computed_by_hand(decay):
    loop = trainer(TrainingSettings(epochs=1, batch_size=4, learning_rate=0.1, average_decay=decay))
    data, by_hand = of_one_model(numbered(4)), loop.stack.of_model(loop.stack.vector, 0)
    for t in range(1, 31):
        loop.step(data)
        rate = min(decay, t / (t + AVERAGE_WARM_UP))
        by_hand = rate * by_hand + (1 - rate) * loop.stack.of_model(loop.stack.vector, 0)
    last = loop.stack.of_model(loop.stack.vector, 0)
    loop.finish()
    averaged = torch.cat([p.detach().reshape(-1) for p in loop.stack.modules[0].parameters()])
    torch.testing.assert_close(averaged, by_hand, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(averaged, last, rtol=1e-3)


def test_without_averaging_the_last_weights_are_kept():
    loop = trainer(TrainingSettings(epochs=1, batch_size=4, learning_rate=0.1))
    for _ in range(5):
        loop.step(of_one_model(numbered(4)))
    last = loop.stack.of_model(loop.stack.vector, 0)
    loop.finish()
    assert torch.equal(torch.cat([p.detach().reshape(-1) for p in loop.stack.modules[0].parameters()]), last)
    assert all(p.grad is None for p in loop.stack.modules[0].parameters())


@pytest.mark.parametrize("reset_at", [None, 3])
def test_the_loop_is_adam_and_a_reset_forgets_its_moments(reset_at):
    loop = trainer(TrainingSettings(epochs=1, batch_size=4, learning_rate=0.1, reset_optimizer_at=reset_at))
    module, data = linear(), numbered(4)
    adam = torch.optim.Adam(module.parameters(), lr=0.1)
    for step in range(8):
        loop.step(of_one_model(data))
        if step == reset_at:
            adam = torch.optim.Adam(module.parameters(), lr=0.1)
        adam.zero_grad()
        (module(data.x)[:, 0] - data.y).square().mean().backward()
        adam.step()
        torch.testing.assert_close(loop.stack.modules[0].weight, module.weight, rtol=1e-5, atol=1e-6)


def test_a_bar_on_request_goes_to_standard_error(rows, capsys):
    fit(ERMClassifier(epochs=2, random_state=0, verbose=1), rows)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ERMClassifier" in captured.err
    assert "2/2" in captured.err
    fit(ERMClassifier(epochs=2, random_state=0), rows)
    assert capsys.readouterr().err == ""


def test_annealing_holds_the_penalty_back_for_its_share_of_the_steps(rows):
    """Fishr's penalty has weight 0 until then, IRM's and V-REx's weight 1."""
    for classifier, initial in ((FishrClassifier, 0.0), (IRMClassifier, 1.0), (VRExClassifier, 1.0)):
        held_back = fit(classifier(epochs=2, penalty_weight=1e3, anneal_fraction=1.0, random_state=0), rows)
        plain = fit(classifier(epochs=2, penalty_weight=initial, random_state=0), rows)
        at_once = fit(classifier(epochs=2, penalty_weight=1e3, random_state=0), rows)
        assert_same_weights(weights(held_back), weights(plain))
        assert np.abs(at_once.predict_proba(rows.X) - plain.predict_proba(rows.X)).max() > 1e-6
    steps = fit(FishrClassifier(epochs=2, penalty_weight=1e3, anneal_steps=6, random_state=0), rows)
    assert steps.n_steps_ == 6
    assert_same_weights(
        weights(steps), weights(fit(FishrClassifier(epochs=2, penalty_weight=0.0, random_state=0), rows))
    )
