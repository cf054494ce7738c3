"""A few labels of a new environment, and how far off a model may be there: from the table to the predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.methods import own
from eber.tables.files import open_table
from eber.tables.model_folder import TableModel
from eber.tables.training import FeatureColumns, decode
from eber.tuning.calibration import (
    ENVIRONMENT_SD,
    INTERCEPT_SD,
    SLOPE_SD,
    Calibration,
    estimate_calibration,
    fixed_calibration,
)
from tests.command_line import eber as command
from tests.own_methods import RelabelledClassifier
from tests.tables.test_model_folder import make

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

NAMES: dict[str, Any] = {"label": "sepsis", "environment": "hospital"}
PRIOR = Calibration(np.array([-0.1, 0.0, 0.0]), np.diag([0.1, 0.4, 0.4]), 8)


@pytest.fixture(scope="module")
def hospitals() -> pd.DataFrame:
    """Four hospitals to learn from."""
    table = draw_hospitals(900)
    return table[table["hospital"].isin(["Ashford", "Birchwood", "Castleton", "Dunmore"])].reset_index(drop=True)


@pytest.fixture(scope="module")
def new() -> pd.DataFrame:
    """A fifth, with its labels; it is sicker than its measurements say."""
    rows = draw_hospitals(900, random_state=5)
    rows = rows[rows["hospital"] == "Eastgate"].head(80).assign(hospital="New Hospital").reset_index(drop=True)
    rows.loc[rows.index % 3 == 0, "sepsis"] = 1
    return rows


@pytest.fixture(scope="module")
def model(hospitals: pd.DataFrame) -> TableModel:
    return eber.fit_table(hospitals, **NAMES, method="Logistic regression", quick=True)


def matrix(model: TableModel, table: pd.DataFrame) -> np.ndarray:
    """p(y|x) of the classifier itself."""
    plain = replace(model, calibration=None).predict_table(table).to_pandas()
    return plain[["p(0)", "p(1)"]].to_numpy()


def brute_force(p: np.ndarray, y: np.ndarray, prior: Calibration, deviations: np.ndarray | None = None) -> np.ndarray:
    """The posterior mode of slope, intercepts and weights by a general solver."""
    K = p.shape[1]

    def loss(theta: np.ndarray) -> float:
        u = np.exp(theta[0]) * np.log(p) + theta[1 : 1 + K]
        if deviations is not None:
            u = u + np.einsum("nke,e->nk", deviations, theta[1 + K :])
        likelihood = (u[np.arange(len(y)), y] - special.logsumexp(u, axis=1)).sum()
        away = theta - prior.mean
        return float(-likelihood + away @ np.linalg.solve(prior.covariance, away) / 2)

    found: np.ndarray = optimize.minimize(loss, prior.mean, method="BFGS", options={"gtol": 1e-8}).x
    return found


def test_fit_keeps_how_left_out_environments_differ(model: TableModel, hospitals: pd.DataFrame, tmp_path: Path) -> None:
    """The same by hand: a fit without each hospital, and what it says about it."""
    proba = np.empty((len(hospitals), 2))
    for name in hospitals["hospital"].unique():
        held = (hospitals["hospital"] == name).to_numpy()
        without = eber.fit_table(hospitals[~held], **NAMES, method="Logistic regression", quick=True, scores=False)
        proba[held] = matrix(without, hospitals[held])
    by_hand = estimate_calibration(proba, hospitals["sepsis"].to_numpy(), hospitals["hospital"].to_numpy())
    assert model.calibration is not None
    np.testing.assert_allclose(model.calibration.mean, by_hand.mean, atol=1e-6)
    np.testing.assert_allclose(model.calibration.covariance, by_hand.covariance, atol=1e-6)
    assert model.calibration.n_environments == 4
    model.save(tmp_path / "model")
    loaded = eber.load_model(tmp_path / "model").calibration
    assert loaded is not None
    np.testing.assert_array_equal(loaded.covariance, model.calibration.covariance)
    card = (tmp_path / "model" / "card.md").read_text()
    assert "How far off it may be in a new environment" in card
    assert "In each of 4 environments that a fit had not seen" in card


def test_labelled_rows_recalibrate_the_predictions(model: TableModel, new: pd.DataFrame) -> None:
    labelled, rest = new.head(30), new.tail(50)
    predictions = model.predict_table(rest.drop(columns="sepsis"), labelled=labelled)
    assert model.calibration is not None
    theta = brute_force(matrix(model, labelled), labelled["sepsis"].to_numpy(), model.calibration)
    expected = special.softmax(np.exp(theta[0]) * np.log(matrix(model, rest)) + theta[1:], axis=1)
    found = predictions.to_pandas()
    np.testing.assert_allclose(found[["p(0)", "p(1)"]], expected, atol=1e-5)
    assert found["predicted"].tolist() == expected.argmax(1).tolist()
    shift = theta[2] - theta[1]
    said = f"30 labelled rows of New Hospital: slope {np.exp(theta[0]):.2f}, intercept {shift:+.2f} on the log-odds of "
    assert any(remark.startswith(f"{said}sepsis = 1") for remark in predictions.remarks)
    truth = rest["sepsis"].to_numpy()
    nll = [-np.log(p[np.arange(50), truth]).mean() for p in (matrix(model, rest), expected)]
    assert nll[1] < nll[0]


def test_low_and_high_hold_the_prediction_and_narrow_with_labels(model: TableModel, new: pd.DataFrame) -> None:
    widths = []
    for labelled, level in ((None, 0.9), (new.head(10), 0.9), (new, 0.9), (new, 0.5)):
        answers = model.predict_table(new, labelled=labelled, level=level).to_pandas()
        assert (answers["low"] <= answers["p(1)"]).all()
        assert (answers["p(1)"] <= answers["high"]).all()
        widths.append((answers["high"] - answers["low"]).mean())
    assert widths == sorted(widths, reverse=True)
    adapted = model.adapt_to_labels(new)
    low, high = adapted.predict_interval(new, 0.9)
    answers = adapted.predict_table(new).to_pandas()
    np.testing.assert_allclose(low[:, 1], answers["low"])
    np.testing.assert_allclose(high[:, 1], answers["high"])
    with pytest.raises(ValueError, match=r"level is 1\.5"):
        model.predict_table(new, level=1.5)


def test_of_several_classes_it_is_the_predicted_one(hospitals: pd.DataFrame) -> None:
    three = hospitals.assign(sepsis=np.where(hospitals["age"] > 75, "old", hospitals["sepsis"].astype(str)))
    model = eber.fit_table(three, **NAMES, method="Logistic regression", quick=True)
    answers = model.predict_table(three, labelled=three.head(40)).to_pandas()
    best = answers[["p(0)", "p(1)", "p(old)"]].max(axis=1)
    assert ((answers["low"] <= best) & (best <= answers["high"])).all()
    assert model.predict_interval(three)[0].shape == (len(three), 3)


@pytest.mark.parametrize(
    "method", ["Gradient boosting", "Random forest", "No model", "ERM", "EBER", "Pool", "Relabelled"]
)
def test_every_method_that_fit_takes_learns_from_labels(
    method: str, tmp_path: Path, new: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "registered", {})
    eber.register_method(RelabelledClassifier)
    model = replace(make(tmp_path, method), calibration=PRIOR)
    answers = model.predict_table(new, labelled=new.head(9)).to_pandas()  # too few for EBER's environments
    theta = brute_force(matrix(model, new.head(9)), new["sepsis"].head(9).to_numpy(), PRIOR)
    expected = special.softmax(np.exp(theta[0]) * np.log(matrix(model, new)) + theta[1:], axis=1)
    np.testing.assert_allclose(answers[["p(0)", "p(1)"]], expected, atol=1e-5)


def test_labels_may_stand_in_some_rows_of_the_table_itself(
    model: TableModel, new: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "new.csv"
    partly = new.assign(sepsis=new["sepsis"].astype("Int64").mask(new.index >= 30))
    partly.to_csv(path, index=False)
    itself = model.predict_table(path, labelled=path)
    apart = model.predict_table(new, labelled=new.head(30))
    np.testing.assert_allclose(itself.to_pandas()["p(1)"], apart.to_pandas()["p(1)"], atol=1e-12)
    assert any(
        "50 of 80 rows" in remark and "not learned from: rows 31, 32, 33" in remark and "and 40 more" in remark
        for remark in itself.remarks
    )


def test_labels_are_the_model_s_classes_however_their_numbers_are_written(model: TableModel, new: pd.DataFrame) -> None:
    """Pandas writes 1.0 where another label of the column is missing."""
    labelled = new.head(30)
    expected = model.predict_table(new, labelled=labelled).to_pandas()["p(1)"]
    for spelling in ({0: "0.0", 1: "1.0"}, {0: "0", 1: "+1"}, {0: 0.0, 1: 1.0}):
        written = labelled.assign(sepsis=labelled["sepsis"].map(spelling))
        found = model.predict_table(new, labelled=written).to_pandas()["p(1)"]
        np.testing.assert_array_equal(found, expected)


def test_what_cannot_be_learned_from_is_refused_by_name(model: TableModel, new: pd.DataFrame) -> None:
    strange = new.assign(sepsis=new["sepsis"].astype(str).mask(new.index == 4, "perhaps"))
    with pytest.raises(ValueError, match=r"Row 5 of .* has the label 'perhaps' in column 'sepsis'.* it knows 0, 1"):
        model.predict_table(new, labelled=strange)
    for name in ("sepsis", "age"):
        with pytest.raises(ValueError, match=f"has no column '{name}'"):
            model.predict_table(new, labelled=new.drop(columns=name))
    with pytest.raises(ValueError, match="has no row with a label in column 'sepsis'"):
        model.predict_table(new, labelled=new.assign(sepsis=None))
    with pytest.raises(ValueError, match="labelled rows or adapt, not both"):
        model.predict_table(new, labelled=new, adapt=True)


def test_a_model_that_knows_no_spread_uses_the_fixed_one_and_says_so(model: TableModel, new: pd.DataFrame) -> None:
    plain = replace(model, calibration=None)
    predictions = plain.predict_table(new, labelled=new)
    answers = predictions.to_pandas()
    assert not {"low", "high"} & set(answers)
    assert any("does not know how environments differ" in remark for remark in predictions.remarks)
    fixed = fixed_calibration(2)
    np.testing.assert_allclose(np.sqrt(np.diag(fixed.covariance)), [SLOPE_SD, INTERCEPT_SD, INTERCEPT_SD])
    theta = brute_force(matrix(model, new), new["sepsis"].to_numpy(), fixed)
    expected = special.softmax(np.exp(theta[0]) * np.log(matrix(model, new)) + theta[1:], axis=1)
    np.testing.assert_allclose(answers[["p(0)", "p(1)"]], expected, atol=1e-5)
    with pytest.raises(ValueError, match="does not know how environments differ"):
        plain.predict_interval(new)


def test_the_command_says_what_labels_changed(
    model: TableModel,
    new: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model.save(tmp_path / "model")
    for name, rows in (("new.csv", new.drop(columns="sepsis")), ("known.csv", new.head(30))):
        rows.to_csv(tmp_path / name, index=False)
    asked = ["predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "p.csv"]
    assert command(monkeypatch, *asked, "--labelled", tmp_path / "known.csv", "--level", "0.8") == 0
    said = capsys.readouterr().out
    assert "30 labelled rows of New Hospital: slope " in said
    assert "lies in a new environment with 80 % probability, by 4 training environments" in said
    expected = model.predict_table(new, labelled=new.head(30), level=0.8).to_pandas()
    written = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(written[["p(1)", "low", "high"]], expected[["p(1)", "low", "high"]], atol=1e-12)
    assert command(monkeypatch, *asked, "--labelled", tmp_path / "known.csv", "--adapt") == 2
    assert "labelled rows or adapt, not both" in capsys.readouterr().err


def test_labels_of_a_training_environment_and_of_several_are_spoken_of(model: TableModel, new: pd.DataFrame) -> None:
    mixed = new.assign(hospital=np.where(new.index < 40, "Ashford", "Zenith"))
    remarks = " ".join(model.predict_table(new, labelled=mixed).remarks)
    assert "come from 2 environments (hospital) and count as one" in remarks
    assert "Ashford: the model was fitted on this environment" in remarks


@pytest.fixture(scope="module")
def by_environment(tmp_path_factory: pytest.TempPathFactory) -> TableModel:
    """EBER, whose environments have predictions of their own."""
    return replace(make(tmp_path_factory.mktemp("eber"), "EBER"), calibration=PRIOR)


def told_by_one(model: TableModel, table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Labels that follow what the model would say in one of its environments, far more loudly."""
    X = model.preprocessing.transform(_columns(model, table))
    explanation = model.classifier.explain(X)
    deviation = np.log(explanation.p_y_given_xe[:, 2]) - np.log(explanation.p_y_given_x)
    p = special.softmax(np.log(explanation.p_y_given_x) + 60 * deviation, axis=1)[:, 1]
    return table.assign(sepsis=(np.random.default_rng(seed).random(len(p)) < p).astype(int))


def _columns(model: TableModel, table: pd.DataFrame) -> FeatureColumns:
    file = open_table(table)
    return decode(file.read(), file, model.schema)


def test_environments_are_listened_to_where_that_clearly_helps(by_environment: TableModel, tmp_path: Path) -> None:
    """The mode of all weights together is what a general solver finds; the model is saved with them."""
    rows = draw_hospitals(700, random_state=3)
    told = told_by_one(by_environment, rows.head(300))
    adapted = by_environment.adapt_to_labels(told)
    m = len(by_environment.classifier.environments_)
    assert adapted.calibration is not None
    assert len(adapted.calibration.mean) == 3 + m
    assert any("are used as well: over labelled rows" in remark for remark in adapted.card["remarks"])
    explanation = by_environment.classifier.explain(by_environment.preprocessing.transform(_columns(adapted, told)))
    deviations = np.log(explanation.p_y_given_xe).transpose(0, 2, 1) - np.log(explanation.p_y_given_x)[:, :, None]
    prior = PRIOR.with_environments(m)
    np.testing.assert_allclose(np.diag(prior.covariance)[3:], ENVIRONMENT_SD**2)
    theta = brute_force(explanation.p_y_given_x, told["sepsis"].to_numpy(), prior, deviations)
    np.testing.assert_allclose(adapted.calibration.mean, theta, atol=1e-4)
    adapted.save(tmp_path / "adapted")
    again = eber.load_model(tmp_path / "adapted")
    pd.testing.assert_frame_equal(
        again.predict_table(rows).to_pandas(), adapted.predict_table(rows).to_pandas(), rtol=0, atol=1e-12
    )
    twice = again.adapt_to_labels(rows.head(20))
    assert twice.calibration is not None
    assert twice.calibration.n_labels == 320
    with pytest.raises(ValueError, match="has learned from labels"):
        again.predict_table(rows, adapt=True)


def test_environments_are_not_listened_to_where_it_does_not(by_environment: TableModel) -> None:
    rows = draw_hospitals(120, random_state=3)
    coin = rows.assign(sepsis=np.random.default_rng(0).integers(0, 2, len(rows)))
    adapted = by_environment.adapt_to_labels(coin)
    assert adapted.calibration is not None
    assert len(adapted.calibration.mean) == 3
    assert any("are not used: over labelled rows" in remark for remark in adapted.card["remarks"])
    few = by_environment.adapt_to_labels(rows.head(5))
    assert any("were not tried: they need at least 10 labels" in remark for remark in few.card["remarks"])
