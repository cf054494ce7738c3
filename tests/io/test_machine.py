"""Limits of a container or a batch system, as the kernel writes them down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eber.io import machine

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the kernel's, in which nothing is limited."""
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / "membership").write_text("0::/jobs/17\n")
    return tmp_path / "cgroup"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_limit_all_of_the_machine_may_be_used(kernel: Path) -> None:
    write(kernel / "jobs" / "17" / "memory.max", "max\n")
    write(kernel / "jobs" / "17" / "cpu.max", "max 100000\n")
    assert machine.memory_bytes() == PHYSICAL
    assert machine.cores() == 8


@pytest.mark.parametrize("place", ["jobs/17", "jobs", "."])
def test_the_least_of_all_limits_around_a_process_counts(place: str, kernel: Path) -> None:
    """Its own group's, or that of any group around it; in a container the group may be known by the root alone."""
    write(kernel / place / "memory.max", f"{1 << 28}\n")
    write(kernel / place / "cpu.max", "150000 100000\n")
    assert machine.memory_bytes() == 1 << 28
    assert machine.cores() == 1.5


def test_limits_of_the_first_version_of_control_groups_count_too(kernel: Path, tmp_path: Path) -> None:
    (tmp_path / "membership").write_text("4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n")
    write(kernel / "memory" / "memory.limit_in_bytes", f"{1 << 29}\n")
    write(kernel / "cpu" / "cpu.cfs_quota_us", "50000\n")
    write(kernel / "cpu" / "cpu.cfs_period_us", "100000\n")
    assert machine.memory_bytes() == 1 << 29
    assert machine.cores() == 0.5
