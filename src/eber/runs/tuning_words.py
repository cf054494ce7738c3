"""What is said of the rows whose settings were chosen by leaving training environments out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from eber.tuning.grids import in_words
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, LEAVE_ROWS_OUT

if TYPE_CHECKING:
    from eber.runs.results import Results

SETTINGS, RULE, LEFT_OUT_NLL = "settings", "rule", "left_out_nll"
"""Arrays in which a cell keeps the settings that a search kept, as JSON, what it left out, and how all settings did."""

HOW_CHOSEN = {
    LEAVE_ENVIRONMENTS_OUT: "by NLL in training environments that are left out",
    LEAVE_ROWS_OUT: "by NLL on left-out rows of known environments, since no training environment can be left out",
}
NOTHING_CHOSEN = (
    "Tuned rows: nothing could be left out to choose settings by; those in the middle of the list are taken."
)


def tuning_remarks(results: Results, setting: str) -> tuple[str, ...]:
    """How the settings of a setting's tuned rows were chosen, then which were kept for each row."""
    kept: dict[str, list[str]] = {}
    rules: dict[str, None] = {}
    for row in results.experiment.tuned.values():
        for seed in results.seeds(row, setting):
            arrays = results.arrays(row, seed, setting)
            if RULE not in arrays:
                continue
            rules[str(arrays[RULE])] = None
            kept[row] = [in_words(json.loads(text)) for text in arrays[SETTINGS].tolist()]
    return (*map(_how, rules), *(f"{row} kept: {'; '.join(names)}." for row, names in kept.items()))


def _how(rule: str) -> str:
    if rule not in HOW_CHOSEN:
        return NOTHING_CHOSEN
    return (
        f"Tuned rows: settings are chosen once, under the first seed, {HOW_CHOSEN[rule]}, penalty weights among them; "
        "as many of the best are kept as leave their average within one standard error of the best such average."
    )
