"""The four data experiments: small versions on the real files, and what no version may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from eber.cli.main import app
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.colored_mnist import POOLED_MIXTURE, TEST_MIXTURE, expected_score, label_rule
from eber.estimators import PAPER_FORM
from eber.experiments import colored_mnist, microbiome, quasar, sepsis
from eber.experiments.data_files import DataFiles
from eber.experiments.data_rows import ABLATIONS, CHANGES, FIT_PARAMETERS, build_classifier
from eber.experiments.data_task import ADAPTED, DataTask, Split, learned_on_training
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.experiments.tuned_rows import its_search
from eber.leaks.audit import LeakWarning
from eber.report.page import write_report
from eber.runs.cell import LEAKED_ROWS, MAIN, Cell, CellResult
from eber.runs.holdouts import hold_out_settings
from eber.runs.joint_fits import run_alone
from eber.runs.progress import Progress
from eber.runs.results import NO_LEAK, load_results, summarise
from eber.runs.runner import RunSummary, run
from eber.runs.spec import Experiment

pytestmark = [
    # Fits as short as these show every sign of not being trained.
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]

NAMES = ("colored-mnist", "quasar", "microbiome", "sepsis")


def run_small(experiment: Experiment, method: str, data_dir: Path, setting: str = "", **changes: Any) -> CellResult:
    setting = setting or next(iter(experiment.settings))
    assert experiment.fingerprint is not None
    cell = experiment.cell(setting, method, 0, changes, data=experiment.fingerprint(data_dir))
    steps = experiment.run_cell(replace(cell, data_dir=data_dir))
    assert not isinstance(steps, CellResult)
    result = run_alone(steps)
    experiment.check_result(cell, result)
    return result


# What must hold for any data


def toy(rng: np.random.Generator, environments: str, n: int = 40) -> MultiEnvironmentData:
    y = np.tile([0, 1], n * len(environments) // 2)
    X = rng.normal(size=(len(y), 3)) + y[:, None]
    return MultiEnvironmentData(X, y, np.repeat(list(environments), n), name="toy")


def toy_split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
    """The held-out rows from the twentieth on are poison where the parameters say so."""
    rng = np.random.default_rng(0)
    train, test = toy(rng, "abc"), toy(rng, "d")
    if parameters["poison"]:
        X, y = test.X.copy(), test.y.copy()
        X[20:], y[20:] = 1e6, 1 - y[20:]
        test = replace(test, X=X, y=y)
    return train, test


TOY_FILES = DataFiles("toy", ("*.csv",), "toy")
TOY_TASK = DataTask(toy_split, TOY_FILES, "mlp", ("nll", "accuracy"), learned_on_training(StandardScaler))
TOY_PARAMETERS: dict[str, Any] = {
    **FIT_PARAMETERS,
    "hidden_dims": (4,),
    "representation_dim": 3,
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 1e-2,
    "penalty_weights": (0.01, 1.0, 100.0),
}


def toy_cell(method: str, parameters: Mapping[str, Any], data_dir: Path) -> Cell:
    """A cell of the toy, with a file for its fingerprint."""
    if not (data_dir / "rows.csv").exists():
        (data_dir / "rows.csv").write_text("some rows")
    return Cell("toy", "s", method, 0, parameters, TOY_FILES.fingerprint(data_dir), data_dir)


def on_its_search(task: DataTask, cell: Cell) -> Cell:
    """The cell with what the run would hand it: what its search decided, where it is one of a tuned row."""
    parts = {
        part: run_alone(task.run(replace(cell, setting=part[0]))) for part in its_search(cell.setting, cell.method)
    }
    return replace(cell, parts=parts)


@pytest.mark.parametrize("selection", ["leave_one_environment_out", "training_domain_validation"])
@pytest.mark.parametrize("method", ["EBER", "ERM", "IRM", "V-REx", "Fishr", "EBER tuned", "IRM tuned"])
def test_poisoned_held_out_rows_change_nothing_but_their_own_scores(
    method: str, selection: str, tmp_path: Path
) -> None:
    """Neither preparation nor fit nor the choice of a weight may have looked at them."""
    clean, poisoned = (
        run_alone(
            TOY_TASK.run(
                on_its_search(
                    TOY_TASK,
                    toy_cell(method, {**TOY_PARAMETERS, "selection": selection, "poison": poison}, tmp_path),
                )
            )
        )
        for poison in (False, True)
    )
    assert clean.scores[MAIN].get("penalty_weight") == poisoned.scores[MAIN].get("penalty_weight")
    np.testing.assert_array_equal(clean.arrays["correct"][:20], poisoned.arrays["correct"][:20])
    assert clean.scores[MAIN]["nll"] != poisoned.scores[MAIN]["nll"]
    if method == "EBER":
        np.testing.assert_array_equal(clean.arrays["assigned"][:20], poisoned.arrays["assigned"][:20])


@pytest.mark.parametrize("method", CHANGES)
def test_an_ablation_replaces_what_it_says_and_nothing_else(method: str, tmp_path: Path) -> None:
    parameters = {**TOY_PARAMETERS, "poison": False}
    whole, ablated = (build_classifier(name, {"epochs": 2}, parameters).get_params() for name in ("EBER", method))
    assert {name: value for name, value in ablated.items() if value != whole[name]} == {
        "env_loss_weight": 0.0,
        **(PAPER_FORM if "plain form" in method else {}),
        **({"objective": "decomposed"} if "decomposed" in method else {}),
    }
    result = run_alone(TOY_TASK.run(toy_cell(method, parameters, tmp_path)))
    assert np.isfinite(result.scores[MAIN]["nll"])


@pytest.mark.parametrize("moment", ["before it is read", "when it has been read"])
def test_a_file_that_changes_during_a_cell_gives_no_result(moment: str, tmp_path: Path) -> None:
    cell = toy_cell("ERM", {**TOY_PARAMETERS, "poison": False}, tmp_path)

    def changing_split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
        (data_dir / "rows.csv").write_text("other rows")
        return toy_split(parameters, data_dir, seed)

    if moment == "before it is read":
        (tmp_path / "rows.csv").write_text("other rows")
    task = TOY_TASK if moment == "before it is read" else replace(TOY_TASK, split=changing_split)
    with pytest.raises(ValueError, match="changed while the experiment ran"):
        run_alone(task.run(cell))


def test_a_figure_is_not_drawn_from_other_data_than_its_results_are_of(tmp_path: Path) -> None:
    cell = toy_cell("ERM", {**TOY_PARAMETERS, "poison": False}, tmp_path)
    experiment = SimpleNamespace(resolve=lambda setting, overrides: cell.parameters)
    run_of = {"data_dir": str(tmp_path), "data": cell.data, "overrides": {}}
    results: Any = SimpleNamespace(run=run_of, experiment=experiment)
    train, _ = TOY_TASK.read_again(results, "s")
    np.testing.assert_array_equal(train.X, toy_split(cell.parameters, tmp_path, 0)[0].X)
    (tmp_path / "rows.csv").write_text("other rows")
    with pytest.raises(ValueError, match="changed after its results were computed"):
        TOY_TASK.read_again(results, "s")


def test_a_task_without_a_data_folder_says_so() -> None:
    with pytest.raises(ValueError, match="'toy' reads data files"):
        run_alone(TOY_TASK.run(Cell("toy", "s", "ERM", 0, TOY_PARAMETERS)))


def test_a_fingerprint_follows_content_and_names_but_not_the_place(tmp_path: Path) -> None:
    def written(folder: str, content: str) -> str:
        (tmp_path / folder / "sdss").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "sdss" / "t.csv").write_text(content)
        return DataFiles("sdss", ("*.csv",), "quasar").fingerprint(tmp_path / folder)

    first = written("here", "1,2")
    assert written("there", "1,2") == first
    assert written("there", "1,3") != first
    with pytest.raises(FileNotFoundError, match=r"\*\.zip.*eber data fetch quasar"):
        DataFiles("sdss", ("*.zip",), "quasar").fingerprint(tmp_path / "here")


@pytest.mark.parametrize("name", NAMES)
def test_each_is_declared_with_the_paper_s_figures_for_every_method(name: str) -> None:
    experiment = find_experiment(name)
    assert name in EXPERIMENTS
    assert (experiment.default_settings or tuple(experiment.settings))[0] in experiment.paper
    for table in experiment.paper.values():
        assert set(table.rows) == set(experiment.methods)
        assert set(table.p_values) == set(experiment.methods) - {"EBER"}
    assert experiment.ablations == ABLATIONS
    assert experiment.parameters["penalty_weights"] == (0.01, 0.1, 1.0, 10.0, 100.0)
    assert experiment.discussion


def test_every_environment_is_held_out_once() -> None:
    held_out = {
        name: [
            find_experiment(name).settings[setting]["held_out"] for setting in hold_out_settings(find_experiment(name))
        ]
        for name in ("quasar", "microbiome")
    }
    longitudes = ["l_000_072", "l_072_144", "l_144_216", "l_216_288", "l_288_360"]
    assert held_out["quasar"] == ["b_q1", "b_q2", "b_q3", "b_q4", "b_q5", *longitudes]
    assert sorted(map(str, held_out["microbiome"])) == sorted(microbiome.COHORTS)
    assert len(hold_out_settings(sepsis.EXPERIMENT)) == 6
    assert hold_out_settings(colored_mnist.EXPERIMENT) == []


def test_cohorts_with_common_subjects_are_never_on_both_sides_of_a_hold_out() -> None:
    for setting in hold_out_settings(microbiome.EXPERIMENT):
        changes = microbiome.EXPERIMENT.settings[setting]
        partner = {"crc_baxter": "crc_zackular", "crc_zackular": "crc_baxter"}.get(str(changes["held_out"]))
        assert isinstance(train := changes["train"], tuple)
        assert partner not in train


# On the real files


def test_microbiome_from_cells_to_report(data_dir: Path, tmp_path: Path) -> None:
    done = run(
        microbiome.EXPERIMENT,
        out=tmp_path,
        seeds=1,
        methods=["EBER", "ERM"],
        overrides={"epochs": "5"},
        data_dir=data_dir,
        jobs=2,
        progress=Progress(),
    )
    assert done.exit_status == 0, done.failures
    results = load_results(microbiome.EXPERIMENT, tmp_path)
    assert tuple(summary.setting for summary in summarise(results)) == microbiome.EXPERIMENT.default_settings
    assert [row.label for row in summarise(results)[0].rows] == ["EBER", "ERM", "EBER (adapted)"]
    (found,) = results.leak_findings("paper split")
    assert (found[0].kind, found[0].n_rows, found[0].n_held_out) == ("shared_identifiers", 56, 292)
    assert results.leak_findings("without zackular") == []
    page = write_report(results).read_text()
    assert "held-out rows carry an identifier that is also in the training data" in page
    assert NO_LEAK in page
    leaking, others = (tmp_path / "table.md").read_text().split("## without zackular")
    clean, _ = others.split("## without small adenomas")
    assert leaking.count("Leak: 56 of 292 held-out rows carry an identifier") == 1
    assert NO_LEAK in clean
    assert NO_LEAK not in leaking
    drawn = {path.name for path in (tmp_path / "figures").glob("*-paper-split.png")}
    assert {name.split("-")[0] for name in drawn} == {"assignment", "leak", "neighbours", "scores"}
    arrays = results.arrays("EBER", 0, "paper split")
    share = np.mean(arrays["assigned"] == list(arrays["environments"]).index("crc_zackular"))
    assert f"crc_zackular {share:.2f} and {arrays['adapted_mixture'][1]:.2f}" in page


def test_reproduce_prints_a_leak_below_each_table_it_belongs_to(data_dir: Path, tmp_path: Path) -> None:
    options = [
        "--methods",
        "EBER",
        "--seeds",
        "2",
        "--set",
        "epochs=2",
        "--data",
        str(data_dir),
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, ["reproduce", "microbiome", *options])
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert words.count("Leak: 56 of 292 held-out rows carry an identifier") == 2, "and without small adenomas"
    assert words.index("paper split") < words.index("Leak: 56") < words.index("without zackular") < words.index(NO_LEAK)


def test_microbiome_splits_are_the_paper_s_and_the_clean_one(data_dir: Path) -> None:
    sizes = {}
    for setting in microbiome.EXPERIMENT.default_settings:
        train, test = microbiome.split(microbiome.EXPERIMENT.resolve(setting, {}), data_dir, 0)
        sizes[setting] = train.environment_names
        assert test.environment_names == ["crc_baxter"]
    assert sizes["paper split"] == ["crc_xiang", "crc_zackular", "crc_zeller"]
    assert sizes["without zackular"] == ["crc_xiang", "crc_zeller"]


def test_microbiome_nearest_neighbours_are_compared_with_a_random_cohort(data_dir: Path) -> None:
    with pytest.warns(LeakWarning, match="56 of 292 held-out rows"):
        result = run_small(microbiome.EXPERIMENT, "EBER", data_dir, epochs=2)
    same = result.arrays["neighbour_same_label"]
    assert same.shape == (292, 3)
    assert result.scores[MAIN]["neighbour_random"] == pytest.approx(same.mean())
    picked = same[np.arange(292), result.arrays["assigned"]]
    assert result.scores[MAIN]["neighbour_assigned"] == pytest.approx(picked.mean())
    assert result.arrays["leaked"].sum() == 56


def test_a_cohort_cannot_be_trained_on_and_held_out(data_dir: Path) -> None:
    with pytest.raises(ValueError, match="'crc_zeller' is held out"):
        run_small(microbiome.EXPERIMENT, "ERM", data_dir, held_out="crc_zeller")


@pytest.mark.parametrize(
    ("setting", "held_out"),
    [("latitude", "b_q1"), ("hold out b_q4", "b_q4"), ("hold out l_216_288", "l_216_288")],
)
def test_quasar_holds_out_the_shifted_region_or_the_named_one(setting: str, held_out: str, data_dir: Path) -> None:
    train, test = quasar.split(quasar.EXPERIMENT.resolve(setting, {}), data_dir, 0)
    assert test.environment_names == [held_out]
    assert len(train.environment_names) == 4
    assert held_out not in train.environments
    prepared, _ = quasar.TASK.prepare(train, test)
    np.testing.assert_allclose(prepared.X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(prepared.X.std(axis=0), 1, atol=1e-9)


def test_quasar_small(data_dir: Path) -> None:
    for setting in ("latitude", "longitude"):
        _, test = quasar.split(quasar.EXPERIMENT.resolve(setting, {}), data_dir, 0)
        eber = run_small(quasar.EXPERIMENT, "EBER", data_dir, setting, epochs=1, hidden_dims=(4,), batch_size=1024)
        assert set(eber.scores) == {MAIN, ADAPTED}
        assert eber.arrays["correct"].dtype == np.uint8
        assert len(eber.arrays["correct"]) == len(eber.arrays["assigned"]) == len(test)
        assert eber.scores[MAIN]["accuracy"] == pytest.approx(eber.arrays["correct"].mean())
        assert len(eber.arrays["environments"]) == 4
        assert eber.scores[MAIN][LEAKED_ROWS] == eber.arrays["leaked"].sum() == 0


def test_sepsis_small(data_dir: Path) -> None:
    small: dict[str, Any] = {"max_per_source": 2000, "epochs": 1}
    for method in ("EBER", "ERM"):
        result = run_small(sepsis.EXPERIMENT, method, data_dir, **small)
        assert set(result.scores[MAIN]) >= {"auroc", "auprc", "ece", "nll"}
        assert 0 <= result.scores[MAIN]["auroc"] <= 1
        assert result.scores[MAIN].get(LEAKED_ROWS) == (0 if method == "EBER" else None)
    _, test = sepsis.split({**sepsis.EXPERIMENT.parameters, **small}, data_dir, 0)
    assert set(test.environments) == {"A_unknown"}


def test_colored_mnist_small(data_dir: Path) -> None:
    small: dict[str, Any] = {"n_train": 40, "n_test": 60, "epochs": 1, "representation_dim": 4}
    for method in ("EBER", "ERM"):
        result = run_small(colored_mnist.EXPERIMENT, method, data_dir, **small)
        assert len(result.arrays["correct"]) == 60


@pytest.mark.parametrize(
    ("oracle", "mixture", "nll", "accuracy"),
    [
        ("pooled marginal rule", POOLED_MIXTURE, 0.587, 0.7015),
        ("test environment's own rule", TEST_MIXTURE, 0.325, 0.897),
    ],
)
def test_colored_mnist_oracles_score_what_the_tables_promise(
    oracle: str, mixture: Any, nll: float, accuracy: float, data_dir: Path
) -> None:
    """On drawn images, within the error of 10,000 of them."""
    exact = expected_score(label_rule(mixture), TEST_MIXTURE)
    assert (exact.nll, exact.accuracy) == pytest.approx((nll, accuracy), abs=6e-4)
    result = run_small(colored_mnist.EXPERIMENT, oracle, data_dir, n_train=10)
    assert result.scores[MAIN]["nll"] == pytest.approx(nll, abs=0.03)
    assert result.scores[MAIN]["accuracy"] == pytest.approx(accuracy, abs=0.015)


def test_colored_mnist_is_drawn_anew_under_each_seed(data_dir: Path) -> None:
    parameters = {"n_train": 10, "n_test": 10}
    first, again, other = (colored_mnist.split(parameters, data_dir, seed)[1].X for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# On the command line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["all"], "colored-mnist, quasar, microbiome, sepsis read data files: say by data (--data"),
        (["sepsis"], "sepsis reads data files"),
        (["all", "--methods", "EBER"], "belong to one experiment"),
        (["all", "--set", "epoch=1"], "No experiment has a parameter 'epoch'"),
        (["motivating", "--all-holdouts"], "no environment to hold out in turn"),
        (["quasar", "--settings", "longitude", "--all-holdouts"], "Give either --settings or"),
    ],
)
def test_commands_that_cannot_be_run_say_why_before_anything_is_computed(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EBER_DATA", str(tmp_path / "nothing was fetched"))
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert isinstance(result.exception, ValueError)
    assert sentence in str(result.exception)


NOTHING = SimpleNamespace(exit_status=0, run=RunSummary(0, 0, {}))
"""What stands in for a run."""


def test_data_that_were_fetched_are_found_without_being_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setenv("EBER_DATA", str(tmp_path))
    monkeypatch.setattr("eber.workflow.reproducing._reproduce", lambda *_, **given: asked.update(given) or NOTHING)
    monkeypatch.setattr("eber.cli.reproduce.show", lambda _: None)
    assert CliRunner().invoke(app, ["reproduce", "sepsis"]).exit_code == 0
    assert asked["data"] == tmp_path


def test_all_takes_each_holdout_and_gives_each_experiment_the_parameters_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}

    def noted(experiment: Experiment, folder: Path, **options: Any) -> SimpleNamespace:
        asked[experiment.name] = (folder, options["settings"], options["parameters"])
        return NOTHING

    monkeypatch.setattr("eber.workflow.reproducing._reproduce", noted)
    monkeypatch.setattr("eber.cli.reproduce.show", lambda _: None)
    command = ["reproduce", "all", "--all-holdouts", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert CliRunner().invoke(app, [*command, "--set", "epochs=1", "--set", "max_per_source=9"]).exit_code == 0
    assert list(asked) == list(EXPERIMENTS)
    folder, settings, changes = asked["quasar"]
    assert changes == {"epochs": "1"}
    assert (asked["motivating"][2], asked["sepsis"][2]) == ({}, {"epochs": "1", "max_per_source": "9"})
    assert folder == tmp_path / "quasar"
    assert settings == ["latitude", *hold_out_settings(quasar.EXPERIMENT)]
    assert asked["colored-mnist"][1] == ["baseline"]
