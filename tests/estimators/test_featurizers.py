"""Feature extractors: images, modules of one's own, and what they may not do."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from eber import PAPER_FORM, EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.method import aggregates
from eber.nn.image_extractor import IMAGES_AT_ONCE, ConvolutionalExtractor

CLASSIFIERS = [EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier]

# Fits of one or two epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
X, y, e = rows.X, rows.y, rows.environments
three = np.digitize(X[:, 1], np.quantile(X[:, 1], [1 / 3, 2 / 3]))  # three classes

images = np.zeros((len(X), 2, 8, 8), dtype=np.float32)
images[:, :, 2:6, 2:6] = X[:, :2, None, None]


def flat_featurizer(input_shape, representation_dim):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), representation_dim), nn.ReLU())


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("featurizer", ["cnn", flat_featurizer])
def test_images_with_the_built_in_and_with_ones_own_extractor(classifier, featurizer):
    fitted = classifier(featurizer=featurizer, representation_dim=6, epochs=1, random_state=0)
    proba = fitted.fit(images, three, environments=e).predict_proba(images)
    assert proba.shape == (len(X), 3)
    np.testing.assert_allclose(fitted.predict_proba(images[:5]), proba[:5], atol=1e-12)
    with pytest.raises(ValueError, match=r"rows of shape \(2, 4, 4\), but .* was fitted on \(2, 8, 8\)"):
        fitted.predict(images[:, :, :4, :4])
    bad = images.copy()
    bad[3, 1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN in position \(3, 1, 2, 0\)"):
        fitted.predict(bad)


@pytest.mark.parametrize("n", [3, IMAGES_AT_ONCE + 5])
def test_the_convolutional_extractor_is_the_paper_s_layers(n):
    """Convolution, ReLU, pooling, twice, then linear and ReLU: value and every gradient, in float64."""
    torch.manual_seed(0)
    extractor = ConvolutionalExtractor((2, 10, 9), 5).double()
    x = torch.randn(n, 2, 10, 9, dtype=torch.float64, requires_grad=True)
    first, second, last = (layer for layer in extractor.layers if isinstance(layer, nn.Conv2d | nn.Linear))
    plain = x
    for convolution in (first, second):
        plain = F.max_pool2d(torch.relu(convolution(plain)), 2)
    plain = torch.relu(last(plain.flatten(1)))
    output = extractor(x)
    torch.testing.assert_close(output, plain, rtol=0, atol=1e-12)
    direction = torch.randn_like(plain)
    inputs = [x, *extractor.parameters()]
    expected = torch.autograd.grad(plain, inputs, direction)
    torch.testing.assert_close(torch.autograd.grad(output, inputs, direction), expected, rtol=0, atol=1e-10)


def test_images_and_tables_are_not_confused():
    with pytest.raises(ValueError, match=r"'cnn' featurizer needs images of shape .* got rows of shape \(4,\)"):
        EBERClassifier(featurizer="cnn").fit(X, y, environments=e)
    with pytest.raises(ValueError, match="dim 4"):
        EBERClassifier().fit(images, y, environments=e)
    with pytest.raises(ValueError, match="at least 4x4, got 3x8"):
        EBERClassifier(featurizer="cnn").fit(images[:, :, :3], y, environments=e)


def test_a_featurizer_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"maps 2 rows to shape \(2, 7\); .*representation_dim=32"):
        EBERClassifier(featurizer=lambda shape, width: nn.Linear(4, 7)).fit(X, y, environments=e)
    with pytest.raises(TypeError, match=r"must return a torch.nn.Module, got builtin"):
        EBERClassifier(featurizer=lambda shape, width: torch.tanh).fit(X, y, environments=e)


class Watched(nn.Module):
    """A featurizer that notes the largest array it holds."""

    largest = 0

    def __init__(self, input_shape, representation_dim):
        super().__init__()
        self.wide, self.narrow = nn.Linear(*input_shape, 500), nn.Linear(500, representation_dim)

    def forward(self, x):
        hidden = torch.tanh(self.wide(x))
        Watched.largest = max(Watched.largest, hidden.numel())
        return self.narrow(hidden)


@pytest.mark.parametrize("classifier", [EBERClassifier, ERMClassifier])
def test_memory_is_bounded_whatever_the_featurizer_does_inside(classifier, monkeypatch):
    monkeypatch.setattr(aggregates, "CHUNK_ELEMENTS", 20_000)
    Watched.largest = 0
    fitted = classifier(featurizer=Watched, batch_size=16, epochs=1, random_state=0).fit(X, y, environments=e)
    fitted.predict_proba(X)
    fitted.transform(X)
    if classifier is EBERClassifier:
        fitted.predict_environment_proba(X)
        fitted.explain_uncertainty(X)
    assert 500 < Watched.largest <= 20_000


def with_dropout_and_batch_norm(input_shape, representation_dim):
    return nn.Sequential(
        nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, representation_dim)
    )


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_dropout_and_batch_norm_work_in_training_and_rest_in_prediction(classifier):
    first, again = (
        classifier(featurizer=with_dropout_and_batch_norm, epochs=2, batch_size=60, random_state=0).fit(
            X, y, environments=e
        )
        for _ in range(2)
    )
    weights = first.module_.state_dict()
    for name, value in again.module_.state_dict().items():
        assert torch.equal(weights[name], value)  # dropout draws from a seeded generator too
    means = [value for name, value in weights.items() if name.endswith("running_mean")]
    assert means
    assert all(mean.abs().max() > 0 for mean in means)
    assert not first.module_.training
    proba = first.predict_proba(X)
    np.testing.assert_array_equal(first.predict_proba(X), proba)
    np.testing.assert_allclose(first.predict_proba(X[:1]), proba[:1], atol=1e-12)  # one row is no batch


def test_batch_norm_with_a_last_batch_of_one_row_is_refused_before_training():
    with pytest.raises(ValueError, match="a batch has one row"):
        ERMClassifier(featurizer=with_dropout_and_batch_norm, batch_size=len(X) - 1).fit(X, y)


def frozen(input_shape, representation_dim):
    return nn.Sequential(nn.Linear(*input_shape, representation_dim), nn.ReLU()).requires_grad_(False)


@pytest.mark.parametrize("featurizer", [frozen, lambda input_shape, representation_dim: nn.Identity()])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_featurizer_without_anything_to_learn_stays_as_it_is(classifier, featurizer):
    """Features of a network that was trained elsewhere, or none at all."""
    fitted = classifier(featurizer=featurizer, representation_dim=X.shape[1], epochs=1, random_state=0)
    fitted.fit(X, y, environments=e)
    assert np.isfinite(fitted.predict_proba(X)).all()
    if featurizer is frozen:
        extractor = next(m for m in fitted.module_.modules() if isinstance(m, nn.Sequential) and len(m) == 2)
        with torch.random.fork_rng():
            torch.manual_seed(fitted.seed_)
            start = frozen((X.shape[1],), X.shape[1])
        torch.testing.assert_close(extractor[0].weight.float(), start[0].weight)


def test_a_module_that_the_callable_keeps_is_neither_trained_nor_shared():
    kept = nn.Sequential(nn.Linear(X.shape[1], 4), nn.ReLU())
    before = kept[0].weight.clone()
    clf = EBERClassifier(featurizer=lambda shape, width: kept, representation_dim=4, epochs=1, random_state=0)
    first = clf.fit(X, y, environments=e).predict_proba(X)
    assert torch.equal(kept[0].weight, before)
    assert clf.module_.g.extractor is not clf.module_.h.extractor
    np.testing.assert_array_equal(clf.fit(X, y, environments=e).predict_proba(X), first)


@pytest.mark.parametrize(
    ("featurizer", "message"),
    [
        (nn.Linear(3, 32), "featurizer is a module"),
        (lambda shape: nn.Identity(), "is called as featurizer"),
    ],
)
def test_a_featurizer_that_cannot_be_called_so_is_refused(featurizer, message):
    with pytest.raises(TypeError, match=message):
        ERMClassifier(featurizer=featurizer).fit(X, y)


def test_an_absorbed_centre_leaves_the_function_as_it_was():
    torch.manual_seed(0)
    extractor = ConvolutionalExtractor((2, 10, 9), 5).double()
    x = torch.rand(40, 2, 10, 9, dtype=torch.float64)
    uncentred = extractor(x)
    extractor.centre(x)
    centred = extractor(x)
    assert (centred - uncentred).abs().max() > 0.01
    extractor.absorb_centre()
    torch.testing.assert_close(extractor(x), centred, rtol=0, atol=1e-12)
    assert all(not buffer.any() for buffer in extractor.buffers())


def test_what_the_last_layer_sees_has_mean_zero_once_centred():
    torch.manual_seed(0)
    extractor = ConvolutionalExtractor((2, 8, 8), 5).double()
    x = torch.rand(300, 2, 8, 8, dtype=torch.float64)
    extractor.centre(x)
    *before, _, _ = extractor.layers
    seen = nn.Sequential(*before)(x)
    torch.testing.assert_close(seen.mean(0), torch.zeros_like(seen[0]), rtol=0, atol=1e-12)


def test_centring_is_part_of_the_recipe_and_not_of_the_paper_s_form():
    def bias(**parameters):
        fitted = EBERClassifier(**{"featurizer": "cnn", "epochs": 1, "learning_rate": 1e-9, **parameters})
        fitted.set_params(random_state=0).fit(images, y, environments=e)
        return fitted.module_.h.extractor.layers[7].bias

    # With steps this small only the absorbed centre sets the two apart.
    assert (bias() - bias(centre_features=False)).abs().max() > 1e-3
    torch.testing.assert_close(bias(**PAPER_FORM), bias(centre_features=False), rtol=0, atol=1e-6)


def test_centring_keeps_units_of_the_environment_classifier_alive():
    """A unit is alive where some image makes it positive; without any, p(e|x) can never be learned."""
    rng = np.random.default_rng(0)
    left = rng.integers(2, size=400)
    pictures = rng.random((400, 1, 12, 12)).astype(np.float32)
    pictures[..., :6] += left[:, None, None, None]
    pictures[..., 6:] += 1 - left[:, None, None, None]
    hospital = rng.integers(2, size=400)

    def alive(**parameters):
        fitted = EBERClassifier(featurizer="cnn", epochs=2, batch_size=16, **parameters)
        fitted.fit(pictures, left, environments=hospital)
        with torch.no_grad():
            return int((fitted.module_.h.extractor(torch.from_numpy(pictures).double()) > 0).any(0).sum())

    plain, centred = (sum(alive(centre_features=c, random_state=s) for s in (0, 1)) for c in (False, True))
    assert centred > 1.5 * plain
