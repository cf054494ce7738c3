"""What this process may use of the machine: a container or a batch system may grant less than there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def memory_bytes() -> int:
    """Memory of the machine, or of the control group that this process is in where that is less."""
    if not hasattr(os, "sysconf"):  # Windows
        return 16 << 30
    granted = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for version_2, version_1 in _groups("memory"):
        granted += _numbers(version_2 / "memory.max") + _numbers(version_1 / "memory.limit_in_bytes")
    return min(granted)


def cores() -> float:
    """Cores that this process may run on, as many as its control group pays for where that is less."""
    granted = [float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)]
    for version_2, version_1 in _groups("cpu"):
        quotas = [_numbers(version_2 / "cpu.max")]
        quotas.append(_numbers(version_1 / "cpu.cfs_quota_us") + _numbers(version_1 / "cpu.cfs_period_us"))
        granted += [quota[0] / quota[1] for quota in quotas if len(quota) == 2 and min(quota) > 0]
    return min(granted)


def _groups(controller: str) -> Iterator[tuple[Path, Path]]:
    """The folders of the groups that the process is in, from its own to the root, for both versions of the system.

    Within a container the names may be those of the host; the root is that of the container then.
    """
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        inner = PurePosixPath(name).relative_to("/") if name.startswith("/") else PurePosixPath(name)
        for part in (inner, *inner.parents):
            yield CGROUPS / part, CGROUPS / controller / part


def _numbers(path: Path) -> list[int]:
    """The numbers in a file of the kernel's; none where it is missing or says "max"."""
    try:
        return [int(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []
