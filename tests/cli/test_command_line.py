"""The commands, by running them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from eber.cli import main

SMALL = ["--set", "n=40", "--set", "epochs=2", "--set", "m_test=6", "--set", "m_validation=6"]


def eber(*arguments: str, cwd: Path, status: int = 0) -> str:
    """What a command prints on both streams; its exit status is checked."""
    command = [sys.executable, "-c", "from eber.cli import main; main()", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == status, output
    assert "Traceback" not in output
    return output


def test_reproduce_parametric_leaves_everything_it_promises(tmp_path: Path) -> None:
    command = ("reproduce", "parametric", "--seeds", "1", *SMALL, "--out")
    output = eber(*command, "out", cwd=tmp_path)
    for method in ("Bayes-x", "EBER", "ERM", "IRM", "V-REx", "Fishr"):
        assert method in output
    folder = tmp_path / "out"
    for name in ("cells.csv", "timings.csv", "table.md", "table.tex", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    for name in ("label-probability", "environment-probability"):
        assert (folder / "figures" / f"{name}.png").exists()
        assert (folder / "figures" / f"{name}.svg").exists()
    cells = pd.read_csv(folder / "cells.csv")
    assert list(cells.columns) == ["experiment", "setting", "method", "variant", "seed", "metric", "value"]
    assert set(cells["seed"]) == {0}
    weights = cells[cells["metric"] == "penalty_weight"]
    assert set(weights["method"]) == {"IRM", "V-REx", "Fishr"}
    assert set(weights["value"]) <= {0.1, 1.0, 10.0}

    assert "6 cells, 6 of them finished before" in eber(*command, "out", cwd=tmp_path)
    again = ("reproduce", "parametric", "--seeds", "1", "--methods", "EBER,V-REx", *SMALL, "--out")
    eber(*again, "other", cwd=tmp_path)
    other = pd.read_csv(tmp_path / "other" / "cells.csv")
    same = cells[cells["method"].isin(["EBER", "V-REx"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(other, same, check_exact=True)


def test_every_ablation_and_setting_runs(tmp_path: Path) -> None:
    """One seed, two settings, all ablations, small enough to be quick."""
    small = ["--set", "n=12", "--set", "epochs=1", "--set", "m_test=6", "--set", "m_validation=6"]
    settings = ["--settings", "m=12,d=50"]
    eber("reproduce", "parametric", "--seeds", "1", "--out", "out", "--ablation", *settings, *small, cwd=tmp_path)
    cells = pd.read_csv(tmp_path / "out" / "cells.csv")
    assert set(cells["setting"]) == {"m=12", "d=50"}
    variants = {label.split(":")[0] for label in {*cells["variant"], *cells["method"]} if ":" in label}
    assert variants == {"2", "3", "EBER 4", "EBER 5", "EBER 6", "EBER 7"}
    assert cells["value"].notna().all()


def test_reproduce_motivating_draws_figure_3(tmp_path: Path) -> None:
    small = ["--set", "repetitions=5", "--set", "draws=2000", "--set", "grid_points=50"]
    eber("reproduce", "motivating", "--seeds", "1", "--out", "out", *small, cwd=tmp_path)
    assert (tmp_path / "out" / "figures" / "figure-3.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "nothing"], "There is no experiment 'nothing'"),
        (["reproduce", "parametric", "--set", "roh=1"], "rho"),
        (["reproduce", "parametric", "--set", "n=many"], "whole number"),
        (["reproduce", "parametric", "--methods", "EBRE"], "EBRE"),
        (["reproduce", "parametric", "--sensitivity", "--settings", "m=12"], "not both"),
        (["data", "fetch", "nothing"], "there is no data set 'nothing'"),
        (["data", "verify", "--data", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_status_2(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["eber", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert sentence in " ".join(output.split())
    assert len([line for line in output.splitlines() if line.startswith("eber:")]) == 1
    assert not any(tmp_path.iterdir()), "nothing is left behind"


def test_data_verify_knows_the_real_files(data_dir: Path, tmp_path: Path) -> None:
    output = eber("data", "verify", "--data", str(data_dir), cwd=tmp_path)
    assert "checksum wrong" not in output
    assert "checksum right: sepsis/physionet2019_training.parquet" in output


def test_version_and_data_list(tmp_path: Path) -> None:
    assert eber("--version", cwd=tmp_path).startswith("eber 0.")
    assert "microbiome" in eber("data", "list", cwd=tmp_path)
