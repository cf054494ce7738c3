"""Numbers at the edge: finite losses and probabilities that sum to one, or a refusal that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from eber import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.exceptions import NonFiniteLossError
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table
from tests.trust.effort import times

CLASSIFIERS = (EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier)
Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
]


def plain(n: int = 200, d: int = 4, m: int = 4) -> Rows:
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(n, d)), rng.integers(m, size=n)
    return X, (X[:, 0] + 0.5 * e + rng.normal(size=n) > 0.5).astype(int), e


def constant_feature() -> Rows:
    X, y, e = plain()
    X[:, 1] = 3.0
    return X, y, e


def nothing_but_constants() -> Rows:
    X, y, e = plain()
    return np.full_like(X, 7.0), y, e


def duplicated_columns() -> Rows:
    X, y, e = plain()
    return np.repeat(X, 5, axis=1), y, e


def mixed_scales() -> Rows:
    X, y, e = plain()
    return X * np.array([1e-12, 1e-4, 1e4, 1e12]), y, e


def one_in_ten_thousand() -> Rows:
    X, _, e = plain(20_000, 3)
    return X, np.isin(np.arange(20_000), [5, 7777]).astype(int), e


def environments_of_one_row() -> Rows:
    X, y, e = plain()
    return X, y, np.where(np.arange(200) < 195, e, 10 + np.arange(200))


def every_row_an_environment() -> Rows:
    X, y, _ = plain(30)
    return X, y, np.arange(30)


def a_thousand_environments() -> Rows:
    X, y, _ = plain(1000, 2)
    return X, y, np.arange(1000)


def label_among_the_features() -> Rows:
    X, y, e = plain()
    return np.column_stack([X, 2.0 * y - 1]), y, e


def one_class_in_an_environment() -> Rows:
    X, y, e = plain()
    return X, np.where(e == 0, 1, y), e


def many_classes() -> Rows:
    X, _, e = plain()
    return X, np.random.default_rng(1).integers(8, size=len(X)), e


def scaled(factor: float) -> Callable[[], Rows]:
    def rows() -> Rows:
        X, y, e = plain()
        return X * factor, y, e

    rows.__name__ = f"scale {factor:g}"
    return rows


CASES = [
    *(constant_feature, nothing_but_constants, duplicated_columns, mixed_scales, one_in_ten_thousand, many_classes),
    *(environments_of_one_row, every_row_an_environment, a_thousand_environments, label_among_the_features),
    *(one_class_in_an_environment, *map(scaled, (1e-12, 1e-6, 1e6, 1e12))),
]
REFUSABLE = {"mixed_scales", "scale 1e+06", "scale 1e+12"}
"""Where losses may overflow: the only right answers then are numbers or the advice to standardise."""


@pytest.mark.parametrize("rows", CASES, ids=lambda rows: rows.__name__)
def test_every_classifier_gives_probabilities_or_advice(
    rows: Callable[[], Rows], tally: Callable[[str, int], None]
) -> None:
    X, y, e = rows()
    large = len(X) >= 1000
    options: dict[str, Any] = {"epochs": 3}
    if large:
        options = {"epochs": 1, "batch_size": 256, "hidden_dims": (4,), "representation_dim": 4}
    for classifier in CLASSIFIERS:
        try:
            model = classifier(random_state=0, **options).fit(X, y, environments=e)
        except NonFiniteLossError as refused:
            assert rows.__name__ in REFUSABLE
            assert "Standardise the features" in str(refused)  # noqa: PT017
            continue
        assert all(np.isfinite(values).all() for values in model.history_.values())
        assert_probabilities(model.predict_proba(X[:100]), len(np.unique(y)))
        assert np.isfinite(model.transform(X[:100])).all()
        if isinstance(model, EBERClassifier):
            assert_probabilities(model.predict_environment_proba(X[:100]), len(np.unique(e)))
    tally("fits at the edge of numbers", len(CLASSIFIERS))


def assert_probabilities(p: NDArray[np.float64], columns: int) -> None:
    assert p.shape[1] == columns
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("latent_dim", range(1, 17) if times(0, 1) else (1, 2, 3, 8, 16))
@pytest.mark.parametrize("decoder", [(), (4,)], ids=["closed form", "points"])
def test_any_latent_dimension(latent_dim: int, decoder: tuple[int, ...]) -> None:
    """With a linear decoder the latent variable is integrated out in closed form, with another at points."""
    X, y, e = plain(60)
    model = EBERClassifier(latent_dim=latent_dim, decoder_hidden_dims=decoder, epochs=2, random_state=0)
    model.fit(X, y, environments=e)
    assert_probabilities(model.predict_proba(X), 2)
    assert model.transform(X).shape == (60, latent_dim)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_float32_and_float64_give_the_same_model(classifier: Any) -> None:
    X, y, e = plain(100)
    single = X.astype(np.float32)
    a, b = (classifier(epochs=2, random_state=0).fit(single.astype(kind), y, environments=e) for kind in "fd")
    np.testing.assert_array_equal(a.predict_proba(single), b.predict_proba(single.astype(np.float64)))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_same_seed_gives_the_same_model_and_another_another(classifier: Any) -> None:
    X, y, e = plain(100)
    fits = [classifier(epochs=2, random_state=seed).fit(X, y, environments=e).predict_proba(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - fits[2]).max() > 0


def test_a_table_of_any_scale_is_standardised(tmp_path: Any) -> None:
    """On the command line features are standardised, so that none of the refusals above is met there."""
    X, y, e = plain()
    for factor in (1e-100, 1e-12, 1.0, 1e12, 1e150):
        frame = pd.DataFrame(X * factor, columns=list("abcd")).assign(same=5.0, twice=X[:, 0] * factor, y=y, site=e)
        frame.to_parquet(tmp_path / "t.parquet")
        table = read_training_table(tmp_path / "t.parquet", label="y", environment="site")
        Z = Preprocessing.fit(table.columns, table.schema).transform(table.columns)
        np.testing.assert_allclose(Z.std(0), 1, rtol=1e-6)
