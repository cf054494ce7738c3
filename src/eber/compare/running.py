"""The comparison as an experiment: a fold is a setting, and the ledger keeps what is finished."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from eber.compare.blocks import Block, blocks_for, folds_judged
from eber.compare.evaluating import evaluate_fold, pool_of
from eber.compare.folds import first_few
from eber.compare.methods import POOL_MEMBERS, Effort, is_tuned
from eber.compare.shared_fits import fit_without
from eber.evaluation.metrics import METRICS
from eber.methods import POOL, default_methods
from eber.runs.cell import Cell, CellResult, Part
from eber.runs.fitting import Steps
from eber.runs.groundwork import Groundwork, on_nothing
from eber.runs.spec import Experiment
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.files import open_table
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.training import TrainingTable, read_training_table
from eber.tuning.grids import all_default_candidates

NAME = "compare"


def comparison(
    folds: Mapping[str, Sequence[str]],
    blocks: Sequence[Block] = (),
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    choices: ColumnChoices = NO_CHOICES,
    reading: Reading = NOTHING_SAID,
    effort: Effort = Effort(),  # noqa: B008 (frozen)
    metric: str = "nll",
    data: str = "",
) -> Experiment:
    """The comparison of all methods on one table, declared.

    Parameters
    ----------
    folds, blocks
        As `eber.compare.folds.FoldPlan` has them.
    reading : Reading
        How workers read the table.
    data : str
        Its fingerprint.
    """
    blocks = blocks if effort.searches else ()
    judging = {fold: blocks_for(members, blocks) for fold, members in folds.items()}
    return Experiment(
        name=NAME,
        title=f"Predicting {label} in a new {environment}",
        description="Each environment is held out in turn, and every method learns from the others.",
        parameters={
            "label": label,
            "environment": environment,
            "drop": json.dumps(list(drop)),
            "features": json.dumps(None if features is None else list(features)),
            "choices": json.dumps(choices.to_json()),
            "reading": json.dumps(reading.given),
            "steps": effort.steps,
            "search_folds": effort.search_folds,
            "candidates": all_default_candidates() if effort.searches else "",
            "held_out": "[]",
            "blocks": "[]",
            "left_out": "[]",
            "judges_for": "[]",
            **({} if effort.passes is None else {"passes": effort.passes}),
        },
        settings={
            fold: {"held_out": json.dumps(list(members)), "blocks": json.dumps(judging[fold])}
            for fold, members in folds.items()
        },
        groundwork=_groundwork(folds, blocks),
        methods=default_methods(),
        fits_any_method=True,
        metrics=tuple(METRICS),
        primary_metric=metric,
        reference_method=default_methods()[0],
        run_cell=run_cell,
        seeds_together=5,
        built_on=partial(_parts, judging) if effort.searches else on_nothing,
        circumstances="{} held out",
        fingerprint=partial(_require_content, data, reading),
        data_travels=True,
    )


def run_cell(cell: Cell) -> CellResult | Steps[CellResult]:
    """Fit one method without one fold's environments and score it on them; or all its settings without a block's."""
    p = cell.parameters
    assert cell.data_dir is not None
    said = (p["drop"], p["features"], p["choices"], p["reading"])
    table = _read(cell.data_dir, p["label"], p["environment"], said, cell.data)
    effort = Effort(p["steps"], p["search_folds"], p.get("passes"))
    held_out, block = json.loads(p["held_out"]), tuple(json.loads(p["left_out"]))
    if block:
        return fit_without(table, block, json.loads(p["judges_for"]), cell.method, cell.seed, effort)
    held = np.isin(table.environments, held_out)
    if cell.method == POOL and effort.searches:
        return pool_of(table, held, {method: part for (_, method), part in cell.parts.items()})
    blocks = {_name(own): own for own in map(tuple, json.loads(p["blocks"]))}
    parts = {blocks[setting]: part for (setting, _), part in cell.parts.items()}
    return evaluate_fold(table, held, cell.method, cell.seed, effort, parts)


def _parts(folds: Mapping[str, Sequence[Block]], setting: str, method: str) -> list[Part]:
    """What a cell is built on: a pool's on its members' of the same fold, others on the blocks that judge settings.

    Parameters
    ----------
    folds : mapping
        Fold to the blocks that judge settings while it is held out.
    """
    if setting not in folds:
        return []
    if method == POOL:
        return [(setting, member) for member in POOL_MEMBERS]
    return [(_name(block), method) for block in folds[setting]] if is_tuned(method) else []


def _name(block: Block) -> str:
    """The block as a setting."""
    return f"without {json.dumps(block)}"


def _groundwork(folds: Mapping[str, Sequence[str]], blocks: Sequence[Block]) -> dict[str, Groundwork]:
    """Fits without each block, which results are built on."""
    return {
        _name(block): Groundwork(
            {
                "left_out": json.dumps(block),
                "judges_for": json.dumps(folds_judged(block, folds, blocks)),
            },
            f"settings tried without {first_few(list(block))}",
        )
        for block in blocks
    }


@lru_cache(maxsize=1)
def _read(path: Path, label: str, environment: str, said: tuple[str, str, str, str], data: str) -> TrainingTable:
    """The table, read once by each worker; `data` is its fingerprint, and other rows than those are refused.

    What the user said (columns to drop, features, choices, reading) comes as JSON.
    """
    drop, features, choices, reading = map(json.loads, said)
    table = read_training_table(
        path,
        label=label,
        environment=environment,
        drop=drop,
        features=features,
        choices=ColumnChoices.from_json(choices),
        reading=Reading(**reading),
    )
    if table.fingerprint != data:
        raise _changed(path)
    return table


def _require_content(data: str, reading: Reading, path: Path) -> str:
    """The fingerprint of a table, which must still be what it was when the comparison was planned."""
    if open_table(path, reading).fingerprint != data:
        raise _changed(path)
    return data


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} changed while the comparison ran: its content is not what the comparison was planned for. Give the "
        "command again once nobody writes to it."
    )
