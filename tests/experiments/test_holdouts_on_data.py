"""`--all-holdouts` on the real files: every environment once, families apart, and nothing under a wrong name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eber.cli.main import app
from eber.datasets.quasar import LATITUDE_BINS, LONGITUDE_BINS, load_quasar
from eber.experiments import microbiome, quasar, sepsis
from eber.runs.holdouts import held_out, hold_out
from eber.runs.results import NO_LEAK
from eber.runs.spec import Experiment


@pytest.mark.parametrize("experiment", [microbiome.EXPERIMENT, quasar.EXPERIMENT, sepsis.EXPERIMENT])
def test_a_setting_holds_out_what_its_name_says(experiment: Experiment) -> None:
    for holdouts in experiment.holdouts.values():
        for setting in holdouts.settings:
            assert experiment.settings[setting]["held_out"] == held_out(setting)


@pytest.mark.parametrize(("binning", "names"), [("latitude", LATITUDE_BINS), ("longitude", LONGITUDE_BINS)])
def test_the_families_of_quasars_are_the_regions_of_one_binning_each(
    binning: str, names: tuple[str, ...], data_dir: Path
) -> None:
    (family,) = (family for family in quasar.EXPERIMENT.holdouts if family.endswith(binning))
    settings = quasar.EXPERIMENT.holdouts[family].settings
    assert {quasar.EXPERIMENT.resolve(setting, {})["binning"] for setting in settings} == {binning}
    data = load_quasar(data_dir, binning=binning)  # type: ignore[arg-type]
    assert tuple(map(held_out, settings)) == names == tuple(data.environment_names)


@pytest.mark.parametrize(
    ("name", "change", "fixed"),
    [("sepsis", "held_out=B_unit1", "held_out"), ("quasar", "binning=longitude", "binning")],
)
def test_no_override_can_make_a_setting_hold_out_something_else(
    name: str, change: str, fixed: str, data_dir: Path, tmp_path: Path
) -> None:
    command = ["reproduce", name, "--all-holdouts", "--set", change, "--data", str(data_dir), "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, ValueError)
    assert f"fixes '{fixed}'" in str(result.exception)


def test_one_genus_sets_zeller_apart_as_its_summary_says(data_dir: Path) -> None:
    train, test = microbiome.split(microbiome.EXPERIMENT.resolve(hold_out("crc_zeller"), {}), data_dir, 0)
    (column,) = (j for j, name in enumerate(train.feature_names) if name.endswith("g__Sphingomonas"))
    assert (len(train), (train.X[:, column] > 0).sum()) == (494, 2)
    assert (test.X[:, column] > 0).all()
    _, prepared = microbiome.TASK.prepare(train, test)
    assert 2000 < np.median(prepared.X[:, column]) < 2300


def test_microbiome_is_summed_up_over_its_cohorts_with_what_was_found_about_them(
    data_dir: Path, tmp_path: Path
) -> None:
    options = ["--methods", "EBER,ERM", "--seeds", "1", "--set", "epochs=2"]
    places = ["--data", str(data_dir), "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["reproduce", "microbiome", "--all-holdouts", *options, *places])
    assert done.exit_code == 0, done.output
    printed = " ".join(done.stdout.split())
    tables, _, summary = printed.partition("Summary over holdouts: study cohorts")
    assert "Leak: 56 of 292" in tables, "of the paper's split"
    assert "Leak: 56 of 292" not in summary, "which is none of the cohorts held out in turn"
    assert f"crc_baxter, crc_xiang, crc_zackular, crc_zeller and crc_zhao held out: {NO_LEAK}" in summary
    assert "baxter and zackular share subjects" in summary
    assert "Mean ± standard deviation over 5 environments" in summary
    assert "EBER (adapted)" in summary
    assert (tmp_path / "figures" / "holdouts-study-cohorts.svg").exists()
