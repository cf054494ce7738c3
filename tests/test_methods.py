"""Every method is declared once, is found by its name, and runs as itself; an unknown one is refused."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from eber import ERMClassifier
from eber.datasets.hospitals import draw_hospitals
from eber.experiments.parametric import EXPERIMENT as PARAMETRIC
from eber.methods import (
    BUILT_IN,
    Method,
    all_methods,
    find_method,
    own,
    register_method,
)
from eber.runs.backends.processes import WorkerPool
from eber.runs.cell import CellResult
from eber.runs.computing import CellWork
from eber.runs.joint_fits import run_alone
from eber.runs.runner import run
from tests.command_line import eber
from tests.one_process import one_process  # noqa: F401
from tests.own_methods import CoinClassifier, RollCallClassifier, TiltedCoinClassifier
from tests.own_methods import __file__ as OWN_FILE
from tests.toy_experiment import TOY

README = Path(__file__).parents[1] / "README.md"
SMALL = {"n": 40, "m_train": 4, "m_validation": 2, "m_test": 3, "epochs": 2}
SMALL_SETS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins with the library's own methods, and leaves no other behind."""
    monkeypatch.setattr(own, "registered", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    own.load_entry_points.cache_clear()
    yield
    own.load_entry_points.cache_clear()


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hospitals of the example, few patients each."""
    table = draw_hospitals(300)
    path = tmp_path_factory.mktemp("methods") / "hospitals.csv"
    table[table["hospital"].isin(["Ashford", "Birchwood", "Dunmore"])].to_csv(path, index=False)
    return path


def nll(folder: Path) -> dict[str, float]:
    """Method to its mean NLL."""
    cells = pd.read_csv(folder / "cells.csv")
    cells = cells[(cells["metric"] == "nll") & (cells["variant"] == "main")]
    return cells.groupby("method")["value"].mean().to_dict()


def test_each_method_is_declared_once_and_can_be_built() -> None:
    assert [method.name for method in BUILT_IN[:5]] == ["EBER", "ERM", "IRM", "V-REx", "Fishr"]
    assert len({method.name.casefold() for method in BUILT_IN}) == len(BUILT_IN)
    for method in BUILT_IN:
        assert method.purpose
        if not method.is_installed:
            continue
        built = method.build(random_state=7, epochs=3)
        assert built.random_state == 7
        assert method.is_network == hasattr(built, "epochs"), method.name
        assert method.takes_environments == (method.is_network or method.name == "Pool"), method.name
        assert bool(method.penalty_parameter) == (method.penalty_parameter in built.get_params())


def test_a_setting_reaches_only_the_classifier_that_it_is_meant_for() -> None:
    assert find_method("ERM").build(learning_rate=0.5, latent_dim=3).learning_rate == 0.5
    assert find_method("Gradient boosting").build(learning_rate=0.5).learning_rate == 0.1
    assert find_method("tests.own_methods:TiltedCoinClassifier").build(penalty_weight=5.0).penalty_weight == 5.0
    assert find_method("tests.own_methods:loaded_coin").build(random_state=2, epochs=3).penalty_weight == 3.0


def test_a_name_is_found_in_any_letter_case() -> None:
    assert find_method("v-rex") is find_method("V-REx")
    assert find_method("LOGISTIC REGRESSION").classifier is LogisticRegression
    assert find_method("eber.estimators.baselines:ERMClassifier") is find_method("ERM")


def test_a_class_of_ones_own_is_found_by_its_module() -> None:
    assert find_method("tests.own_methods:CoinClassifier").name == "Coin"
    tilted = find_method("tests.own_methods:TiltedCoinClassifier")
    assert (tilted.name, tilted.penalty_parameter) == ("Tilted coin", "penalty_weight")
    assert find_method("tilted COIN") is tilted
    assert tilted.purpose.startswith("The same for every row too")
    assert tilted in all_methods()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("GroupDOR", r"no method 'GroupDOR'; there are EBER, ERM, .*Pool\. One of your own"),
        ("no_such_module:Thing", r"no_such_module:Thing cannot be imported: ModuleNotFoundError"),
        ("tests.own_methods:Thing", r"tests.own_methods:Thing cannot be imported: AttributeError"),
        ("tests.own_methods:Scaler", r"tests.own_methods:Scaler has no fit and predict_proba"),
    ],
)
def test_an_unknown_method_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_method(name)


@pytest.mark.parametrize("command", ["compare", "reproduce", "fit"])
def test_an_unknown_method_is_refused_by_every_command_and_never_replaced(
    command: str,
    hospitals: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = [hospitals, "--label", "sepsis", "--environment", "hospital", "--quick"]
    arguments = {
        "compare": [*table, "--methods", "EBER,EBRE"],
        "fit": [*table, "--method", "EBRE"],
        "reproduce": ["parametric", "--seeds", 1, *SMALL_SETS, "--methods", "EBER,EBRE"],
    }
    assert eber(monkeypatch, command, *arguments[command], "--out", tmp_path / "out") == 2
    assert "There is no method 'EBRE'; there are EBER, ERM" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_fit_refuses_what_a_model_folder_cannot_hold(
    hospitals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = [hospitals, "--label", "sepsis", "--environment", "hospital", "--out", tmp_path / "model"]
    assert eber(monkeypatch, "fit", *table, "--method", "tests.own_methods:CoinClassifier") == 2
    assert "Coin cannot be saved: a model folder holds EBER, ERM" in capsys.readouterr().err


def test_a_name_is_given_to_one_class_only() -> None:
    first = register_method(CoinClassifier)
    assert register_method(CoinClassifier) == first
    with pytest.raises(ValueError, match=r"'coin' of .*RollCallClassifier is taken by tests.own_methods:Coin"):
        register_method(RollCallClassifier, name="coin")
    with pytest.raises(ValueError, match=r"is taken by eber.estimators:ERMClassifier"):
        register_method(CoinClassifier, name="ERM")
    assert register_method(ERMClassifier) is find_method("ERM")


def test_a_class_that_workers_could_not_import_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(CoinClassifier):
        pass

    with pytest.raises(ValueError, match="top level of a module"):
        register_method(Local)
    notebook = ModuleType("__main__")  # has no file
    notebook.Typed = type("Typed", (CoinClassifier,), {"__module__": "__main__"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    experiment, _ = PARAMETRIC.with_methods([register_method(notebook.Typed)])
    with pytest.raises(ValueError, match=r"cannot import the method Typed, which was typed into a notebook"):
        WorkerPool(CellWork(experiment), 1)


@pytest.mark.parametrize("classifier", [CoinClassifier, TiltedCoinClassifier, RollCallClassifier])
def test_a_method_that_an_experiment_does_not_list_is_run_as_itself(classifier: type) -> None:
    """It once fell through to EBER, and was reported under its own name."""
    method = register_method(classifier, penalty_grid=(1.0,) if classifier is TiltedCoinClassifier else ())
    experiment, (name,) = PARAMETRIC.with_methods([method.name.upper()])
    assert name == method.name
    assert experiment.methods == (*PARAMETRIC.methods, name)
    steps = experiment.run_cell(experiment.cell("baseline", name, 0, SMALL, ""))
    assert not isinstance(steps, CellResult)
    result = run_alone(steps)
    assert result.scores["main"]["nll"] == pytest.approx(math.log(2), abs=1e-12)
    assert result.scores["main"].get("penalty_weight", 1.0) == 1.0


def test_an_experiment_without_fits_takes_no_further_method() -> None:
    register_method(CoinClassifier)
    with pytest.raises(ValueError, match=r"toy: method 'Coin' is unknown; there are Bayes-x, EBER"):
        TOY.with_methods(["Coin"])


def test_a_name_that_an_experiment_uses_for_a_row_of_its_own_is_refused() -> None:
    """It would otherwise be reported with the scores of that row."""
    with pytest.raises(ValueError, match=r"has a row 'Bayes-x'; call tests.own_methods:CoinClassifier otherwise"):
        PARAMETRIC.with_methods([register_method(CoinClassifier, name="Bayes-x")])


class _EntryPoint(SimpleNamespace):
    def load(self) -> object:
        module, _, attribute = self.value.partition(":")
        return getattr(importlib.import_module(module), attribute)


def test_other_packages_offer_methods_and_a_broken_one_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [
        _EntryPoint(name="Lost", value="no_such_package:Lost"),
        _EntryPoint(name="Penny", value="tests.own_methods:CoinClassifier"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: offered if group == "eber.methods" else [])
    assert find_method("ERM").name == "ERM", "a method of the library asks no other package"
    with pytest.warns(UserWarning, match=r"method 'Lost', .* as no_such_package:Lost, cannot be used: ModuleNotFound"):
        penny = find_method("penny")
    assert (penny.name, penny.classifier) == ("Penny", CoinClassifier)
    assert penny in all_methods()


def test_a_declaration_is_plain_data() -> None:
    method = register_method(TiltedCoinClassifier, penalty_grid=(1.0, 2.0))
    assert Method.from_json(method.to_json()) == method


def test_a_new_objective_is_one_file_and_compare_and_reproduce_run_it(
    hospitals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's recipe as it stands, in a folder of its own, through worker processes."""
    (recipe,) = re.findall(r"```python\n(# worst\.py\n.*?)```", README.read_text(), flags=re.DOTALL)
    (tmp_path / "worst.py").write_text(recipe)
    monkeypatch.chdir(tmp_path)
    chosen = "EBER,ERM,worst:WorstEnvironmentClassifier"
    table = [hospitals, "--label", "sepsis", "--environment", "hospital", "--quick"]
    assert eber(monkeypatch, "compare", *table, "--methods", chosen, "--out", "compared") == 0
    small = ["parametric", "--seeds", 2, *SMALL_SETS]
    assert eber(monkeypatch, "reproduce", *small, "--methods", chosen, "--out", "reproduced") == 0
    for folder in ("compared", "reproduced"):
        scores = nll(tmp_path / folder)
        assert scores.keys() == {"EBER", "ERM", "Worst environment"}
        assert len(set(scores.values())) == 3, "it has scores of its own"
    monkeypatch.delitem(sys.modules, "worst", raising=False)
    (tmp_path / "worst.py").unlink()
    own.registered.clear()
    capsys.readouterr()
    for folder in ("compared", "reproduced"):  # a report needs the names and the scores, and nobody's code
        shutil.rmtree(tmp_path / folder / "figures", ignore_errors=True)
        (tmp_path / folder / "report.html").unlink()
        assert eber(monkeypatch, "report", folder) == 0
        assert "Worst environment" in (tmp_path / folder / "report.html").read_text()


def test_an_own_method_runs_as_itself_in_worker_processes(tmp_path: Path) -> None:
    chosen = ["Bayes-x", "tests.own_methods:CoinClassifier", "tests.own_methods:BrokenClassifier"]
    summary = run(PARAMETRIC, out=tmp_path, seeds=2, methods=chosen, overrides=SMALL, jobs=1)
    assert nll(tmp_path)["Coin"] == pytest.approx(math.log(2), abs=1e-12)
    assert set(summary.failures.values()) == {"RuntimeError: the coin is lost"}, "and fails alone"
    assert (summary.computed, len(summary.failures)) == (4, 2)
    run(PARAMETRIC, out=tmp_path, seeds=1, methods=["Bayes-x"], overrides=SMALL, jobs=1)
    assert "Coin" in nll(tmp_path), "a later run without it keeps its row"


@pytest.mark.usefixtures("one_process")
def test_a_method_whose_code_has_changed_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = Path(OWN_FILE).read_text()
    found = {}
    for version, text in enumerate([source, source, source + "# another version\n"]):
        Path("changing_coin.py").write_text(text)
        sys.modules.pop("changing_coin", None)
        importlib.invalidate_caches()
        own.registered.clear()
        chosen = ["Bayes-x", "changing_coin:CoinClassifier"]
        found[version] = run(PARAMETRIC, out=tmp_path / "out", seeds=1, methods=chosen, overrides=SMALL, jobs=1)
    assert [summary.computed for summary in found.values()] == [2, 0, 1]
    assert len(pd.read_csv(tmp_path / "out" / "cells.csv").query("method == 'Coin' and metric == 'nll'")) == 1
    assert "code" not in PARAMETRIC.cell("baseline", "ERM", 0, {}, "").identity
    monkeypatch.delitem(sys.modules, "changing_coin")
