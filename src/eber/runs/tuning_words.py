"""What is said of the rows whose settings were chosen by leaving training environments out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eber.tuning.grids import in_words
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, LEAVE_ROWS_OUT

if TYPE_CHECKING:
    from eber.runs.results import Results

SETTINGS, RULE, LEFT_OUT_NLL = "settings", "rule", "left_out_nll"
"""Arrays in which a cell keeps the settings that a search kept, as JSON, what it left out, and how all settings did."""

MAX_NAMED = 5
HOW_CHOSEN = {
    LEAVE_ENVIRONMENTS_OUT: "by NLL in training environments that are left out",
    LEAVE_ROWS_OUT: "by NLL on left-out rows of known environments, since no training environment can be left out",
}
NOTHING_CHOSEN = (
    "Tuned rows: nothing could be left out to choose settings by; those in the middle of the list are taken."
)


def tuning_remarks(results: Results, setting: str) -> tuple[str, ...]:
    """How the settings of a setting's tuned rows were chosen, then which were kept for each row."""
    kept: dict[str, str] = {}
    rules: dict[str, None] = {}
    for row in results.experiment.tuned.values():
        for seed in results.seeds(row, setting):
            arrays = results.arrays(row, seed, setting)
            if RULE not in arrays:
                continue
            rules[str(arrays[RULE])] = None
            kept[row] = _kept(row, arrays[SETTINGS].tolist(), len(arrays[LEFT_OUT_NLL]))
    return (*map(_how, rules), *kept.values())


def _how(rule: str) -> str:
    if rule not in HOW_CHOSEN:
        return NOTHING_CHOSEN
    return (
        f"Tuned rows: settings are chosen once, under the first seed, {HOW_CHOSEN[rule]}, penalty weights among them; "
        "as many of the best are kept as leave their average within one standard error of the best such average."
    )


def _kept(row: str, settings: Sequence[str], tried: int) -> str:
    """The settings that a row kept, as many as can be read."""
    shown = [in_words(json.loads(text)) for text in settings[:MAX_NAMED]]
    more = [f"{len(settings) - MAX_NAMED} more"] if len(settings) > MAX_NAMED else []
    return f"{row} kept {len(settings)} of {tried} settings: {'; '.join([*shown, *more])}."
