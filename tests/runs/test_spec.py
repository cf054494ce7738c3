"""An experiment is checked when it is declared, and overrides when they are given."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eber.evaluation.metrics import Quantity
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.runs import Cell, CellResult, PaperTable
from eber.runs.parameters import override, parse_assignments
from tests.toy_experiment import TOY, run_cell

DEFAULTS: dict[str, Any] = {
    "rho": 0.1,
    "epochs": 10,
    "objective": "stratified",
    "quick": False,
    "hidden_dims": (16,),
    "grid": (0.1, 1.0),
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("rho", "1", 1.0),
        ("rho", "1e-3", 0.001),
        ("epochs", "20", 20),
        ("objective", "decomposed", "decomposed"),
        ("quick", "yes", True),
        ("quick", "False", False),
        ("hidden_dims", "16,32", (16, 32)),
        ("grid", "1", (1.0,)),
    ],
)
def test_a_text_is_read_as_the_type_of_the_default(key: str, text: str, value: Any) -> None:
    changed = override(DEFAULTS, {key: text}, "Experiment 'x'")
    assert changed == {**DEFAULTS, key: value}
    assert type(changed[key]) is type(value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rho", "high", "'rho' must be a finite number; 'high' is not"),
        ("rho", "nan", "'rho' must be a finite number"),
        ("rho", True, "'rho' must be a finite number"),
        ("epochs", "1.5", "'epochs' must be a whole number"),
        ("epochs", 1.5, "'epochs' must be a whole number"),
        ("epochs", True, "'epochs' must be a whole number"),
        ("quick", "maybe", "'quick' must be true or false"),
        ("hidden_dims", "16,wide", "'hidden_dims' must be a whole number; 'wide' is not"),
        ("hidden_dims", 16, "'hidden_dims' is a list such as 16"),
        ("rhoo", "1", "no parameter 'rhoo'. Did you mean 'rho'.*rho, epochs, objective, quick, hidden_dims, grid"),
    ],
)
def test_a_wrong_override_is_refused_with_what_would_be_right(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        override(DEFAULTS, {key: value}, "Experiment 'x'")


@given(st.dictionaries(st.sampled_from(["rho", "shift"]), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_float_survives_the_command_line(values: dict[str, float]) -> None:
    texts = parse_assignments(f"{key}={value!r}" for key, value in values.items())
    assert override({"rho": 0.0, "shift": 0.0}, texts, "x") == {"rho": 0.0, "shift": 0.0, **values}


@pytest.mark.parametrize("assignments", [["rho"], ["=1"], ["rho=1", "rho=2"]])
def test_a_malformed_assignment_is_refused(assignments: list[str]) -> None:
    with pytest.raises(ValueError, match=r"key=value|twice"):
        parse_assignments(assignments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"primary_metric": "auroc"}, "primary metric 'auroc' is unknown; there are nll, accuracy"),
        ({"metrics": ("nll", "acuracy")}, "no metric 'acuracy'"),
        ({"reference_method": "Bayes-x"}, "reference method 'Bayes-x'"),
        ({"settings": {"rho": {"rho": 0.2}}, "paper": {}}, "no parameter 'rho'"),
        ({"default_settings": ("hard",)}, "default setting 'hard'"),
        ({"ablations": ("EBER",)}, "names a method twice"),
        ({"ablations": ("EBER, untied",)}, "'EBER, untied' has a comma in its name"),
        ({"paper": {"baseline": PaperTable("T", {"ERM": {"loss": (1, 1)}})}}, "metric of T 'loss'"),
        ({"parameters": {"shift": None}}, "default of 'shift' is None"),
        ({"run_cell": lambda cell: CellResult({})}, "at module level"),
    ],
)
def test_a_wrong_declaration_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TOY, **changes)


def test_a_plan_is_seed_by_seed_with_settings_applied() -> None:
    cells = TOY.plan(seeds=2, overrides={"repeats": "5"})
    assert [cell.seed for cell in cells] == [0] * 8 + [1] * 8
    assert {cell.method for cell in cells} == {"Bayes-x", "EBER", "ERM", "V-REx"}, "ablations only when asked for"
    assert {(cell.setting, cell.parameters["shift"]) for cell in cells} == {("baseline", 0.0), ("shift=0.1", 0.1)}
    assert all(cell.parameters["repeats"] == 5 for cell in cells)


def test_names_are_found_in_any_letter_case_and_unknown_ones_answered() -> None:
    cells = TOY.plan(seeds=[7], methods=["v-rex", "eber"], settings=["Baseline"])
    assert [cell.method for cell in cells] == ["EBER", "V-REx"]
    with pytest.raises(
        ValueError, match="method 'IRM' is unknown; there are Bayes-x, EBER, ERM, V-REx, EBER-collapsed"
    ):
        TOY.plan(seeds=1, methods=["IRM"])


@pytest.mark.parametrize("arguments", [{"seeds": 0}, {"seeds": [-1]}, {"seeds": 1, "methods": []}])
def test_a_plan_of_nothing_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"seed|nothing to run"):
        TOY.plan(**arguments)


def test_an_override_cannot_contradict_the_setting_named_after_it() -> None:
    with pytest.raises(ValueError, match=r"Setting 'shift=0\.1' of experiment 'toy' fixes 'shift'"):
        TOY.plan(seeds=1, overrides={"shift": 0.3})
    assert TOY.plan(seeds=1, settings=["baseline"], overrides={"shift": 0.3})[0].parameters["shift"] == 0.3


def test_whatever_determines_a_cell_is_in_its_file_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = TOY.plan(seeds=1)[0]
    others = [
        dataclasses.replace(cell, experiment="other"),
        dataclasses.replace(cell, setting="other"),
        dataclasses.replace(cell, method="EBER"),
        dataclasses.replace(cell, seed=1),
        dataclasses.replace(cell, parameters={**cell.parameters, "shift": 1e-9}),
        dataclasses.replace(cell, data="abc"),
    ]
    stems = {cell.file_stem, *(other.file_stem for other in others)}
    monkeypatch.setattr("eber.__version__", "99")
    assert len(stems | {cell.file_stem}) == len(others) + 2


def test_where_data_lie_is_not_part_of_a_cell() -> None:
    cell = TOY.plan(seeds=1)[0]
    assert dataclasses.replace(cell, data_dir=Path("elsewhere")).file_stem == cell.file_stem


@given(st.text(), st.text())
def test_file_names_are_safe_whatever_the_names(setting: str, method: str) -> None:
    stem = Cell("x", setting, method, 0, {}).file_stem
    assert "/" not in stem
    assert stem.isascii()
    assert len(stem) < 120
    assert not stem.startswith(".") or method.startswith(".")


def test_an_identity_is_plain_data() -> None:
    cell = TOY.plan(seeds=1)[0]
    assert json.loads(json.dumps(cell.identity)) == cell.identity


def test_an_experiment_on_data_needs_its_folder_and_depends_on_its_content(tmp_path: Path) -> None:
    experiment = dataclasses.replace(TOY, fingerprint=lambda folder: (folder / "rows").read_text())
    with pytest.raises(ValueError, match="say in which folder"):
        experiment.plan(seeds=1)
    (tmp_path / "rows").write_text("a")
    before = experiment.plan(seeds=1, data_dir=tmp_path)[0].file_stem
    (tmp_path / "rows").write_text("b")
    assert experiment.plan(seeds=1, data_dir=tmp_path)[0].file_stem != before


def test_a_result_without_the_tested_metric_is_refused() -> None:
    cell = TOY.plan(seeds=1, methods=["ERM"])[0]
    with pytest.raises(ValueError, match="no 'nll' for the variant 'main'"):
        TOY.check_result(cell, CellResult({"main": {"accuracy": 1.0}}))
    with pytest.raises(ValueError, match="a time, but no score"):
        TOY.check_result(cell, CellResult({"main": {"nll": 1.0}}, seconds={"mian": 1.0}))
    TOY.check_result(cell, run_cell(cell))


def test_quantities_of_ones_own_are_columns_too() -> None:
    error = Quantity(name="error", label="Error", higher_is_better=False)
    experiment = dataclasses.replace(TOY, metrics=("nll", error), primary_metric="error", paper={})
    assert experiment.columns["error"] is error


def test_every_registered_experiment_loads_under_its_own_name() -> None:
    for name in EXPERIMENTS:
        assert find_experiment(name).name == name


def test_an_experiment_of_ones_own_is_found_by_module_and_attribute() -> None:
    assert find_experiment("tests.toy_experiment:TOY") is TOY
    with pytest.raises(ValueError, match="no experiment 'nonsense'"):
        find_experiment("nonsense")
    with pytest.raises(ValueError, match="not an Experiment"):
        find_experiment("tests.toy_experiment:run_cell")
