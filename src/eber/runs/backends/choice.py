"""Which backend was asked for."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from eber.runs.backends.processes import WorkerPool
from eber.runs.backends.protocol import Backend, Work

PROCESSES, RAY = "processes", "ray"
NAMES = (PROCESSES, RAY)


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster to compute on.

    Parameters
    ----------
    address : str, optional
        Of its head node, as `ray.init` takes it. Without one, Ray is started on this machine and ended after the run;
        a cluster that happens to be running is never joined unasked.
    """

    address: str | None = None


def check_backend(backend: Any) -> None:
    """Refuse what is no backend, before anything is read or written."""
    if isinstance(backend, RayCluster) or backend == RAY:
        from eber.runs.backends.ray import require_ray

        require_ray()
    elif isinstance(backend, Executor):
        from eber.runs.backends.executors import require_processes

        require_processes(backend)
    elif backend != PROCESSES:
        raise ValueError(
            f"backend is {backend!r}; give {PROCESSES!r}, {RAY!r}, eber.RayCluster(address), or an executor of "
            "concurrent.futures whose workers are processes."
        )


def open_backend(backend: Any, work: Work, jobs: int) -> Backend:
    """The place that was asked for, to be entered.

    Parameters
    ----------
    backend : str, RayCluster or Executor
        As `check_backend` lets pass.
    work : Work
        What will be computed there.
    jobs : int
        How much at once on this machine; a cluster that is joined and an executor have a size of their own.
    """
    check_backend(backend)
    if isinstance(backend, Executor):
        from eber.runs.backends.executors import ExecutorBackend

        return ExecutorBackend(backend, work, jobs)
    if backend == PROCESSES:
        return WorkerPool(work, jobs)
    from eber.runs.backends.ray import RayBackend

    return RayBackend(work, jobs, backend.address if isinstance(backend, RayCluster) else None)
