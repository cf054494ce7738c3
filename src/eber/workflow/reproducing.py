"""`reproduce` and `reproduce_all`: the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eber.datasets.fetch import default_data_dir
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.io.files import leaving_no_empty_folder
from eber.io.text import count
from eber.report.page import write_report
from eber.runs.backends import check_backend
from eber.runs.holdouts import hold_out_settings
from eber.runs.ledger import CELLS_FOLDER
from eber.runs.own_folder import is_own, require_free
from eber.runs.progress import Progress
from eber.runs.results import load_results
from eber.runs.runner import RunSummary, run, writing_outputs
from eber.runs.spec import Experiment
from eber.workflow.arguments import RESULTS, as_progress, call_text, names_of, whole_number
from eber.workflow.claiming import ALL, CLAIMS_FILE, INDEX_FILE, write_index
from eber.workflow.interruption import saying_what_is_kept
from eber.workflow.reproduction import Reproduction


def reproduce(
    name: str,
    *,
    seeds: int = 3,
    methods: str | Iterable[str] | None = None,
    out: str | Path | None = None,
    jobs: int = 2,
    backend: Any = "processes",
    parameters: Mapping[str, Any] | None = None,
    settings: str | Iterable[str] | None = None,
    sensitivity: bool = False,
    all_holdouts: bool = False,
    tuned: bool = False,
    ablation: bool = False,
    data: str | Path | None = None,
    progress: bool | Progress = False,
    command: str = "",
) -> Reproduction:
    """Run an experiment of the paper.

    Parameters
    ----------
    name : str
        The experiment: motivating, parametric, colored-mnist, quasar, microbiome, sepsis, or "module:attribute" for one
        of one's own.
    seeds : int
        Number of seeds: 0, 1, ...
    methods : str or iterable of str, optional
        All but the ablations when not given.
    out : str or Path, optional
        Output folder; results/NAME when not given. It gets cells.csv, timings.csv, table.md, table.tex, the figures and
        report.html. A run that was stopped goes on where it was when the same call is made again.
    jobs : int
        Worker processes, one thread each. In a script they need the usual ``if __name__ == "__main__":``.
    backend : str, RayCluster or Executor
        Where cells are computed; as for `compare_table`. Data files must lie under the same path on every machine.
    parameters : mapping, optional
        Parameters of the experiment to change.
    settings : str or iterable of str, optional
        The baseline when not given.
    sensitivity : bool
        Run every setting of the experiment.
    all_holdouts : bool
        Hold out each environment in turn too, where data are real, and sum up.
    tuned : bool
        Run every method of the paper also with settings that are chosen by leaving training environments out, where
        data are real: rows of their own. The search takes many times the time of a fit.
    ablation : bool
        Run the ablations too.
    data : str or Path, optional
        Folder of the real data, for experiments that need it; $EBER_DATA or the cache of `eber data fetch` when not
        given.
    progress : bool or Progress
        Whether to say on standard error how far the run is.
    command : str
        What was typed, for the page; the call when empty.

    Returns
    -------
    Reproduction
        Our tables beside the paper's; also when some cells failed, or Ctrl-C came when others were finished: see its
        `failures` and `exit_status`. Where none was finished, KeyboardInterrupt is passed on.
    """
    if settings and (sensitivity or all_holdouts):
        raise ValueError("Give either settings or sensitivity and all_holdouts, not both.")
    experiment = find_experiment(name)
    if all_holdouts and not hold_out_settings(experiment):
        raise ValueError(f"Experiment {name!r} has no environment to hold out in turn.")
    if tuned and not experiment.tuned:
        raise ValueError(f"Experiment {name!r} has no tuned rows; those on data have.")
    whole_number(seeds, "seeds", 1)
    whole_number(jobs, "jobs", 1)
    check_backend(backend)
    chosen, wanted = names_of(methods, "methods") or None, names_of(settings, "settings") or None
    call = call_text(
        reproduce,
        name,
        seeds=seeds,
        methods=chosen,
        parameters=parameters,
        settings=wanted,
        sensitivity=sensitivity,
        all_holdouts=all_holdouts,
        tuned=tuned,
        ablation=ablation,
    )
    return _reproduce(
        experiment,
        Path(out) if out is not None else RESULTS / experiment.name,
        seeds=seeds,
        jobs=jobs,
        backend=backend,
        data=_data_folder([experiment], data),
        methods=_methods(experiment, chosen, tuned, ablation),
        settings=_settings(experiment, wanted, sensitivity, all_holdouts),
        parameters=dict(parameters or {}),
        progress=progress,
        command=command or call,
    )


def reproduce_all(
    *,
    seeds: int = 3,
    out: str | Path | None = None,
    jobs: int = 2,
    backend: Any = "processes",
    parameters: Mapping[str, Any] | None = None,
    sensitivity: bool = False,
    all_holdouts: bool = False,
    tuned: bool = False,
    ablation: bool = False,
    data: str | Path | None = None,
    progress: bool | Progress = False,
    command: str = "",
) -> Iterator[Reproduction]:
    """Run every experiment of the paper, one after the other; the next one begins when it is asked for.

    At the end the folder gets `index.html`, which leads to every report, and `claims.md`: the paper, claim by claim.

    Parameters
    ----------
    out : str or Path, optional
        Each experiment has a folder in it; results/all when not given.
    parameters : mapping, optional
        Parameters to change in each experiment that has them.
    seeds, jobs, backend, sensitivity, all_holdouts, tuned, ablation, data, progress, command
        As for `reproduce`.
    """
    experiments = [find_experiment(name) for name in EXPERIMENTS]
    changes = dict(parameters or {})
    for key in changes:
        if not any(key in experiment.parameters for experiment in experiments):
            raise ValueError(f"No experiment has a parameter {key!r}.")
    whole_number(seeds, "seeds", 1)
    whole_number(jobs, "jobs", 1)
    check_backend(backend)
    data_folder = _data_folder(experiments, data)
    folder = Path(out) if out is not None else RESULTS / ALL
    if not any(is_own(folder / experiment.name) for experiment in experiments):
        require_free(folder, (CLAIMS_FILE, INDEX_FILE))
    return _each_then_index(
        (
            _reproduce(
                experiment,
                folder / experiment.name,
                seeds=seeds,
                jobs=jobs,
                backend=backend,
                data=data_folder,
                methods=_methods(experiment, None, tuned, ablation),
                settings=_settings(experiment, None, sensitivity, all_holdouts),
                parameters={key: value for key, value in changes.items() if key in experiment.parameters},
                progress=progress,
                command=command or f"eber.reproduce_all(seeds={seeds})",
            )
            for experiment in experiments
        ),
        folder,
    )


def _each_then_index(reproductions: Iterator[Reproduction], folder: Path) -> Iterator[Reproduction]:
    """One after the other; when the last was asked for, the folder gets its index and the claims."""
    yield from reproductions
    write_index(folder)


def reported_reproduction(experiment: Experiment, folder: Path, run: RunSummary | None = None) -> Reproduction:
    """What an output folder holds, with its tables, figures and page written."""
    results = load_results(experiment, folder)
    with writing_outputs(folder):
        page = write_report(results)
    return Reproduction(results, page, run)


def _reproduce(
    experiment: Experiment,
    folder: Path,
    *,
    seeds: int,
    jobs: int,
    backend: Any,
    data: Path | None,
    methods: list[str] | None,
    settings: list[str] | None,
    parameters: dict[str, Any],
    progress: bool | Progress,
    command: str,
) -> Reproduction:
    listener = as_progress(progress)
    with saying_what_is_kept(listener.note, lambda: _kept(folder)), leaving_no_empty_folder(folder / CELLS_FOLDER):
        summary = run(
            experiment,
            out=folder,
            seeds=seeds,
            methods=methods,
            settings=settings,
            overrides=parameters,
            data_dir=data,
            jobs=jobs,
            backend=backend,
            progress=listener,
            command=command,
        )
        return reported_reproduction(experiment, folder, summary)


def _kept(folder: Path) -> str:
    """What an output folder holds when a run was ended before its report was written."""
    finished = len(list((folder / CELLS_FOLDER).glob("*.json")))
    if not finished:
        return f"{folder} is as it was." if folder.exists() else "Nothing was written."
    return f"{folder} keeps {count(finished, 'finished result')}: the same command goes on from here."


def _data_folder(experiments: list[Experiment], data: str | Path | None) -> Path | None:
    """The folder that was named, or the one that `eber data fetch` fills; none where nothing is read."""
    if data is not None:
        return Path(data)
    reading = [experiment.name for experiment in experiments if experiment.fingerprint is not None]
    if not reading:
        return None
    folder = default_data_dir()
    if not folder.is_dir():
        raise ValueError(
            f"{', '.join(reading)} {'reads' if len(reading) == 1 else 'read'} data files: say by data (--data on the "
            f"command line) in which folder they are, or download them with: eber data fetch all (to {folder})"
        )
    return folder


def _methods(experiment: Experiment, chosen: list[str] | None, tuned: bool, ablation: bool) -> list[str] | None:
    """The rows to run; None for the default ones."""
    further = [*(experiment.tuned.values() if tuned else ()), *(experiment.ablations if ablation else ())]
    return [*(chosen or experiment.default_methods), *further] if further else chosen


def _settings(
    experiment: Experiment, chosen: list[str] | None, sensitivity: bool, all_holdouts: bool
) -> list[str] | None:
    """The settings to run; None for the default ones."""
    if sensitivity:
        return list(experiment.settings)
    if all_holdouts:
        default = experiment.default_settings or tuple(experiment.settings)
        return list(dict.fromkeys([*default, *hold_out_settings(experiment)]))
    return chosen
