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
    expected = {"lint": "make lint", "tests": "make test", "lowest": "make test-lowest", "docs": "make docs"}
    assert run == {job: [command] for job, command in expected.items()}


def test_every_stated_python_is_tried_by_the_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    stated = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == stated
    assert PROJECT["project"]["requires-python"] == f">={stated[0]}"


CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
"""Packages that are called something else there."""


def test_the_conda_recipe_says_what_the_project_says() -> None:
    recipe, project = yaml.safe_load((ROOT / "recipe" / "meta.yaml").read_text()), PROJECT["project"]
    assert recipe["package"] == {"name": project["name"], "version": eber.__version__}
    python, *run = recipe["requirements"]["run"]
    assert python == f"python {project['requires-python']}" == recipe["requirements"]["host"][0]
    needed = [Requirement(text) for text in project["dependencies"]]
    assert run == [f"{CONDA_NAMES.get(one.name, one.name)} {one.specifier}" for one in needed]
    ((command, function),) = project["scripts"].items()
    assert recipe["build"]["entry_points"] == [f"{command} = {function}"]
    about = recipe["about"]
    assert (about["summary"], about["license"], [about["license_file"]]) == (
        project["description"],
        project["license"],
        project["license-files"],
    )


def test_the_image_is_built_from_files_that_are_there_and_versions_that_were_tested() -> None:
    text = (ROOT / "Dockerfile").read_text()
    (python,) = re.findall(r"^FROM python:(3\.\d+)-slim$", text, flags=re.MULTILINE)
    assert f"Programming Language :: Python :: {python}" in PROJECT["project"]["classifiers"]
    copied = [name for line in re.findall(r"^COPY (.*) \./\S*$", text, flags=re.MULTILINE) for name in line.split()]
    needed = {"pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "src"}
    assert set(copied) == {*needed, "constraints.txt"}
    assert all((ROOT / name).exists() for name in copied)
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == set(copied), "all else stays out of the image"
    installs = re.findall(r"pip install (.*)$", text, flags=re.MULTILINE)
    assert installs == ["--constraint constraints.txt torch", "--constraint constraints.txt ."], "torch first"
    assert text.rstrip().splitlines()[-2:] == ['ENTRYPOINT ["eber"]', 'CMD ["--help"]']
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert f"PIP_EXTRA_INDEX_URL={workflow['env']['PIP_EXTRA_INDEX_URL']} " in text, "the CPU build"


def test_what_the_site_and_the_tests_are_built_with_has_a_pin() -> None:
    tested, extras = pins("constraints.txt"), PROJECT["project"]["optional-dependencies"]
    for text in (*extras["docs"], *extras["test"]):
        requirement = Requirement(text)
        if requirement.name != "eber":
            name = requirement.name.lower().replace("_", "-")
            assert tested[name] in requirement.specifier, name
