"""Processes that can be killed: the command line, or one function, with everything imported already.

They are forked from a server that has only imported modules, so that a start takes milliseconds instead of seconds and
a kill at a random moment hits the work and not the imports.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import eber.tables.prediction
import eber.workflow.fitting
import eber.workflow.reporting  # noqa: F401 (these and what they need are imported once, by the server)
from eber.cli.main import main
from tests.trust.effort import times

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload([__name__, "tests.trust.steps"])

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}
AMID_A_WRITE = ("kill amid a write", "no space")


def start(function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Run a function of a module in a process of its own."""
    process = context.Process(target=function, args=arguments)
    main_module = sys.modules["__main__"]  # pytest, which the process would import again
    with mock.patch.multiple(main_module, create=True, __file__=None, __spec__=None):
        process.start()
    return process


def finish(process: BaseProcess) -> int:
    """Wait for its end; the status."""
    process.join(300)
    assert process.exitcode is not None, "it hangs"
    status = process.exitcode
    process.close()
    return status


def command(arguments: list[Any], log: Path, file_bytes: int | None = None, bound: bool = False) -> None:
    """The command line; what it says goes to a file.

    Parameters
    ----------
    file_bytes : int, optional
        No file may become larger.
    bound : bool
        Permission bits bind the process even if it is root's.
    """
    torch.set_num_threads(1)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if bound:
        _obey_permissions()
    sys.argv = ["eber", *map(str, arguments)]
    main()


def _obey_permissions() -> None:
    """Give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root reads and writes what it may not."""
    if os.getuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: their low words, then their high words
    assert libc.capget(header, sets) == 0
    sets[0] &= ~(1 << 1 | 1 << 2)
    assert libc.capset(header, sets) == 0


def eber_command(arguments: list[Any], log: Path, **limits: Any) -> tuple[int, str]:
    """Run the command line to its end, see `command`; its status and what it said."""
    status = finish(start(functools.partial(command, arguments, log, **limits)))
    return status, log.read_text()


def killed_command(arguments: list[Any], log: Path, begun: Callable[[], bool], seconds: float) -> bool:
    """Run the command line and kill it so many seconds after something has begun; whether it was still at work."""
    process = start(command, arguments, log)
    while process.is_alive() and not begun():
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    return finish(process) == -signal.SIGKILL


def at_step(step: int, fault: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Run a function and let its n-th change of the file system, counted from one, be its last or fail.

    Parameters
    ----------
    fault : str
        "kill" is SIGKILL just before the change. "no permission" refuses this and all further changes. For the faults
        of `AMID_A_WRITE` the only changes that count are files opened for writing: "kill amid a write" ends the process
        when that file, or a later one, has got 100 bytes; "no space" lets the writing fail there, from then on.
    """
    seen = 0

    def watch(event: str, values: tuple[Any, ...]) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or (event in CHANGES and fault not in AMID_A_WRITE)) or seen < 0:
            return
        seen += 1
        if seen == step and fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if seen == step and fault in AMID_A_WRITE:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fault == "kill amid a write" else signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        if seen >= step and fault == "no permission" and event not in ("os.remove", "os.rmdir", "shutil.rmtree"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), values[0])

    sys.addaudithook(watch)
    try:
        function(*arguments)
    except OSError:
        os._exit(3)
    seen = -1
    os._exit(0)


def every_step(fault: str, function: Callable[..., Any], *arguments: Any, after: Callable[[bool], None]) -> int:
    """Let each step of a function fail in turn, and call `after` each time with whether it ended well.

    In the default suite every fourth step, but every file that is opened; in the long one, every step.

    Returns
    -------
    int
        The faults injected.
    """
    stride = 1 if fault in AMID_A_WRITE else times(4, 1)
    for count, step in enumerate(range(1, 1000, stride)):
        status = finish(start(at_step, step, fault, function, *arguments))
        assert status in (0, 3, -signal.SIGKILL, -signal.SIGXFSZ), f"step {step} ended with {status}"
        after(status == 0)
        if status == 0:
            return count
    raise AssertionError("it never ends")
