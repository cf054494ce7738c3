"""The page follows from the results: nothing on it is typed, a missing run is named, and texts stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eber
from eber.experiments.claims import catalogue, headline, page
from eber.experiments.claims.claim import Claim, Finding, Verdict
from eber.experiments.claims.evidence import Evidence
from eber.experiments.claims.page import JudgedClaim, as_markdown, judge_claims
from eber.experiments.data_paper import COLORED_MNIST, MICROBIOME, QUASAR, SEPSIS
from eber.experiments.parametric_paper import PAPER
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.runs.spec import PaperTable
from eber.workflow import claiming, reproducing
from tests.command_line import eber as command
from tests.experiments.claims.made_up import evidence, table

TABLES: dict[str, list[PaperTable]] = {
    "parametric": list(PAPER.values()),
    "colored-mnist": [COLORED_MNIST],
    "quasar": [QUASAR],
    "microbiome": [MICROBIOME],
    "sepsis": [SEPSIS],
}
OTHERS = {"ERM": 0.5, "IRM": 0.5, "V_REx": 0.5, "Fishr": 0.5}


@pytest.fixture
def only_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims that compute something by themselves have tests of their own, and do not compute it here."""
    stand_in = Finding(Verdict.CONFIRMED, "residual 1e-16")
    quick = [
        claim if claim.experiment else replace(claim, judge=lambda evidence: stand_in)
        for claim in catalogue.all_claims()
    ]
    monkeypatch.setattr(page, "all_claims", lambda: quick)


def given(monkeypatch: pytest.MonkeyPatch, **found: Evidence) -> None:
    monkeypatch.setattr(claiming, "gather", lambda results, kept: found)


def test_every_figure_of_the_paper_stands_in_its_tables() -> None:
    """Every number with three decimals that a claim gives as the paper's is printed in a table of its experiment."""
    checked = 0
    for claim in catalogue.all_claims():
        tables = TABLES.get(claim.experiment) or [one for several in TABLES.values() for one in several]
        printed = {
            f"{value:.3f}" for one in tables for row in one.rows.values() for pair in row.values() for value in pair
        } | {text.strip("< ") for one in tables for text in one.p_values.values()}
        printed |= {"0.004"} if claim.key == "sepsis-significance" else set()  # "p < 0.004" is the text's own bound
        for number in re.findall(r"\d+\.\d{3}", claim.paper):
            assert number in printed, claim
            checked += 1
    assert checked > 80


def test_claims_have_different_keys_and_name_settings_that_there_are() -> None:
    claims = catalogue.all_claims()
    assert len({claim.key for claim in claims}) == len(claims) > 60
    assert all(claim.text.endswith(".") and claim.place and claim.paper for claim in claims)
    for claim in claims:
        assert bool(claim.experiment) == bool(claim.command)
        if claim.experiment:
            assert f"eber reproduce {claim.experiment} " in claim.command
            find_experiment(claim.experiment)


@pytest.mark.usefixtures("only_quick")
def test_what_a_claim_says_follows_from_the_results() -> None:
    """The same claim, other results, another verdict."""
    verdicts = []
    for eber_nll in (0.2, 0.7):
        made_up = evidence("parametric", table("baseline", "nll", EBER=eber_nll, **OTHERS))
        judged = {one.claim.key: one.finding for one in judge_claims({"parametric": made_up})}
        assert f"{eber_nll:.3f}" in judged["parametric-nll"].ours
        verdicts.append(judged["parametric-nll"].verdict)
    assert verdicts == [Verdict.CONFIRMED, Verdict.NOT_CONFIRMED]


@pytest.mark.usefixtures("only_quick")
def test_a_missing_run_is_named_with_its_command() -> None:
    made_up = evidence("parametric", table("baseline", "nll", EBER=0.2, **OTHERS))
    judged = {one.claim.key: one for one in judge_claims({"parametric": made_up})}
    for key in ("sepsis-auroc", "parametric-m=12-nll", "uniform-weights"):
        finding = judged[key].finding
        assert finding.verdict is Verdict.MISSING
        assert finding.evidence.endswith(f"run: {judged[key].claim.command}")
    assert "'m=12'" in judged["parametric-m=12-nll"].finding.evidence
    assert judged["overall"].finding.verdict is Verdict.MISSING


def as_findings(verdicts: Mapping[str, Verdict]) -> dict[str, Finding]:
    return {key: Finding(verdict, "") for key, verdict in verdicts.items()}


def all_main(verdict: Verdict, **others: Verdict) -> dict[str, Verdict]:
    keys = {claim.key for claim in catalogue.all_claims()}
    assert set(headline.MAIN) | set(headline.SETTINGS) | set(headline.PLAIN) < keys
    return {**dict.fromkeys(keys, Verdict.MISSING), **dict.fromkeys(headline.MAIN, verdict), **others}


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (all_main(Verdict.CONFIRMED), Verdict.CONFIRMED),
        (all_main(Verdict.CONFIRMED, **{"quasar-nll": Verdict.CONDITIONAL}), Verdict.CONDITIONAL),
        (all_main(Verdict.CONFIRMED, **{"quasar-nll": Verdict.NOT_CONFIRMED}), Verdict.NOT_CONFIRMED),
        (all_main(Verdict.CONFIRMED, **{"quasar-nll": Verdict.MISSING}), Verdict.MISSING),
    ],
)
def test_the_claim_over_all_experiments_follows_from_each(verdicts: dict[str, Verdict], overall: Verdict) -> None:
    assert headline.over_all_experiments(as_findings(verdicts))[1].verdict is overall


@pytest.mark.parametrize(
    ("behind", "verdict"),
    [((), Verdict.CONFIRMED), (("d=1000",), Verdict.CONDITIONAL), (("d=1000", "d=100"), Verdict.NOT_CONFIRMED)],
)
def test_best_overall_in_the_sensitivity_settings_bears_one_exception(
    behind: tuple[str, ...], verdict: Verdict
) -> None:
    settings = dict.fromkeys(headline.SETTINGS, Verdict.CONFIRMED)
    settings |= {f"parametric-{setting}-nll": Verdict.NOT_CONFIRMED for setting in behind}
    _, found = headline.over_all_settings(as_findings(all_main(Verdict.CONFIRMED, **settings)))
    assert found.verdict is verdict
    assert all(setting in found.evidence for setting in behind)


def test_the_headline_says_where_it_is_best_ahead_and_behind() -> None:
    verdicts = all_main(
        Verdict.CONFIRMED,
        **{
            "quasar-nll": Verdict.CONDITIONAL,
            "colored-mnist-nll": Verdict.NOT_CONFIRMED,
            "parametric-d=1000-nll": Verdict.NOT_CONFIRMED,
            "theorem-1": Verdict.CONFIRMED,
            "algorithm-1": Verdict.NOT_CONFIRMED,
        },
    )
    findings = as_findings(verdicts)
    findings["microbiome-nll"] = Finding(Verdict.CONFIRMED, "", "", "NLL 0.677 against 0.754")
    findings["microbiome-substantial"] = Finding(Verdict.CONDITIONAL, "0.233 over Fishr; the paper's 0.599 over Fishr")
    findings["microbiome-plain-nll"] = Finding(Verdict.NOT_CONFIRMED, "")
    findings["sepsis-auroc"] = Finding(Verdict.NOT_CONFIRMED, "", level=True)
    first, plain, lead, floor, second, third, last = headline.headline(findings)
    assert plain.startswith("In the paper's plain form")
    assert plain.endswith("EBER is behind another method on the microbiome.")
    assert lead == (
        "The recipe's lead is less than half of the paper's on the microbiome "
        "(0.233 over Fishr; the paper's 0.599 over Fishr)."
    )
    assert floor == "No model at all is better than EBER on the microbiome (NLL 0.677 against 0.754)."
    assert first == (
        "With this library's recipe, in the metric that the paper tests, EBER is significantly better than every other "
        "method on the parametric simulation and the microbiome; it is ahead, but not of all significantly, on "
        "quasars; it is behind another method, by no more than chance may make, on sepsis; it is behind another method "
        "on Colored MNIST."
    )
    assert second.endswith("EBER is behind another method on d=1000.")
    assert third == "Theorem 1 holds and Algorithm 1 read to the letter does not maximise a lower bound."
    assert re.fullmatch(r"\d+ claims wait for a run, which their rows name\.", last)


def test_markdown_is_one_table_in_which_texts_are_texts() -> None:
    claim = Claim("odd", "a|b *c*\n<script>", "p. 1", "`x`", "", "", lambda evidence: finding)
    finding = Finding(Verdict.UNTESTABLE, "[link](x)", "e_1\\|")
    keys = dict.fromkeys([*headline.MAIN, *headline.SETTINGS], Verdict.CONFIRMED)
    others = dict.fromkeys(["theorem-1", "uniform-weights", "algorithm-1", "parametric-readings"], Verdict.CONFIRMED)
    judged = [
        JudgedClaim(claim, finding),
        *(
            JudgedClaim(Claim(key, "t.", "p", "f", "", "", lambda evidence: finding), Finding(verdict, "o"))
            for key, verdict in {**keys, **others}.items()
        ),
    ]
    text = as_markdown(judged, {})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows} == {len(page.HEAD) + 1}
    assert rows[2].startswith(r"| a\|b \*c\* \<script\> | p. 1 | \`x\` | \[link\](x) | **cannot be tested** | e\_1")
    assert text.startswith(
        "# The paper, claim by claim\n\n- With this library's recipe, in the metric that the paper tests, EBER is"
    )


@pytest.mark.usefixtures("only_quick")
def test_the_command_prints_80_columns_and_writes_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, parametric=evidence("parametric", table("baseline", "nll", EBER=0.2, **OTHERS)))
    assert command(monkeypatch, "claims", tmp_path, "--out", tmp_path / "page.md") == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    assert "CONFIRMED: Parametric simulation: EBER has the lowest NLL of all methods." in printed
    assert (tmp_path / "page.md").read_text() == eber.claims(tmp_path).markdown
    assert eber.claims(tmp_path).verdicts["parametric-nll"] == "confirmed"
    assert "<table" in eber.claims(tmp_path)._repr_html_()


def test_a_folder_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "claims", tmp_path / "nothing") == 2
    assert "give the one that holds the results of eber reproduce all" in capsys.readouterr().err


@pytest.mark.usefixtures("only_quick")
def test_all_experiments_end_in_an_index_that_leads_to_their_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Written when the last experiment is done, and not before."""
    seen = []

    def reproduced(experiment: Any, folder: Path, **options: Any) -> str:
        folder.mkdir(parents=True)
        (folder / "report.html").write_text("a page")
        seen.append((tmp_path / "index.html").exists())
        return str(experiment.name)

    given(monkeypatch, parametric=evidence("parametric", table("baseline", "nll", EBER=0.2, **OTHERS)))
    monkeypatch.setattr(reproducing, "_reproduce", reproduced)
    experiments: Iterator[Any] = eber.reproduce_all(out=tmp_path, data=tmp_path)
    assert list(experiments) == list(EXPERIMENTS)
    assert not any(seen)
    index = (tmp_path / "index.html").read_text()
    for name in EXPERIMENTS:
        assert f'href="{name}/report.html"' in index
    assert "EBER has the lowest NLL of all methods." in index
    assert (tmp_path / "claims.md").read_text() == eber.claims(tmp_path).markdown
