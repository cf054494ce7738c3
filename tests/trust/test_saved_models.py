"""Models that version 1 of the format saved are read by every later version, with identical predictions.

Identical means equal to 1e-12: the last bits of a sum depend on the machine. How the files were made:
tests/data/make_models.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import eber
from eber.tables.columns import as_numbers
from eber.tables.model_folder import TableModel
from eber.tables.prediction import predict_file

FOLDER = Path(__file__).parent.parent / "data" / "models-v1"
MODELS = sorted(path.stem for path in FOLDER.glob("*.npz"))
SAME: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


def test_there_is_a_model_of_every_kind() -> None:
    kinds = ("EBER", "ERM", "IRM", "VREx", "Fishr")
    expected = {f"{kind}Classifier-{featurizer}" for kind in kinds for featurizer in ("linear", "mlp", "cnn")}
    extra = {f"EBERClassifier-{name}" for name in ("adapted", "three-classes", "quadrature", "paper-form", "shared")}
    assert set(MODELS) == expected | extra


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_version_1_answers_as_it_did(name: str) -> None:
    """Seen to fail when the weights are read in another order or the gain of h is changed."""
    model = getattr(eber, name.split("-")[0]).load(FOLDER / name)
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as expected:
        X = expected["X"]
        np.testing.assert_allclose(model.predict_proba(X), expected["proba"], **SAME)
        np.testing.assert_allclose(model.transform(X), expected["transform"], **SAME)
        if "environment_proba" in expected:
            np.testing.assert_allclose(model.predict_environment_proba(X), expected["environment_proba"], **SAME)
        np.testing.assert_array_equal(model.predict(X), model.classes_[expected["proba"].argmax(1)])


def test_a_model_folder_of_version_1_predicts_as_it_did(tmp_path: Path) -> None:
    model = TableModel.load(FOLDER / "bundle")
    predict_file(model, FOLDER / "new.csv", tmp_path / "p.parquet")
    found, expected = pd.read_parquet(tmp_path / "p.parquet"), pd.read_csv(FOLDER / "bundle-predictions.csv")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, **SAME)
    assert model.card["held_out_scores"][0]["held_out"] == "Ashford"


def test_a_model_folder_of_version_1_takes_the_limits_of_its_fit_for_missing_as_it_did() -> None:
    lactate = next(
        feature for feature in TableModel.load(FOLDER / "bundle").schema.features if feature.name == "lactate"
    )
    values = as_numbers(pa.array(["1.5", "<0.5", None]), False, lactate.odd_texts, "lactate")
    np.testing.assert_array_equal(values, [1.5, np.nan, np.nan])
    with pytest.raises(ValueError, match=r"row 1 has '<0\.7'"):
        as_numbers(pa.array(["<0.7"]), False, lactate.odd_texts, "lactate")


def test_a_model_folder_of_version_1_gives_no_remarks_on_ranges_that_it_did_not_keep(tmp_path: Path) -> None:
    table = pd.read_csv(FOLDER / "new.csv")
    table.assign(age=table["age"] * 365).to_csv(tmp_path / "days.csv", index=False)
    assert (
        predict_file(TableModel.load(FOLDER / "bundle"), tmp_path / "days.csv", tmp_path / "p.csv").unlike_training
        == []
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_version_1_can_be_saved_again(name: str, tmp_path: Path) -> None:
    """With the same weights, byte for byte, and no other files."""
    kind = getattr(eber, name.split("-")[0])
    kind.load(FOLDER / name).save(tmp_path / "again")
    weights = next((FOLDER / name).glob("weights-*"))
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["model.json", weights.name]
    assert (tmp_path / "again" / weights.name).read_bytes() == weights.read_bytes()


def test_loading_writes_nothing(tmp_path: Path) -> None:
    """A model may lie where only reading is allowed."""
    folder = shutil.copytree(FOLDER / "bundle", tmp_path / "bundle")
    # A file that was made and removed again has changed its folder.
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    TableModel.load(folder)
    assert {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))} == before
