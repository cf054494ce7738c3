"""The example is a table in which EBER's assumption holds, and the script about it runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from eber.datasets import hospitals
from eber.datasets.hospitals import COMPONENT_MEANS, COMPONENT_SD, HOSPITALS, MIXTURES, draw_hospitals

EXAMPLE = Path(__file__).parents[2] / "examples" / "hospitals.py"


def test_the_same_seed_gives_the_same_table() -> None:
    assert draw_hospitals(200, 5).equals(draw_hospitals(200, 5))
    assert not draw_hospitals(200, 5).equals(draw_hospitals(200, 6))


def test_hospitals_differ_in_their_patients_as_declared() -> None:
    """The share of sepsis in each hospital is the mixture's, by integration over severity."""
    table = draw_hospitals(20_000)
    z = np.linspace(-4, 4, 2001)
    density = np.exp(-0.5 * ((z - COMPONENT_MEANS[:, :1]) / COMPONENT_SD) ** 2)  # (4, 2001)
    by_component = (density * expit(3 * (z - 1))).sum(1) / density.sum(1)
    expected = dict(zip(HOSPITALS, MIXTURES @ by_component, strict=True))
    for name, share in table.groupby("hospital")["sepsis"].mean().items():
        assert share == pytest.approx(expected[name], abs=0.05)


def test_mixtures_are_mixtures() -> None:
    np.testing.assert_allclose(MIXTURES.sum(1), 1.0)
    assert len(hospitals.SIZES) == len(HOSPITALS) == len(MIXTURES)


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_the_example_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE))["main"](rows=240)
    said = capsys.readouterr().out
    assert "Predicting sepsis of DataFrame in a new hospital." in said
    assert "Predictions for 80 rows" in said
