"""All evidence that there is: of the runs in a folder, and of earlier ones, as they were kept."""

from __future__ import annotations

from pathlib import Path

from eber.experiments.claims.evidence import Evidence
from eber.experiments.claims.kept import keep, read_kept
from eber.experiments.claims.measuring import measure_folder
from eber.experiments.registry import EXPERIMENTS


def gather(results: Path | None, kept: Path | None) -> dict[str, Evidence]:
    """Experiment to its evidence, where there is some.

    Parameters
    ----------
    results : Path, optional
        With a folder of results for each experiment.
    kept : Path, optional
        With a file of evidence for each experiment. What the results say is kept there first, a setting at a time, so
        that what is gathered is what the files say.

    Raises
    ------
    FileNotFoundError
        Where there is no such folder of results, or nothing but kept evidence is asked for and there is none.
    """
    if results is not None and not results.is_dir():
        raise FileNotFoundError(
            f"There is no folder {results}; give the one that holds the results of eber reproduce all."
        )
    if results is None and kept is not None and not kept.is_dir():
        raise FileNotFoundError(f"There is no folder {kept} with evidence; give results from which it can be made too.")
    found = {}
    for experiment in EXPERIMENTS:
        evidence = measure_folder(results / experiment, experiment) if results is not None else None
        if kept is not None:
            if evidence is not None:
                keep(evidence, kept)
            evidence = read_kept(kept, experiment)
        if evidence is not None:
            found[experiment] = evidence
    return found
