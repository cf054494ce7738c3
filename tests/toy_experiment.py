"""A small experiment for the tests of the machinery: no fitting, only numbers drawn from the seed.

Each computation leaves a line in the file named by EBER_TOY_LOG, so that tests can count them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from eber.runs import MAIN, Cell, CellResult, Experiment, PaperTable
from eber.runs.holdouts import hold_out_each
from eber.runs.runner import run
from eber.runs.spec import Holdouts

QUALITY = {"Bayes-x": 0.1, "EBER": 0.2, "ERM": 0.5, "V-REx": 0.4, "EBER-collapsed": 0.25}


def run_cell(cell: Cell) -> CellResult:
    """Scores around the method's quality; breaks where the parameters say so."""
    if log := os.environ.get("EBER_TOY_LOG"):
        with open(log, "a") as file:  # one short append is atomic on POSIX
            file.write(f"{cell}\n")
    if cell.method == cell.parameters["broken_method"]:
        raise ArithmeticError(f"the loss of {cell.method} is not finite")
    if cell.method == cell.parameters["killed_method"]:
        os.abort()
    if cell.method == cell.parameters["warning_method"]:
        warnings.warn(f"the fit of seed {cell.seed} looks odd", RuntimeWarning, stacklevel=1)
        warnings.warn("an old name", DeprecationWarning, stacklevel=1)
    time.sleep(float(cell.parameters["pause"]))
    rng = np.random.default_rng([cell.seed, zlib.crc32(f"{cell.method}{cell.parameters['held_out']}".encode())])
    nll = QUALITY[cell.method] + cell.parameters["shift"] + 0.01 * rng.normal()
    scores = {MAIN: {"nll": nll, "accuracy": 1 - nll, "chosen_weight": 1.0}}
    if cell.method == "EBER":
        scores["uniform test weights"] = {"nll": nll + 0.3, "accuracy": 0.7 - nll}
    return CellResult(
        scores=scores,
        seconds={variant: float(cell.parameters["pause"]) for variant in scores},
        arrays={
            "draws": rng.normal(size=5),
            "threads": np.array(os.environ.get("OMP_NUM_THREADS", "")),
            "hears_ctrl_c": np.array(signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        },
    )


TOY = Experiment(
    name="toy",
    title="A toy",
    description="Numbers drawn from the seed.",
    parameters={
        "shift": 0.0,
        "held_out": "",
        "pause": 0.0,
        "broken_method": "",
        "killed_method": "",
        "warning_method": "",
        "repeats": 3,
        "hidden_dims": (16,),
        "quick": False,
    },
    settings={"baseline": {}, "shift=0.1": {"shift": 0.1}},
    methods=("EBER", "ERM", "V-REx"),
    oracles=("Bayes-x",),
    ablations=("EBER-collapsed",),
    metrics=("nll", "accuracy"),
    primary_metric="nll",
    reference_method="EBER",
    run_cell=run_cell,
    paper={
        "baseline": PaperTable(
            "Table 1",
            {
                "Bayes-x": {"nll": (0.1, 0.004), "accuracy": (0.9, 0.002)},
                "EBER": {"nll": (0.319, 0.03), "accuracy": (0.8, 0.05), "seconds": (18.92, 1.117)},
                "ERM": {"nll": (0.5, 0.01), "accuracy": (0.5, 0.0)},
                "EBER (uniform test weights)": {"nll": (0.5, 0.015)},
            },
            {"ERM": "0.015"},
        )
    },
    discussion=Path(__file__).with_suffix(".md"),
)

WARDS, REGIONS = hold_out_each(("a", "b", "c")), hold_out_each(("north", "south"), shift=0.2)

TOY_HOLDOUTS = replace(
    TOY,
    name="toy-holdouts",
    settings={"baseline": {}, **WARDS, **REGIONS},
    default_settings=("baseline",),
    discussion=None,
    holdouts={"wards": Holdouts(tuple(WARDS), "Ward c is <small>."), "regions": Holdouts(tuple(REGIONS))},
)
"""The toy with two families of environments that are held out in turn."""


def run_from_command_line() -> None:
    """Run it in a process of its own, which a test may kill: OUT SEEDS PAUSE."""
    out, seeds, pause = sys.argv[1:]
    sys.exit(run(TOY, out=Path(out), seeds=int(seeds), overrides={"pause": pause}).exit_status)
