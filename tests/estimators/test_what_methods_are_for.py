"""What each of the further methods does, on simulated data where it must show: gains, and failures that are known."""

from typing import Any

import numpy as np
import pytest

from eber import (
    ANDMaskClassifier,
    CORALClassifier,
    EQRMClassifier,
    ERMClassifier,
    GroupDROClassifier,
    IBERMClassifier,
    IGAClassifier,
    MMDClassifier,
    MultiEnvironmentData,
    SDClassifier,
    fit_many,
)
from eber.evaluation.metrics import negative_log_likelihood
from eber.model_selection import choose_penalty_weight

# The fits are short.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
SEEDS = range(3)


def conflicting_rules(sizes, seed):
    """The label follows the first column in two large environments and the second in a small one."""
    rng = np.random.default_rng(seed)
    e = np.repeat([0, 1, 2], sizes)
    X = rng.normal(size=(len(e), 2))
    y = (np.where(e == 2, X[:, 1], X[:, 0]) + 0.3 * rng.normal(size=len(e)) > 0).astype(int)
    return MultiEnvironmentData(X, y, e)


def label_shift(shares, seed, n=200):
    """p(x|y) is the same everywhere; what differs is how many rows are of class 1."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(len(shares)), n)
    y = (rng.random(len(e)) < np.array(shares)[e]).astype(int)
    X = rng.normal(size=(len(e), 3))
    X[:, 0] += 2 * (2 * y - 1)
    return MultiEnvironmentData(X, y, e)


def turning_feature(signs, seed, n=300):
    """The first column tells the label a little and everywhere, the second a lot and in a direction of each place."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(len(signs)), n)
    y = rng.integers(0, 2, len(e))
    X = rng.normal(size=(len(e), 2))
    X[:, 0] += 0.7 * (2 * y - 1)
    X[:, 1] += 2 * np.array(signs)[e] * (2 * y - 1)
    return MultiEnvironmentData(X, y, e)


def worst_environment(model, table):
    return max(
        negative_log_likelihood(table.y[rows], model.predict_proba(table.X[rows]), model.classes_)
        for rows in (table.environments == e for e in np.unique(table.environments))
    )


def worst_environments(make, train, test):
    """Loss in the worst environment of new rows, for each seed."""
    fits = [make(seed) for seed in SEEDS]
    fit_many(fits, [train(seed) for seed in SEEDS])
    return np.array([worst_environment(model, test(100 + seed)) for seed, model in zip(SEEDS, fits, strict=True)])


@pytest.mark.parametrize(
    "robust",
    [
        lambda **options: GroupDROClassifier(step_size=0.1, **options),
        lambda **options: EQRMClassifier(quantile=0.9, **options),
        lambda **options: EQRMClassifier(quantile=0.9, gradient="exact", **options),
    ],
    ids=["GroupDRO", "EQRM", "EQRM, exact gradient"],
)
def test_the_worst_environment_is_better_off_than_under_erm(robust):
    """A linear model cannot follow both rules; ERM follows the many, and leaves the few worse off than a coin does."""

    def train(seed):
        return conflicting_rules((400, 400, 100), seed)

    def test(seed):
        return conflicting_rules((500, 500, 500), seed)

    options: dict[str, Any] = {"featurizer": "linear", "epochs": 30, "learning_rate": 0.01}
    erm = worst_environments(lambda seed: ERMClassifier(random_state=seed, **options), train, test)
    found = worst_environments(lambda seed: robust(random_state=seed, **options), train, test)
    assert erm.min() > 1
    assert found.max() < np.log(2)


def test_groupdro_hears_the_worst_environment_more_than_equal_weights_do():
    def train(seed):
        return conflicting_rules((400, 400, 100), seed)

    def test(seed):
        return conflicting_rules((500, 500, 500), seed)

    options: dict[str, Any] = {"featurizer": "linear", "epochs": 30, "learning_rate": 0.01}
    equal, robust = (
        worst_environments(lambda seed, s=s: GroupDROClassifier(step_size=s, random_state=seed, **options), train, test)
        for s in (0.0, 0.1)
    )
    assert np.all(robust < equal - 0.05)


@pytest.mark.parametrize(("classifier", "weight"), [(CORALClassifier, 100.0), (MMDClassifier, 10.0)])
def test_aligning_features_fails_where_shares_of_labels_differ(classifier, weight):
    """Features that tell the classes apart have another mean where there are more of one class."""

    def train(seed):
        return label_shift((0.1, 0.5, 0.9), seed)

    def test(seed):
        return label_shift((0.5,), seed, n=1000)

    erm = worst_environments(lambda seed: ERMClassifier(epochs=20, random_state=seed), train, test)
    aligned = worst_environments(
        lambda seed: classifier(penalty_weight=weight, epochs=20, random_state=seed), train, test
    )
    assert erm.max() < 0.1
    assert aligned.min() > 0.5


def test_it_is_the_shares_of_labels_that_alignment_fails_on():
    """The same weight costs far less with equal shares, though another column sets the environments apart."""

    def unequal(seed):
        return label_shift((0.1, 0.5, 0.9), seed)

    def equal(seed):
        table = label_shift((0.5, 0.5, 0.5), seed)
        table.X[:, 1] += 3 * table.environments
        return table

    failed, found = (
        worst_environments(
            lambda seed: CORALClassifier(penalty_weight=100.0, epochs=20, random_state=seed), train, train
        )
        for train in (unequal, equal)
    )
    assert found.max() < failed.min() - 0.1


def test_andmask_leaves_a_feature_alone_that_environments_disagree_on():
    """Full batches and a linear model, so that no noise decides; in a place where the second column turned round."""
    options: dict[str, Any] = {"featurizer": "linear", "batch_size": 900, "epochs": 60, "learning_rate": 0.01}

    def train(seed):
        return turning_feature((1, 1, -1), seed)

    def test(seed):
        return turning_feature((-1,), seed)

    erm = worst_environments(lambda seed: ERMClassifier(random_state=seed, **options), train, test)
    masked = worst_environments(
        lambda seed: ANDMaskClassifier(agreement=1.0, random_state=seed, **options), train, test
    )
    assert np.all(masked < erm - 0.2)


def test_the_bottleneck_shrinks_what_features_vary_within_environments():
    table = label_shift((0.3, 0.5), 0)
    X, y, e = table.X, table.y, table.environments
    spread = {}
    for weight in (0.0, 0.1, 10.0):
        model = IBERMClassifier(penalty_weight=weight, epochs=20, random_state=0).fit(X, y, environments=e)
        spread[weight] = np.mean([model.transform(X[e == j]).var(0, ddof=1).mean() for j in (0, 1)])
    assert spread[10.0] < 0.2 * spread[0.1] < 0.2 * spread[0.0]


def test_spectral_decoupling_shrinks_logits():
    table = label_shift((0.5,), 0)
    X, y, _ = table.X, table.y, table.environments
    largest = {}
    for weight in (0.0, 0.01, 0.1):
        proba = SDClassifier(penalty_weight=weight, epochs=40, random_state=0).fit(X, y).predict_proba(X)
        largest[weight] = np.abs(np.log(proba[:, 1] / proba[:, 0])).mean()
    assert largest[0.1] < 0.8 * largest[0.01] < 0.8 * largest[0.0]


def test_iga_brings_gradients_of_environments_together():
    table = turning_feature((1, 0.2, -0.5), 0)
    X, y, e = table.X, table.y, table.environments
    spread = {}
    for weight in (0.0, 1.0):
        model = IGAClassifier(penalty_weight=weight, batch_size=900, epochs=40, learning_rate=0.01, random_state=0)
        spread[weight] = model.fit(X, y, environments=e).history_["penalty"][-1]
    assert spread[1.0] < 0.1 * spread[0.0]


@pytest.mark.parametrize(
    ("classifier", "parameter", "grid"),
    [
        (GroupDROClassifier, "step_size", (0.0, 0.1)),
        (ANDMaskClassifier, "agreement", (0.3, 1.0)),
        (EQRMClassifier, "quantile", (0.5, 0.9)),
        (CORALClassifier, "penalty_weight", (0.1, 100.0)),
        (SDClassifier, "penalty_weight", (0.01, 10.0)),
    ],
)
def test_weights_are_chosen_by_the_named_rules_whatever_they_are_called(classifier, parameter, grid):
    table = label_shift((0.2, 0.5, 0.8), 1, n=60)
    X, y, e = table.X, table.y, table.environments
    model = classifier(epochs=5, random_state=0)
    choice = choose_penalty_weight(
        model, X, y, environments=e, grid=grid, rule="leave_one_environment_out", parameter=parameter
    )
    assert choice.weight in grid
    assert len(set(choice.losses.values())) == len(grid)  # the weight reaches the fits, and matters
    assert model.get_params()[parameter] == classifier().get_params()[parameter]
