"""What travels to other machines: the table, the modules of one's own methods, and the versions that must be there."""

from __future__ import annotations

import atexit
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import eber
from eber.methods import Method

VERSIONS_OF = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "matplotlib")
"""Packages that have a part in the results or in their report."""


def installed_versions() -> dict[str, str]:
    """Of eber, of Python, and of the packages that results depend on."""
    return {
        "eber": eber.__version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in VERSIONS_OF},
    }


@dataclass(frozen=True)
class Luggage:
    """What another machine is sent.

    Parameters
    ----------
    versions : mapping
        Package to its version at the sender: other ones may give other scores.
    modules : mapping
        Name of a module to its source, of methods of one's own that stand in a file by itself.
    name : str
        Of the file or folder that was sent.
    files : mapping
        Path within it to content; a single file has an empty path. Nothing where data stay where they are.
    """

    versions: Mapping[str, str]
    modules: Mapping[str, str]
    name: str
    files: Mapping[str, bytes]

    def unpack(self) -> None:
        """Refuse other versions than the sender's, and define the modules that were sent."""
        for package, version in installed_versions().items():
            if version != self.versions[package]:
                raise RuntimeError(
                    f"{platform.node()} has {package} {version}, and the run was started with "
                    f"{self.versions[package]}, whose results may differ: install the same versions everywhere."
                )
        for name, source in self.modules.items():
            module = ModuleType(name)
            sys.modules[name] = module
            exec(compile(source, f"{name}.py", "exec"), module.__dict__)

    def place_of_data(self, at_sender: Path, fingerprint: Callable[[Path], str], expected: str) -> Path:
        """Where the data lie on this machine, once it is seen that they are those of the run."""
        place = _unpacked(self.name, tuple(self.files.items())) if self.files else at_sender
        if not place.exists():
            raise FileNotFoundError(
                f"{place} is not on {platform.node()}: these data do not travel, and must lie under the same path on "
                "every machine that computes."
            )
        if _fingerprint_of(place, fingerprint) != expected:
            raise ValueError(
                f"{place} on {platform.node()} is not what the run was planned for: its content is another one."
            )
        return place


def pack(methods: Iterable[Method], data: Path | None) -> Luggage:
    """Everything that travels; the content of `data`, a file or a folder, where it is given."""
    files = {}
    if data is not None:
        paths = [data] if data.is_file() else sorted(path for path in data.rglob("*") if path.is_file())
        files = {"" if path == data else path.relative_to(data).as_posix(): path.read_bytes() for path in paths}
    sources = dict(filter(None, (_source_of(method) for method in methods)))
    return Luggage(installed_versions(), sources, "" if data is None else data.name, files)


def _source_of(method: Method) -> tuple[str, str] | None:
    """Name and source of the module of a method of one's own; none where every machine must have it installed."""
    name = method.source.partition(":")[0]
    if name == "__main__":
        raise ValueError(
            f"Other machines cannot import the method {method.name}, which is written in the script itself, a notebook "
            "or a Python prompt: write its class into a file, mymethod.py, and import it from there."
        )
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    if "." in name or file.suffix != ".py" or "site-packages" in file.parts:
        return None
    return name, file.read_text(encoding="utf-8")


@cache
def _unpacked(name: str, files: tuple[tuple[str, bytes], ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="eber-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / name
    for relative, content in files:
        path = place / relative if relative else place
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content)
    return place


def _write(path: Path, content: bytes) -> None:
    """A file that ends with this process, however it ends: Ray kills its workers, and no table may stay behind."""
    if not hasattr(os, "memfd_create"):  # only Linux has files without a place on a disk
        path.write_bytes(content)
        return
    descriptor = os.memfd_create(path.name)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    path.symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")


@cache
def _fingerprint_of(place: Path, fingerprint: Callable[[Path], str]) -> str:
    return fingerprint(place)
