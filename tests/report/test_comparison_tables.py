"""The ranking on terminals of any width."""

from __future__ import annotations

import numpy as np
import pytest

from eber.io import display
from eber.report.comparison_tables import TERMINAL_METRICS, ranking, ranking_for_terminal
from tests.compare.test_summary import summary_of

RNG = np.random.default_rng(0)
LONG = "A method whose name is far too long for any table"


@pytest.mark.parametrize(
    ("width", "gone"),
    [
        (120, ()),
        (80, ("ECE", "Time (s)")),
        (60, ("AUROC", "Accuracy", "ECE", "Time (s)")),
        (40, ("95 % interval", "Behind", "AUROC", "Accuracy", "ECE", "Time (s)")),
    ],
)
def test_the_ranking_is_whole_on_narrow_terminals(
    width: int, gone: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ("EBER", "ERM", "Logistic regression", "Gradient boosting")
    summary = summary_of({name: list(0.4 + 0.1 * RNG.random(8)) for name in methods})
    monkeypatch.setattr(display, "WIDTH", width)
    text = display.rendered(ranking_for_terminal(summary, width))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    heads, lines = ranking(summary, TERMINAL_METRICS)
    top = text.splitlines()[0]
    shown = [head for head in heads if head in top]
    assert {head.split(" ↑")[0].split(" ↓")[0] for head in heads if head not in shown} == set(gone)
    below = text.split("No room for: ")[1].split(".")[0].replace(",", "").split() if gone else []
    assert set(" ".join(gone).split()) <= set(below), "what is left out is named"
    for line in lines:
        row = next(row for row in text.splitlines() if row.startswith(f"{line[0]} "))
        assert row.split() == " ".join(line[heads.index(head)] for head in shown).split()


def test_long_names_are_wrapped_on_words_before_a_column_goes() -> None:
    table = display.terminal_table(["Method", "NLL", "p"], [[LONG, "0.412", "0.050"]], ["p"], 36)
    text = display.rendered(table)
    lines = text.splitlines()[2:]
    assert " ".join(line[: display.LABEL_WIDTH].strip() for line in lines) == LONG
    assert "0.412  0.050" in lines[0]
