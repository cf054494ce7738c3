"""The examples of serving a model: a service that answers single requests, and a job that works through a folder."""

from __future__ import annotations

import json
import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import eber
from eber.datasets.hospitals import draw_hospitals, draw_new_hospital
from eber.exceptions import FitWarning

SERVING = Path(__file__).parents[2] / "examples" / "serving"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the hospitals."""
    folder: Path = tmp_path_factory.mktemp("served") / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # three passes are too few
        eber.fit_table(
            draw_hospitals(600),
            label="sepsis",
            environment="hospital",
            quick=True,
            epochs=3,
            scores=False,
            out=folder,
        )
    return folder


@pytest.fixture
def rows() -> pd.DataFrame:
    """Patients of a hospital that the model has not seen."""
    return draw_new_hospital(20)


@pytest.fixture
def client(folder: Path) -> Any:
    """The service, asked without a network."""
    pytest.importorskip("fastapi", reason="the service is an example; the package does not need fastapi")
    testing = pytest.importorskip("starlette.testclient", reason="the client of fastapi's tests needs httpx")
    return testing.TestClient(runpy.run_path(str(SERVING / "service.py"))["create_app"](str(folder)))


def as_json(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(rows.to_json(orient="records"))


def test_the_service_answers_as_the_model_does(client: Any, folder: Path, rows: pd.DataFrame) -> None:
    answer = client.post("/predict", json={"rows": as_json(rows)})
    assert answer.status_code == 200, answer.text
    said = pd.DataFrame(answer.json()["predictions"])
    expected = eber.load_model(folder).predict_table(rows).frame
    assert said.columns.tolist() == expected.columns.tolist()
    assert said["predicted"].tolist() == expected["predicted"].tolist()
    numbers = expected.select_dtypes("number").columns
    np.testing.assert_allclose(said[numbers], expected[numbers], rtol=0, atol=1e-12)
    assert client.get("/model").json()["method"] == "EBER"


def test_a_row_without_a_column_is_refused_by_its_name(client: Any, rows: pd.DataFrame) -> None:
    answer = client.post("/predict", json={"rows": as_json(rows.drop(columns="age"))})
    assert answer.status_code == 422
    assert "age" in answer.json()["detail"]
    assert client.post("/predict", json={"rows": []}).status_code == 422


def test_the_job_predicts_each_table_once_and_names_what_it_refuses(
    folder: Path, rows: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(SERVING / "batch.py"))["main"]
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    rows.to_csv(incoming / "monday.csv", index=False)
    rows.drop(columns="age").to_csv(incoming / "tuesday.csv", index=False)
    rows.to_parquet(incoming / "wednesday.parquet", index=False)
    given = [str(folder), str(incoming), str(tmp_path / "predictions")]

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert main(given) == 1
    monday, tuesday, wednesday = lines()
    assert (monday["table"], monday["rows"]) == ("monday.csv", 20)
    assert "age" in tuesday["refused"]
    assert wednesday["rows"] == 20
    written = sorted(path.name for path in (tmp_path / "predictions").iterdir())
    assert written == ["monday.csv.parquet", "wednesday.parquet.parquet"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "predictions" / "monday.csv.parquet"),
        pd.read_parquet(tmp_path / "predictions" / "wednesday.parquet.parquet"),
    )
    rows.to_csv(incoming / "tuesday.csv", index=False)
    assert main(given) == 0
    (again,) = lines()
    assert again["table"] == "tuesday.csv", "what is done is not done again"
