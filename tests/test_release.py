"""What a release says about itself is true: its version, its citation, its ranges, its checks."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from typer.testing import CliRunner

import eber
from eber.cli.main import app

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(file: str) -> dict[str, Version]:
    """The versions that a file of constraints names, by package."""
    lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): Version(version) for name, version in (line.split("==") for line in lines)}


def requirements() -> list[Requirement]:
    """What a user installs: the dependencies and the extra for data."""
    project = PROJECT["project"]
    return [Requirement(text) for text in (*project["dependencies"], *project["optional-dependencies"]["data"])]


def test_the_version_stands_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "eber.__version__"}
    assert "version" not in PROJECT["project"]
    assert str(Version(eber.__version__)) == eber.__version__


def test_the_command_says_the_version_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the metadata of an editable install say, which are as old as the install."""
    monkeypatch.setattr(eber, "__version__", "99.1")
    assert CliRunner().invoke(app, ["--version"]).output.startswith("eber 99.1")
    assert metadata.version("eber") != "99.1"


def test_the_changelog_has_the_version() -> None:
    assert re.search(rf"^## {re.escape(eber.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)


def test_the_citation_names_the_software_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation), "what the format demands"
    assert citation["type"] == "software"
    assert citation["license"] == PROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors"} <= set(paper), "what the format demands"
    assert [author["family-names"] for author in paper["authors"]] == ["Slavutsky", "Shen", "Wu", "Blei"]
    assert paper["year"] == 2026


def test_lowest_versions_are_the_stated_ones() -> None:
    """All but torch's, of which one build only could be tried."""
    lowest = pins("constraints-lowest.txt")
    for requirement in requirements():
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        if requirement.name != "torch":
            stated, tried = Version(bound.version), lowest[requirement.name.lower()]
            assert tried >= stated, requirement.name
            # The first of the stated series: 1.11.1 for 1.11, of which there is no 1.11.0 any more.
            assert tried.release[: len(stated.release)] == stated.release, requirement.name


def test_what_is_installed_for_the_tests_is_within_the_ranges() -> None:
    tested = pins("constraints.txt")
    for requirement in requirements():
        assert tested[requirement.name.lower()] in requirement.specifier, requirement.name


def test_hooks_and_workflow_check_what_lint_checks() -> None:
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    commands = {line.strip().replace("$(BIN)", ".venv/bin").removesuffix(" .") for line in recipe.splitlines()}
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {hook["entry"] for hook in local["hooks"]} == commands
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    run = {
        job: [step["run"] for step in content["steps"] if "run" in step] for job, content in workflow["jobs"].items()
    }
    assert run == {"lint": ["make lint"], "tests": ["make test"], "lowest": ["make test-lowest"]}


def test_every_stated_python_is_tried_by_the_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    stated = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == stated
    assert PROJECT["project"]["requires-python"] == f">={stated[0]}"
