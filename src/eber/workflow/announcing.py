"""What a comparison says before it begins: what will be run, how settings are chosen, and about how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eber.compare.folds import FoldPlan
from eber.compare.methods import Effort, is_tuned
from eber.compare.preview import Expectation, Left, search_of
from eber.compare.record import RECORD_FILE, ComparisonRecord
from eber.io.text import count
from eber.runs.groundwork import plan_work
from eber.runs.ledger import Ledger
from eber.tables.training import TrainingTable


def what_is_left(record: ComparisonRecord, methods: Sequence[str], seeds: int, folder: Path) -> dict[str, Left]:
    """Of each method what is not in the output folder yet."""
    experiment, names = record.experiment.with_methods(methods)
    ledger = Ledger(folder) if (folder / RECORD_FILE).exists() else None  # which would make its own folder
    cells = [
        experiment.cell(fold, name, seed, {}, record.data)
        for name in names
        for fold in record.folds
        for seed in range(seeds)
    ]
    missing = plan_work(experiment, cells, {}, lambda cell: ledger is not None and ledger.path(cell).exists()).missing
    of_blocks = Counter(cell.method for cell in missing if cell.setting in experiment.groundwork)
    of_all = Counter(cell.method for cell in missing)
    return {name: Left(of_all[name] - of_blocks[name], of_blocks[name]) for name in names}


def announcement(
    data: TrainingTable,
    plan: FoldPlan,
    left: Mapping[str, Left],
    seeds: int,
    effort: Effort,
    expected: Expectation,
    jobs: int,
    folder: Path,
) -> list[str]:
    """What will be run, and about how long that takes."""
    n_results = len(left) * len(plan.folds) * seeds
    finished = n_results - sum(of.results for of in left.values())
    sentences = [
        f"{len(data)} rows, {count(len(data.schema.features), 'feature')}, {len(set(data.environments))} environments. "
        f"To be run: {count(len(left), 'method')} x {count(len(plan.folds), 'held-out fold')} x "
        f"{count(seeds, 'seed')} = {count(n_results, 'result')}"
        + (f", of which {finished} {'is' if finished == 1 else 'are'} finished." if finished else "."),
        _care(left, data, plan, effort),
    ]
    if finished < n_results:
        sentences.append(f"This takes {duration(expected.seconds)} with {count(jobs, 'job')}. Output: {folder}")
    return sentences


def _care(methods: Iterable[str], data: TrainingTable, plan: FoldPlan, effort: Effort) -> str:
    """How settings are chosen, with what that means for each result."""
    if not effort.searches:
        return effort.care
    searches = {method: search_of(method, data, plan, effort) for method in methods}
    sizes = [candidates for candidates, folds in searches.values() if folds]
    if not sizes:
        return "None of the methods has settings to choose."
    folds = max(folds for _, folds in searches.values())
    tried = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])
    said = f"{effort.care} That is {tried} settings x {count(folds, 'fold')} for each result"
    if shared := [block for block in plan.blocks if any(is_tuned(method) for method in methods)]:
        return f"{said}, shared between results: {len(shared)} fits of each setting in all."
    return f"{said}."


def duration(seconds: float) -> str:
    """A time in words, no more exact than it is known."""
    if seconds < 50:
        return f"about {max(5 * round(seconds / 5), 5)} seconds"
    if seconds < 50 * 60:
        return f"about {count(max(round(seconds / 60), 1), 'minute')}"
    hours = round(2 * seconds / 3600) / 2
    return f"about {hours:g} {'hour' if hours == 1 else 'hours'}"
