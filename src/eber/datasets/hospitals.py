"""A believable table of eight hospitals, drawn from a model in which EBER's assumption holds.

Every patient has a latent z = (severity s, response r). Hospitals differ in the mixture of patients that they see and
in nothing else:

    hospital e:   component c ~ mixture of e over (well, infected, elderly frail, in shock)
                  (s, r) ~ N(mean of c, 0.5² I)
    label:        p(sepsis | s) = sigmoid(3 (s - 1))
    measurements: p(x | s, r), the same everywhere: heart rate, respiratory rate, lactate, creatinine and blood
                  pressure follow s; temperature and white cells follow s · r, since some patients answer an infection
                  with fever (r > 0) and others, mostly old ones, with a fall in temperature (r < 0).

What makes it a table from life: text, yes/no and number columns, an identifier, a date, a constant, laboratory values
that are missing more often in patients who look well, and one that is at times reported as "<0.5".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

HOSPITALS = ("Ashford", "Birchwood", "Castleton", "Dunmore", "Eastgate", "Fairview", "Glenmore", "Harbour")
COMPONENT_MEANS = np.array([[-0.6, 0.5], [1.0, 1.2], [1.0, -1.2], [2.0, 0.0]])
"""(severity, response) of patients who are well, infected, elderly and frail, in shock; (4, 2)."""
COMPONENT_SD = 0.5
MIXTURES = np.array(
    [
        [0.75, 0.15, 0.05, 0.05],
        [0.15, 0.65, 0.10, 0.10],
        [0.20, 0.10, 0.60, 0.10],
        [0.30, 0.15, 0.10, 0.45],
        [0.55, 0.05, 0.35, 0.05],
        [0.40, 0.40, 0.05, 0.15],
        [0.10, 0.25, 0.40, 0.25],
        [0.60, 0.10, 0.10, 0.20],
    ]
)
"""Mixture of each hospital over the four components, (8, 4)."""
SIZES = np.array([420, 380, 300, 340, 260, 400, 180, 320])
"""Patients of each hospital in the table of the default size."""

NEW_HOSPITAL, NEW_MIXTURE, NEW_SIZE = "Kingsbridge", (0.45, 0.25, 0.20, 0.10), 300
"""A hospital that is not among them, with a mixture that none of them has."""


def draw_hospitals(rows: int = int(SIZES.sum()), random_state: int = 0) -> pd.DataFrame:
    """A table with about so many rows, hospitals in their usual proportions.

    Returns
    -------
    DataFrame with the columns patient_id, hospital, admitted, age, sex, ward, ventilated, temperature, heart_rate,
    respiratory_rate, systolic_pressure, lactate, creatinine, white_cells, country and sepsis.
    """
    sizes = np.maximum(np.round(SIZES * rows / SIZES.sum()).astype(int), 1)
    hospital = np.repeat(np.arange(len(HOSPITALS)), sizes)
    return _draw(np.array(HOSPITALS)[hospital], MIXTURES[hospital], "P", np.random.default_rng(random_state))


def draw_new_hospital(rows: int = NEW_SIZE, random_state: int = 0) -> pd.DataFrame:
    """The same columns for patients of a ninth hospital, `NEW_HOSPITAL`, drawn apart from the others."""
    rng = np.random.default_rng([random_state, rows])
    return _draw(np.repeat(NEW_HOSPITAL, rows), np.tile(NEW_MIXTURE, (rows, 1)), "N", rng)


def _draw(
    hospitals: NDArray[np.str_], mixtures: NDArray[np.float64], initial: str, rng: np.random.Generator
) -> pd.DataFrame:
    """Patients of these hospitals, (n,), whose components come from these mixtures, (n, 4)."""
    n = len(hospitals)
    component = (mixtures.cumsum(1) < rng.random((n, 1))).sum(1)
    severity, response = (COMPONENT_MEANS[component] + COMPONENT_SD * rng.normal(size=(n, 2))).T
    sepsis = rng.random(n) < expit(3.0 * (severity - 1.0))
    table = pd.DataFrame(
        {
            "patient_id": [f"{initial}{number:06d}" for number in rng.permutation(n)],
            "hospital": hospitals,
            "admitted": (pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")).strftime(
                "%Y-%m-%d"
            ),
            **_measurements(severity, response, rng),
            "country": "NX",
            "sepsis": sepsis.astype(int),
        }
    )
    return table.iloc[rng.permutation(n)].reset_index(drop=True)


def _measurements(
    severity: NDArray[np.float64], response: NDArray[np.float64], rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    n = len(severity)

    def noise(scale: float) -> NDArray[np.float64]:
        return rng.normal(scale=scale, size=n)

    def texts(values: NDArray[np.float64], digits: int, missing: NDArray[np.bool_]) -> NDArray[np.object_]:
        written = np.array([f"{value:.{digits}f}" for value in values], dtype=object)
        written[missing] = ""
        return written

    looks_well = expit(-1.5 * severity)
    fever = np.maximum(severity, 0) * response
    lactate = np.exp(0.2 + 0.25 * severity + noise(0.4))
    lactate_text = texts(lactate, 1, rng.random(n) < 0.5 * looks_well)
    lactate_text[(lactate < 0.5) & (lactate_text != "")] = "<0.5"
    return {
        "age": np.clip(np.round(62 - 9 * response + noise(14)), 18, 99).astype(int),
        "sex": np.where(rng.random(n) < 0.02, "", np.where(rng.random(n) < 0.5, "female", "male")).astype(object),
        "ward": np.array(["general", "emergency", "intensive care"], dtype=object)[
            np.clip(np.round(0.7 + 0.5 * severity + noise(0.6)), 0, 2).astype(int)
        ],
        "ventilated": np.where(rng.random(n) < expit(2 * severity - 4), "yes", "no").astype(object),
        "temperature": texts(37.0 + 1.0 * fever + noise(0.3), 1, rng.random(n) < 0.03),
        "heart_rate": texts(82 + 8 * severity + noise(13), 0, rng.random(n) < 0.02),
        "respiratory_rate": texts(np.maximum(17 + 2 * severity + noise(3.5), 6), 0, rng.random(n) < 0.04),
        "systolic_pressure": texts(124 - 7 * severity + noise(16), 0, rng.random(n) < 0.02),
        "lactate": lactate_text,
        "creatinine": texts(np.exp(4.4 + 0.12 * severity + noise(0.3)), 0, rng.random(n) < 0.3 * looks_well),
        "white_cells": texts(np.maximum(8 + 4.0 * fever + noise(2), 0.3), 1, rng.random(n) < 0.3 * looks_well),
    }
