"""What is said of the rows whose settings were chosen by leaving training environments out."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from eber.tuning.grids import in_words
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, LEAVE_ROWS_OUT

if TYPE_CHECKING:
    from eber.runs.results import Results

SETTINGS, RULE = "settings", "rule"
"""Arrays in which a cell keeps the settings that a search kept, as JSON, and what the search left out."""

HOW_CHOSEN = {
    LEAVE_ENVIRONMENTS_OUT: "by NLL in training environments that are left out",
    LEAVE_ROWS_OUT: "by NLL on left-out rows of known environments, since no training environment can be left out",
}
NOTHING_CHOSEN = (
    "Tuned rows: nothing could be left out to choose settings by; those in the middle of the list are taken."
)


def tuning_remarks(results: Results, setting: str) -> tuple[str, ...]:
    """How the settings of a setting's tuned rows were chosen, then which were kept for each row."""
    kept: dict[str, list[list[str]]] = {}
    rules: dict[str, None] = {}
    for row in results.experiment.tuned.values():
        for seed in results.seeds(row, setting):
            arrays = results.arrays(row, seed, setting)
            if RULE not in arrays:
                continue
            rules[str(arrays[RULE])] = None
            kept.setdefault(row, []).append([in_words(json.loads(text)) for text in arrays[SETTINGS].tolist()])
    return (*map(_how, rules), *(_kept(row, by_seed) for row, by_seed in kept.items()))


def _how(rule: str) -> str:
    if rule not in HOW_CHOSEN:
        return NOTHING_CHOSEN
    return (
        f"Tuned rows: settings are chosen under each seed {HOW_CHOSEN[rule]}, penalty weights among them; as many "
        "of the best are kept as leave their average within one standard error of the best such average."
    )


def _kept(row: str, by_seed: list[list[str]]) -> str:
    """The settings that a row kept, the most frequent first."""
    times = Counter(name for names in by_seed for name in names).most_common()
    seeds = "one seed" if len(by_seed) == 1 else f"{len(by_seed)} seeds"
    return f"{row} kept, under {seeds}: {'; '.join(f'{name} ({n})' for name, n in times)}."
