"""The agreement analysis counts what it says it counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from eber.experiments.agreement import Agreement, agreement
from eber.experiments.figures.agreement_figure import agreement_figures, draw_agreement
from tests.experiments.claims.made_up import keep_arrays, results


def height_of(bar: Patch) -> float:
    assert isinstance(bar, Rectangle)
    return bar.get_height()


def rows(text: str) -> NDArray[np.bool_]:
    """'10' is right, then wrong."""
    return np.array([letter == "1" for letter in text])


def test_by_hand() -> None:
    found = agreement({"EBER": rows("110011"), "ERM": rows("101010"), "IRM": rows("100110")}, "EBER")
    # Rows: all right, EBER only, ERM only, IRM only, all right, EBER only.
    assert found.all_right == pytest.approx(2 / 6)
    assert found.all_wrong == 0
    assert found.right_with_reference == {"ERM": 0, "IRM": 0}
    assert found.right_without_reference == {"ERM": 0.5, "IRM": 0.5}


def test_where_nobody_differs_there_is_no_share() -> None:
    found = agreement({"EBER": rows("10"), "ERM": rows("10")}, "EBER")
    assert (found.all_right, found.all_wrong) == (0.5, 0.5)
    assert math.isnan(found.right_with_reference["ERM"])
    assert math.isnan(found.right_without_reference["ERM"])


@given(st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=30))
def test_two_methods_that_differ_are_never_right_together(table: list[tuple[bool, bool, bool]]) -> None:
    """With one competitor, differing while EBER is right means that it is wrong, and the other way round."""
    a, b, _ = np.array(table).T
    found = agreement({"EBER": a, "ERM": b}, "EBER")
    assert found.right_with_reference["ERM"] in (0.0,) or math.isnan(found.right_with_reference["ERM"])
    assert found.right_without_reference["ERM"] in (1.0,) or math.isnan(found.right_without_reference["ERM"])
    assert found.all_right + found.all_wrong == pytest.approx(np.mean(a == b))


@pytest.mark.parametrize(
    "correct",
    [{}, {"EBER": rows("1")}, {"ERM": rows("1"), "IRM": rows("1")}, {"EBER": rows("10"), "ERM": rows("1")}],
)
def test_what_cannot_be_compared_is_refused(correct: dict[str, NDArray[np.bool_]]) -> None:
    with pytest.raises(ValueError, match="Agreement needs 'EBER' and another method on the same rows"):
        agreement(correct, "EBER")


def test_the_figure_tells_its_numbers_and_survives_empty_shares() -> None:
    first = Agreement(0.5, 0.2, {"ERM": 0.25, "IRM": math.nan}, {"ERM": 0.75, "IRM": math.nan})
    figure = draw_agreement("paper split", "EBER", [first, first])
    assert figure.name == "agreement-paper-split"
    assert "All right: 0.50; all wrong: 0.20" in figure.alternative
    assert "ERM 0.25 where EBER is right, 0.75 where it is wrong" in figure.alternative
    left, middle, right = figure.figure.axes
    assert [height_of(bar) for bar in left.patches] == [0.5, 0.2]
    assert height_of(middle.patches[0]) == 0.25
    assert height_of(right.patches[0]) == 0.75


def test_the_picture_says_what_its_dots_are() -> None:
    """A PNG is read without its caption."""
    two_seeds = [Agreement(0.5, 0.1, {"ERM": share}, {"ERM": share}) for share in (0.2, 0.4)]
    figure = draw_agreement("baseline", "EBER", two_seeds).figure
    assert {text.get_text() for legend in figure.legends for text in legend.get_texts()} == {"seeds", "0.5"}
    assert [axes.get_ylabel() for axes in figure.axes] == ["share of rows", *["of these, share right"] * 2]


def test_the_legend_covers_no_bar() -> None:
    shares = dict.fromkeys(("ERM", "IRM", "V-REx", "Fishr"), 1.0)
    figure = draw_agreement("baseline", "EBER", [Agreement(0.5, 0.1, shares, shares)] * 2).figure
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    for axes in figure.axes:
        panel = axes.get_tightbbox()
        assert panel is not None
        assert not legend.get_window_extent().overlaps(panel)


@pytest.mark.parametrize(("others", "pictures"), [(["ERM"], 0), (["ERM", "IRM"], 1)])
def test_two_methods_make_no_picture_of_agreement(
    others: list[str], pictures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where two differ one of them is right, which is no finding."""
    keep_arrays(monkeypatch, {method: {"correct": rows("10")} for method in ("EBER", *others)})
    made_up = results("quasar", {("latitude", method, "nll"): [0.3, 0.4] for method in ("EBER", *others)})
    assert len(agreement_figures(made_up)) == pictures


def test_a_seed_without_such_rows_does_not_hide_the_others() -> None:
    first = Agreement(0.5, 0.2, {"ERM": 0.25}, {"ERM": math.nan})
    second = Agreement(0.5, 0.2, {"ERM": math.nan}, {"ERM": math.nan})
    figure = draw_agreement("paper split", "EBER", [first, second])
    assert "ERM 0.25 where EBER is right, – where it is wrong" in figure.alternative
    _, middle, right = figure.figure.axes
    assert [label.get_text() for label in middle.get_xticklabels()] == ["ERM\n0.25"]
    assert [text.get_text() for text in right.texts] == ["no such rows"]
