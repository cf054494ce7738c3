"""A Ray cluster: one that is started for the run on this machine, or one that is joined by its address."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import secrets
import sys
import time
from typing import Any

from eber.runs.backends.protocol import THREAD_VARIABLES, Failure, Work

ATTEMPTS = 3
"""A block of tasks that ended its process so often is reported as failed."""


def require_ray() -> None:
    """Say what to install."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError("The backend ray needs Ray, which is not installed: pip install 'eber[ray]'.")


class RayBackend:
    """Tasks of Ray.

    What a node needs travels once through Ray's object store. Deaths of workers and of nodes are made good by Ray,
    which computes the tasks again elsewhere; an exception of our own is an answer, and is not tried again.

    Parameters
    ----------
    work : Work
    jobs : int
        Processors of a cluster that is started here; one that is joined has its own.
    address : str, optional
        Of the cluster to join.
    """

    def __init__(self, work: Work, jobs: int, address: str | None) -> None:
        self._work, self._jobs, self._address = work.travelling(with_files=True), jobs, address
        self._blocks: dict[Any, list[Any]] = {}
        self._ended = contextlib.ExitStack()

    def __enter__(self) -> RayBackend:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anybody
        import ray

        self._ray = ray
        try:
            if not ray.is_initialized():  # else it is its owner's, who ends it
                self._ended.callback(ray.shutdown)
                self._connect()
            self._sent = [ray.put(self._work)]  # in a list, so that a node fetches it once and not with every task
            self._compute = ray.remote(_compute).options(
                num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=False, runtime_env={"env_vars": _ONE_THREAD}
            )
            if not ray.cluster_resources().get("CPU"):
                raise RuntimeError("The Ray cluster has no processors; start a node of it: ray start --address=...")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
        if self._address is not None and self._address != "local":
            quiet.pop("include_dashboard")  # that cluster has decided
            self._ray.init(address=self._address, **quiet)
            return
        if "RAY_AUTH_TOKEN" not in os.environ:
            # For this process and its children, where Ray would write one into the home folder.
            os.environ["RAY_AUTH_TOKEN"] = _own_token()
            self._ended.callback(os.environ.pop, "RAY_AUTH_TOKEN", None)
        # "local" starts a cluster; without an address Ray would join whichever one it finds.
        self._ray.init(address="local", num_cpus=self._jobs, **quiet)

    def __exit__(self, *_: object) -> None:
        for block in self._blocks:
            self._ray.cancel(block, force=True)
        self._blocks.clear()
        self._ended.close()

    @property
    def size(self) -> int:
        """Processors of the cluster, whose nodes come and go."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    @property
    def has_idle(self) -> bool:
        """Whether tasks can be handed out now."""
        return len(self._blocks) < self.size

    @property
    def running(self) -> list[Any]:
        """The tasks that were handed out and not answered yet."""
        return [task for tasks in self._blocks.values() for task in tasks]

    def submit(self, tasks: list[Any]) -> None:
        """Hand out tasks that are done together."""
        self._blocks[self._compute.remote(self._sent, tasks)] = tasks

    def wait(self, timeout: float) -> list[tuple[Any, Any]]:
        """What has come back within so many seconds."""
        if not self._blocks:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait(list(self._blocks), timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(list(self._blocks), num_returns=len(self._blocks), timeout=0)
        answers: list[tuple[Any, Any]] = []
        for block in ready:
            tasks = self._blocks.pop(block)
            answers += zip(tasks, self._answers(block, len(tasks)), strict=True)
        return answers

    def _answers(self, block: Any, n_tasks: int) -> list[Any]:
        try:
            answers: list[Any] = self._ray.get(block)
        except self._ray.exceptions.RayTaskError as error:  # what the node needs is missing there
            raised = error.cause if isinstance(error.cause, Exception) else error
            return [Failure(f"{type(raised).__name__}: {raised}", str(error))] * n_tasks
        except self._ray.exceptions.RayError as error:
            ended = f"its process or its machine ended {ATTEMPTS} times; is memory short? ({type(error).__name__})"
            return [Failure(ended, str(error))] * n_tasks
        return answers


_ONE_THREAD = dict.fromkeys(THREAD_VARIABLES, "1")
_begun: dict[Any, Work] = {}
"""The work that this process, on a node, has begun, by its reference."""


def _compute(sent: list[Any], tasks: list[Any]) -> list[Any]:
    """What a node does."""
    import ray

    (reference,) = sent
    if reference not in _begun:
        work: Work = ray.get(reference)
        work.begin()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        _begun[reference] = work
    return _begun[reference].compute(tasks)


@functools.cache
def _own_token() -> str:
    """One for the life of this process, which may start Ray several times: Ray reads it the first time only."""
    return secrets.token_hex(32)
