"""The scores of a table as a picture leave room for the scores, however many rows there are and long their names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from eber.report.score_figure import draw_scores
from eber.runs.results import summarise
from tests.experiments.test_latex_tables import every_row


@pytest.mark.parametrize("name", ["parametric", "colored-mnist", "quasar"])
def test_names_and_legend_leave_room_for_the_scores(name: str) -> None:
    results = every_row(name)
    figure = draw_scores(results, summarise(results)[0]).figure
    FigureCanvasAgg(figure).draw()
    (axes,), (legend,) = figure.axes, figure.legends
    assert axes.get_window_extent().width > 0.5 * figure.bbox.width
    assert legend.get_window_extent().width <= figure.bbox.width
    names = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(above.y0 >= below.y1 for above, below in pairwise(names)), "names lie on each other"
    columns = {text.get_text(): text.get_window_extent().x0 for text in legend.get_texts()}
    for role in {words.split("(")[1] for words in columns if "(" in words}:
        assert columns[f"seeds ({role}"] == columns[f"mean ({role}"], "seeds and mean of a role stand together"
