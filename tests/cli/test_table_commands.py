"""What a new user types works at once, and what goes wrong ends in one sentence."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.compare.methods import Effort
from tests.browser import assert_shown_and_printed, needs_browser
from tests.command_line import eber

NAMES = ["--label", "sepsis", "--environment", "hospital"]


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hospitals of the example, few patients each, one of them with a name that HTML must not swallow."""
    from eber.datasets.hospitals import draw_hospitals

    table = draw_hospitals(400)
    table = table[table["hospital"].isin(["Ashford", "Birchwood", "Dunmore"])]
    table["hospital"] = table["hospital"].replace("Ashford", "<b>Ash & ford</b>")
    table["lactate"] = table["lactate"].replace("0.9", "<0.9")
    path = tmp_path_factory.mktemp("cli") / "hospitals.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def compared(hospitals: Path) -> Path:
    """The output folder of a comparison."""
    out = hospitals.parent / "out"
    with pytest.MonkeyPatch.context() as patch:
        methods = "eber,v-rex,logistic regression,gradient boosting"
        assert eber(patch, "compare", hospitals, *NAMES, "--quick", "--methods", methods, "--out", out) == 0
    return out


def test_the_example_is_written_whole_and_not_over_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hospitals.csv"
    assert eber(monkeypatch, "example", path) == 0
    table = pd.read_csv(path)
    assert table["hospital"].nunique() == 8
    assert table["lactate"].isna().any()
    new = pd.read_csv(tmp_path / "new_hospital.csv")
    assert list(new.columns) == [name for name in table.columns if name != "sepsis"]
    assert not set(new["hospital"]) & set(table["hospital"])
    assert not set(new["patient_id"]) & set(table["patient_id"])
    assert eber(monkeypatch, "example", path) == 2
    assert "exists" in capsys.readouterr().err
    assert eber(monkeypatch, "example", path, "--force", "--seed", 1) == 0
    assert not pd.read_csv(path).equals(table)


def test_the_example_is_written_with_its_new_hospital_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "new_hospital.csv"
    mine.write_text("mine")
    assert eber(monkeypatch, "example", tmp_path / "hospitals.csv") == 2
    assert "new_hospital.csv exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["new_hospital.csv"]
    assert mine.read_text() == "mine"
    assert eber(monkeypatch, "example", mine, "--force") == 2
    assert mine.read_text() == "mine"
    mine.unlink()
    written = []

    def full(self: Path, content: bytes) -> int:
        written.append(self)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        return write_bytes(self, content)

    write_bytes = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    assert eber(monkeypatch, "example", tmp_path / "hospitals.csv") == 2
    assert len(written) == 2
    assert not list(tmp_path.iterdir())


def test_fit_and_predict(
    hospitals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, answers = tmp_path / "model", tmp_path / "p.parquet"
    assert eber(monkeypatch, "fit", hospitals, *NAMES, "--quick", "--out", model, "--drop", "sex,ward") == 0
    card = (model / "card.md").read_text()
    assert "| Birchwood |" in card
    assert "'ward' is not used: left out as you asked" in card
    facts = json.loads((model / "table.json").read_text())["content"]["card"]
    table = pd.read_csv(hospitals)
    assert facts["data"]["sha256"] == hashlib.sha256(hospitals.read_bytes()).hexdigest()
    sizes = {entry["name"]: entry["rows"] for entry in facts["data"]["environments"]}
    assert sizes == table["hospital"].value_counts().to_dict()
    assert facts["settings"]["random_state"] == 0
    assert {"eber", "python", "torch", "numpy"} <= set(facts["versions"])
    assert {entry["held_out"] for entry in facts["held_out_scores"]} == set(table["hospital"])
    assert all(0 < entry["nll"] < 5 for entry in facts["held_out_scores"])
    at_the_start = capsys.readouterr().err.splitlines()[:2]
    assert at_the_start[0].startswith("Classes of 'sepsis' with their rows: 0 (")
    assert at_the_start[0].endswith("1 is the positive one.")
    assert at_the_start[1].startswith("Environments of 'hospital' with their rows: ")
    assert eber(monkeypatch, "predict", model, hospitals, "--out", answers, "--adapt", "--keep", "age") == 0
    said = capsys.readouterr().out
    for words in ("Estimated mixture", "Likelihood gain", "sharpness of p(e|x)", "effective sample size", "trust"):
        assert words in said
    predicted = pd.read_parquet(answers)
    assert predicted["age"].tolist() == table["age"].astype(str).tolist()
    assert {"age", "patient_id", "predicted", "p(0)", "p(1)", "z1", "p(environment Dunmore)"} <= set(predicted)


def test_named_features_leave_the_patients_their_names_and_one_row_is_one_row(
    hospitals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, one, answers = tmp_path / "model", tmp_path / "one.csv", tmp_path / "p.csv"
    options = ["--quick", "--no-scores", "--features", "age,heart_rate,ward", "--out", model]
    assert eber(monkeypatch, "fit", hospitals, *NAMES, *options) == 0
    assert "'patient_id' is not used: not among the features you named" in capsys.readouterr().err
    pd.read_csv(hospitals).head(1).assign(age=30_000, ward="corridor", patient_id="=1+1").to_csv(one, index=False)
    assert eber(monkeypatch, "predict", model, one, "--out", answers, "--adapt") == 0
    assert pd.read_csv(answers)["patient_id"].tolist() == ["'=1+1"]
    said = capsys.readouterr().out
    for words in (
        "Column 'ward': 1 of 1 row has a value that the fit has not seen, such as 'corridor'",
        "Column 'age': 1 of 1 row lies beyond anything in training (",
        "1 cell begins as a formula does",
        "Adapted to 1 row.",
        "1 row is few for 3 environments",
        "predictions for 1 row.",
    ):
        assert words in said


def test_the_card_names_how_settings_were_chosen_and_which(
    hospitals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eber.compare.methods.THOROUGH", Effort(4, 2))
    options = ["--method", "irm", "--no-scores", "--out", tmp_path / "model"]
    assert eber(monkeypatch, "fit", hospitals, *NAMES, *options) == 0
    card = (tmp_path / "model" / "card.md").read_text()
    assert "by NLL in training environments that are left out, 2 folds of them at most" in card
    assert re.search(
        r"- kept by the search: \\\[\{'penalty_weight': 10?0?\.0, ('featurizer': 'linear', )?'weight_decay': [03]\.0\}",
        card,
    )
    assert eber(monkeypatch, "fit", hospitals, *NAMES, *options, "--quick") == 0
    assert "Settings are fixed and nothing is tuned (--quick)" in (tmp_path / "model" / "card.md").read_text()


def test_compare_leaves_scores_and_a_page(compared: Path) -> None:
    cells = pd.read_csv(compared / "cells.csv")
    assert set(cells["setting"]) == {"<b>Ash & ford</b>", "Birchwood", "Dunmore"}
    assert set(cells["method"]) == {"EBER", "V-REx", "Logistic regression", "Gradient boosting"}
    assert np.isfinite(cells.loc[cells["metric"] == "nll", "value"]).all()


def test_the_page_answers_in_order_and_asks_for_nothing(compared: Path) -> None:
    page = (compared / "report.html").read_text()
    questions = re.findall(r"<h2>(.*?)</h2>", page)
    assert questions == [
        "Which method should I use, and how sure is that?",
        "How will it do in a new environment?",
        "Can I trust its probabilities?",
        "How far off may it be in a new environment?",
        "Does it help to act on it, and from which probability on?",
        "Which columns matter, and do they matter everywhere?",
        "How many labels of a new environment buy how much?",
        "Should I adapt it to a new environment?",
        "Which environments resemble each other?",
        "Where does uncertainty come from?",
        "What is suspicious in the data?",
        "What was compared",
        "Words of this page",
    ]
    slots = re.findall(r'<div class="chart" id="(.*?)" role="img" aria-label=".+?"', page)
    calibration = [f"chart-calibration-{j}" for j in range(4)]
    assert slots == [
        "chart-ranking",
        "chart-folds",
        *calibration,
        "chart-decision",
        "chart-importance",
        "chart-importance-map",
        "chart-resemblance",
        "chart-latent",
        "chart-uncertainty",
    ]
    assert page.count("<details>") == len(slots) - 1, "every chart has its numbers beside it; the ranking is a table"
    assert "&lt;b&gt;Ash &amp; ford&lt;/b&gt;" in page
    assert "<b>Ash" not in page
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="([^"#][^"]*)"', own)
    assert "default-src 'none'" in page


def test_each_section_begins_with_its_answer(compared: Path) -> None:
    page = (compared / "report.html").read_text()
    answers = re.findall(r'</h2>\n<p class="lead">(.*?)</p>', page)
    assert len(answers) == 11
    for answer, says in zip(
        answers,
        (
            "Use |tie",
            r"(?i)19 of 20 new environments",
            "ECE",
            "cannot be said from 3 held-out environments",
            r"held-out environments together|at no threshold",
            "shuffled|no single column",
            "label|cannot be said from 3 held-out environments",
            "better in . of 3 held-out environments",
            r"entropy",
            r"disagreement between",
            "found|finding",
        ),
        strict=True,
    ):
        assert re.search(says, answer), answer


def test_the_page_says_how_detection_limits_were_read(compared: Path) -> None:
    page = (compared / "report.html").read_text()
    assert re.search(r"lactate.{1,20}: \d+ of \d+ rows have a detection limit such as .{1,20}, which is read as", page)


def test_a_second_run_computes_nothing_and_report_writes_the_same_page(
    compared: Path, hospitals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (compared / "report.html").read_text()
    (compared / "report.html").unlink()
    assert eber(monkeypatch, "report", compared) == 0
    assert (compared / "report.html").read_text() == before
    finished = {path: path.stat().st_mtime_ns for path in (compared / "cells").iterdir()}
    arguments = ["compare", hospitals, *NAMES, "--quick", "--methods", "gradient boosting", "--out", compared]
    assert eber(monkeypatch, *arguments, "--metric", "auroc") == 0
    assert {path: path.stat().st_mtime_ns for path in (compared / "cells").iterdir()} == finished


@needs_browser
def test_a_browser_shows_and_prints_it_without_complaint(compared: Path, tmp_path: Path) -> None:
    assert_shown_and_printed(compared / "report.html", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "TABLE", "--label", "sepsys", "--environment", "hospital"], "Did you mean 'sepsis'"),
        (["compare", "nowhere.csv", *NAMES], "There is no file"),
        (["compare", "TABLE", *NAMES, "--methods", "magic"], "no method 'magic'"),
        (["compare", "TABLE", *NAMES, "--metric", "magic"], "no metric"),
        (["compare", "TABLE", "--label", "sepsis", "--environment", "country"], "needs at least two"),
        (["compare", "TABLE", "--label", "sepsis", "--environment", "patient_id"], "names rows, not environments"),
        (["compare", "TABLE", "--label", "sepsis", "--environment", "hospital", "--drop", "nothing"], "no column"),
        (["predict", "nowhere", "TABLE", "--out", "p.csv"], "holds no model"),
        (["predict", "nowhere", "TABLE", "--out", "p.xlsx"], "holds no model"),
        (["report", "nowhere"], "holds no results"),
    ],
)
def test_bad_input_ends_in_one_sentence(
    hospitals: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert eber(monkeypatch, *[str(hospitals) if text == "TABLE" else text for text in arguments]) == 2
    captured = capsys.readouterr().err
    assert says in captured
    assert "Traceback" not in captured


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_a_handful_of_rows_ends_in_a_sentence_or_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: int
) -> None:
    path = tmp_path / "tiny.csv"
    path.write_text(
        "site,x,y\n" + "\n".join(f"s{j % 2},{j}.5,{j // 2 % 2 if rows > 2 else j}" for j in range(rows)) + "\n"
    )
    assert eber(monkeypatch, "compare", path, "--label", "y", "--environment", "site") == 2
    assert "No environment can be held out" in capsys.readouterr().err
