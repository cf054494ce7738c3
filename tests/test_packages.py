"""Wheel and sdist, built from the files of the repository, installed by themselves, and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest

import eber

ROOT = Path(__file__).parents[1]
NOT_RELEASED = (".ci/", ".gitignore")
"""What is of use in a repository only."""
OPTIONS = ("hospitals.csv", "--label", "sepsis", "--environment", "hospital", "--quick", "--epochs", "2")


def run(*command: object, cwd: Path, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The files of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked sdist has no list of the repository's files")
    return run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()


@pytest.fixture(scope="module")
def packages(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in tracked:
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, tree, cwd=out)
    return out


def test_the_sdist_has_all_that_its_tests_need(packages: Path, tracked: list[str]) -> None:
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    expected = {name for name in tracked if not name.startswith(NOT_RELEASED) and (ROOT / name).exists()}
    assert expected <= names
    added = {name for name in names - expected if not name.startswith("src/eber.egg-info/")}
    assert added == {"PKG-INFO", "setup.cfg"}, "what the build itself writes"


def test_the_wheel_has_the_package_and_nothing_else(packages: Path, tracked: list[str]) -> None:
    (wheel,) = packages.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == {name.removeprefix("src/") for name in tracked if name.startswith("src/")}


def test_the_wheel_installed_by_itself_does_the_whole_job(packages: Path, tmp_path: Path) -> None:
    """Only its dependencies are those of the tests: they take minutes to install."""
    (wheel,) = packages.glob("*.whl")
    installed, work = tmp_path / "installed", tmp_path / "work"
    work.mkdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--target", installed, wheel, cwd=work)

    def command(*arguments: object) -> str:
        return run(sys.executable, installed / "bin" / "eber", *arguments, cwd=work, PYTHONPATH=str(installed))

    where = "import eber.cli; print(eber.cli.__file__)"
    home = run(sys.executable, "-c", where, cwd=work, PYTHONPATH=str(installed)).strip()
    assert Path(home).is_relative_to(installed)
    assert command("--version").startswith(f"eber {eber.__version__}\nPython 3.")
    command("example", "hospitals.csv", "--rows", "400")
    compared = command("compare", *OPTIONS, "--methods", "ERM,Logistic regression", "--jobs", "1")
    assert "Logistic regression" in compared
    assert (work / "results" / "hospitals-quick" / "report.html").stat().st_size > 1_000_000
    command("fit", *OPTIONS, "--no-scores", "--out", "model")
    command("predict", "model", "new_hospital.csv", "--out", "predictions.csv")
    assert len(pd.read_csv(work / "predictions.csv")) == len(pd.read_csv(work / "new_hospital.csv"))
    (info,) = installed.glob("eber-*.dist-info")
    assert metadata.PathDistribution(info).version == eber.__version__
