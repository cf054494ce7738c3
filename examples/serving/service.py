"""A model of `eber fit` behind HTTP: rows in, probabilities and remarks out.

Run it with: pip install fastapi uvicorn; EBER_MODEL=model uvicorn service:app
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import eber

MOST_ROWS = 10_000
"""Rows of one request; files of any size go to batch.py."""


class Rows(BaseModel):
    """Rows by the names of the columns that the model was fitted on; what is missing is null."""

    rows: list[dict[str, float | bool | str | None]] = Field(min_length=1, max_length=MOST_ROWS)


class Answer(BaseModel):
    """One prediction for each row, in order, and what to know about these rows."""

    predictions: list[dict[str, Any]]
    remarks: list[str]


def create_app(folder: str) -> FastAPI:
    """The service of one model, which is read once, when the service starts."""
    model = eber.load_model(folder)
    app = FastAPI(title="eber", version=eber.__version__)

    @app.get("/model")
    def describe() -> dict[str, Any]:
        """What is served: method, data and versions of the model's card."""
        return {name: model.card[name] for name in ("method", "data", "versions")}

    @app.post("/predict")
    def predict(request: Rows) -> Answer:
        """Predict rows, each by itself: `adapt` would make an answer depend on who else is asked about."""
        try:
            predictions = model.predict_table(pd.DataFrame(request.rows))
        except ValueError as error:  # a column is missing, a text stands where a number should: its sentence says which
            raise HTTPException(422, str(error)) from error
        return Answer(predictions=predictions.frame.to_dict("records"), remarks=predictions.remarks)

    return app


def __getattr__(name: str) -> Any:
    """`uvicorn service:app` asks for `app`; importing this file loads no model."""
    if name == "app":
        return create_app(os.environ["EBER_MODEL"])
    raise AttributeError(name)
