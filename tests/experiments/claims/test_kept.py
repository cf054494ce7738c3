"""Evidence outlives the results it came from: kept run by run, the same as they were, refused where it is not whole."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eber.experiments.claims import catalogue, gathering, page
from eber.experiments.claims.claim import Claim
from eber.experiments.claims.evidence import ALL_RIGHT, TAKEN_FOR, Evidence
from eber.experiments.claims.gathering import gather
from eber.experiments.claims.headline import MAIN, SETTINGS
from eber.experiments.claims.kept import (
    FORMAT,
    VERSION,
    EvidenceFileError,
    evidence_file,
    keep,
    read_kept,
)
from eber.experiments.claims.measuring import measure
from eber.experiments.claims.runs import AS_DECLARED, CHANGED, runs_of
from eber.io.checksummed_json import encode_checksummed
from tests.command_line import eber as command
from tests.experiments.claims.made_up import evidence, keep_arrays, results, rights, table

SAID = {"theorem-1", "algorithm-1", "uniform-weights", "parametric-readings"}
"""Claims that the headline asks for, beside those of the tables."""
OTHERS = {"ERM": 0.5, "IRM": 0.51, "V_REx": 0.52, "Fishr": 0.53}
LATITUDE = table("latitude", "nll", EBER=0.21234567, **OTHERS)
LONGITUDE = table("longitude", "nll", EBER=0.3, **OTHERS)


def claims_of(experiment: str) -> list[Claim]:
    return [claim for claim in catalogue.all_claims() if claim.experiment == experiment]


def test_the_page_is_the_same_from_results_and_from_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Scores, agreement, assignment, chosen weights: each judge says of the kept what it says of the measured."""
    taken = {"assigned": np.array([0, 0, 1, 2]), "environments": np.array(["b_q1", "b_q2", "b_q3"])}
    correct = {"EBER": "1100", "ERM": "0011", "IRM": "0111", "V-REx": "1111", "Fishr": "1000"}
    keep_arrays(monkeypatch, {method: {**taken, "correct": rights(row)} for method, row in correct.items()})
    scores = {**LATITUDE, **table("latitude", "accuracy", EBER=0.9, **OTHERS)}
    scores |= {("latitude", name, "penalty_weight"): [1.0, 10.0] for name in ("IRM", "V-REx", "Fishr")}
    measured = evidence("quasar", {**scores, **table("latitude", "ece", EBER=0.05, **OTHERS)})
    keep(measured, tmp_path)
    kept = read_kept(tmp_path, "quasar")
    assert kept == measured
    not_made_up = ("environment-loss", "plain", "longitude")
    claims = [claim for claim in claims_of("quasar") if not any(word in claim.key for word in not_made_up)]
    assert len(claims) > 6
    for claim in claims:
        assert claim.judge(kept) == claim.judge(measured)


def test_runs_are_kept_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run adds its settings, replaces what was kept of them, and leaves the others."""
    runs = iter([evidence("quasar", LATITUDE), evidence("quasar", LONGITUDE), evidence("quasar", LATITUDE)])
    monkeypatch.setattr(
        gathering, "measure_folder", lambda folder, experiment: next(runs) if experiment == "quasar" else None
    )
    kept = tmp_path / "evidence"
    assert set(gather(tmp_path, kept)["quasar"].settings) == {"latitude"}
    both = gather(tmp_path, kept)["quasar"]
    assert list(both.settings) == ["latitude", "longitude"]
    before = evidence_file(kept, "quasar").read_bytes()
    assert gather(tmp_path, kept)["quasar"] == both
    assert evidence_file(kept, "quasar").read_bytes() == before, "the same run leaves the same file"
    assert gather(None, kept) == {"quasar": both}, "no results are needed"


def test_rows_of_one_setting_are_kept_run_by_run(tmp_path: Path) -> None:
    """A run of other rows adds them, one of the same rows replaces them, and one of other parameters starts anew."""
    keep(evidence("quasar", LATITUDE), tmp_path)
    keep(evidence("quasar", {("latitude", "EBER lambda_env=0", "nll"): [0.3, 0.31]}), tmp_path)
    keep(evidence("quasar", {("latitude", "ERM", "nll"): [0.4, 0.41, 0.42]}), tmp_path)
    kept = read_kept(tmp_path, "quasar")
    assert kept is not None
    assert kept.by_seed("latitude", "EBER lambda_env=0", "nll") == {0: 0.3, 1: 0.31}
    assert kept.by_seed("latitude", "ERM", "nll") == {0: 0.4, 1: 0.41, 2: 0.42}
    assert kept.by_seed("latitude", "IRM", "nll") == evidence("quasar", LATITUDE).by_seed("latitude", "IRM", "nll")
    other = results("quasar", {("latitude", "ERM", "nll"): [0.5, 0.6]})
    keep(measure(replace(other, run={**other.run, "overrides": {"epochs": 3}}), "2026-01-31"), tmp_path)
    anew = read_kept(tmp_path, "quasar")
    assert anew is not None
    assert list(anew.settings["latitude"].series) == [("ERM", "main", "nll")]


def test_agreement_is_that_of_all_methods_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of some of them would call rows right by all that the others are wrong on."""
    correct = {"EBER": "1100", "ERM": "0011", "IRM": "0111", "V-REx": "1111", "Fishr": "1000"}
    keep_arrays(monkeypatch, {method: {"correct": rights(row)} for method, row in correct.items()})
    whole, part = dict(LATITUDE), table("latitude", "nll", EBER=0.2, ERM=0.5)
    assert ("EBER", "main", ALL_RIGHT) in evidence("quasar", whole).settings["latitude"].series
    assert ("EBER", "main", ALL_RIGHT) not in evidence("quasar", part).settings["latitude"].series


def test_without_a_place_to_keep_it_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gathering, "measure_folder", lambda folder, experiment: evidence("quasar", LATITUDE))
    assert gather(tmp_path, None)["quasar"] == evidence("quasar", LATITUDE)
    assert not list(tmp_path.iterdir())


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    made_up = evidence("quasar", {("latitude", "EBER", "odd"): [1e-12, -3.5, math.inf, 12345678.0]})
    keep(made_up, tmp_path)
    assert read_kept(tmp_path, "quasar") == made_up
    assert made_up.by_seed("latitude", "EBER", "odd") == {0: 1e-12, 1: -3.5, 2: math.inf, 3: 12345700.0}


def forged(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """Change the content and give it the checksum that belongs to it."""

    def forge(data: bytes) -> bytes:
        content = json.loads(data)["content"]
        change(content)
        return encode_checksummed(content, FORMAT, VERSION)

    return forge


def row(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["settings"]["latitude"]["rows"]["EBER"]["main"]
    return found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data[:-40], "truncated or altered"),
        (lambda data: data.replace(b"0:0.2", b"0:0.1", 1), "checksum does not fit"),
        (lambda data: b"{}", "not a file of the format"),
        (forged(lambda content: content.update(experiment="sepsis")), "is of the experiment 'sepsis'"),
        (forged(lambda content: content["settings"].update({"Mars": {}})), "has no setting 'Mars'"),
        (forged(lambda content: content["settings"]["latitude"].pop("date")), "'date'"),
        (forged(lambda content: content["settings"]["latitude"].update(version=7)), "not described as it should be"),
        (forged(lambda content: row(content).update(nll="0:0.2 1:low")), "not a value for each of several seeds"),
        (forged(lambda content: row(content).update(nll="0:0.2 0:0.3")), "not a value for each of several seeds"),
        (forged(lambda content: row(content).update(nll="")), "not a value for each of several seeds"),
        (forged(lambda content: row(content).update(nll=[0.2])), "not evidence as it is kept"),
        (forged(lambda content: content["settings"]["latitude"].update(rows=["EBER"])), "not evidence as it is kept"),
        (forged(lambda content: content.update(settings=3)), "not evidence as it is kept"),
    ],
)
def test_a_damaged_or_forged_file_is_refused_in_a_sentence(
    change: Callable[[bytes], bytes], sentence: str, tmp_path: Path
) -> None:
    """Neither read nor written over: what was in it may be worth more than what would be."""
    keep(evidence("quasar", LATITUDE), tmp_path)
    path = evidence_file(tmp_path, "quasar")
    damaged = change(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(EvidenceFileError, match=sentence) as raised:
        read_kept(tmp_path, "quasar")
    assert "Take the file as it was committed" in str(raised.value)
    with pytest.raises(EvidenceFileError, match=sentence):
        keep(evidence("quasar", LONGITUDE), tmp_path)
    assert path.read_bytes() == damaged


def test_a_run_of_other_parameters_is_called_that() -> None:
    declared, other = results("quasar", LATITUDE), results("quasar", LATITUDE)
    other = replace(other, run={**other.run, "overrides": {"epochs": 3}})
    said = {run[-1] for run in runs_of({"quasar": measure(declared, "2026-01-31")})}
    assert said == {AS_DECLARED}
    ((name, setting, seeds, version, date, parameters),) = runs_of({"quasar": measure(other, "2026-01-31")})
    assert (name, setting, seeds, version, date) == ("quasar", "latitude", "5", "0.1.0", "2026-01-31")
    assert parameters == CHANGED


def test_rows_of_fewer_seeds_are_counted() -> None:
    scores = {**LATITUDE, ("latitude", "EBER lambda_env=0", "nll"): [0.2, 0.3]}
    ((_, _, seeds, *_),) = runs_of({"quasar": evidence("quasar", scores)})
    assert seeds == "2 to 5"
    taken = {("latitude", "EBER", f"{TAKEN_FOR}b_q5"): [0.2], ("latitude", "EBER", f"{TAKEN_FOR}b_q4"): [0.8, 1.0]}
    ((_, _, seeds, *_),) = runs_of({"quasar": evidence("quasar", {**LATITUDE, **taken})})
    assert seeds == "5", "a seed may take no row for an environment"


def test_evidence_of_no_runs_is_none(tmp_path: Path) -> None:
    assert read_kept(tmp_path, "quasar") is None
    assert gather(tmp_path, tmp_path) == {}
    assert runs_of({"quasar": Evidence("quasar")}) == []
    with pytest.raises(FileNotFoundError, match="give results from which it can be made"):
        gather(None, tmp_path / "nowhere")


def test_the_command_keeps_and_reads_and_refuses_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        page,
        "all_claims",
        lambda: [claim for claim in catalogue.all_claims() if claim.key in {*MAIN, *SETTINGS, *SAID}],
    )
    monkeypatch.chdir(tmp_path)
    keep(evidence("quasar", LATITUDE), tmp_path / "kept")
    assert command(monkeypatch, "claims", "--evidence", "kept", "--out", "page.md") == 0
    assert "| quasar | latitude | 5 | 0.1.0 | 2026-01-31 | as declared |" in (tmp_path / "page.md").read_text()
    evidence_file(tmp_path / "kept", "quasar").write_text("{}")
    assert command(monkeypatch, "claims", "--evidence", "kept") == 2
    assert "not a file of the format" in capsys.readouterr().err
