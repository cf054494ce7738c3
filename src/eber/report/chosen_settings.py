"""What the searches of a comparison chose: settings by method, and the weights of a pool."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from eber.compare.summary import ComparisonSummary
from eber.runs.results import Results
from eber.tuning.grids import in_words


def chosen_settings(results: Results, summary: ComparisonSummary) -> list[dict[str, Any]]:
    """A line for each setting that was kept, or each weight of a pool: method, held-out fold, seed, what and how much.

    The share of a setting is its part in the average of those that were kept.
    """
    lines = []
    for row in summary.rows:
        for fold in row.by_fold:
            for seed in results.seeds(row.method, fold):
                arrays = results.arrays(row.method, seed, fold)
                kept = arrays.get("settings", np.array([], dtype=str)).tolist()
                shares = [(in_words(json.loads(text)), 1 / len(kept)) for text in kept]
                if "weights" in arrays:
                    shares = list(zip(arrays["members"].tolist(), arrays["weights"].tolist(), strict=True))
                common = {"method": row.method, "held_out": fold, "seed": seed}
                lines += [{**common, "chosen": name, "share": share} for name, share in shares]
    return lines


def choices_by_method(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Method to what was chosen for it over all folds and seeds, in words; a pool's weights as their means."""
    texts = []
    for method in dict.fromkeys(line["method"] for line in lines):
        own = [line for line in lines if line["method"] == method]
        fits = len({(line["held_out"], line["seed"]) for line in own})
        times = Counter(line["chosen"] for line in own)
        if all(number == fits for number in times.values()) and any("=" not in name for name in times):
            means = {name: sum(line["share"] for line in own if line["chosen"] == name) / fits for name in times}
            texts.append((method, ", ".join(f"{name} {weight:.2f}" for name, weight in means.items())))
        else:
            parts = (f"{name} ({number} of {fits})" for name, number in times.most_common())
            texts.append((method, "; ".join(parts)))
    return texts
