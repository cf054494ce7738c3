"""The paper's claims, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator

from eber.experiments.claims import measured, simulation_judges
from eber.experiments.claims.claim import Claim, Finding, Verdict
from eber.experiments.claims.data_claims import data_claims
from eber.experiments.claims.evidence import Evidence
from eber.experiments.claims.judges import Judge
from eber.experiments.claims.simulation_claims import simulation_claims
from eber.experiments.parametric_paper import PAPER

MOTIVATING_COMMAND = "eber reproduce motivating --seeds 10"


def all_claims() -> list[Claim]:
    """Every claim, once."""
    return [*_theory(), *_motivating(), *simulation_claims(), *data_claims(), *_p_values(), *_untestable()]


def _theory() -> Iterator[Claim]:
    yield Claim(
        "lower-bound",
        "The objective is a lower bound of the conditional log-likelihood.",
        "Section 2",
        "an inequality",
        "",
        "",
        measured.objective_is_a_lower_bound,
    )
    yield Claim(
        "theorem-1",
        "The bound is the mean of the environments' own bounds plus a balancing term: L = E[L_e] + R(q).",
        "Theorem 1",
        "an identity",
        "",
        "",
        measured.theorem_is_an_identity,
    )
    yield Claim(
        "algorithm-1",
        "Algorithm 1 maximises an estimate of the lower bound of log p(y|x).",
        "Section 2, Algorithm 1",
        "a lower bound",
        "",
        "",
        measured.algorithm_1_maximises_a_lower_bound,
    )


def _motivating() -> Iterator[Claim]:
    yield Claim(
        "rate",
        "With conditional environment weights the error falls at the rate m^(-1/2).",
        "Proposition 2, Figure 3",
        "slope -1/2",
        "motivating",
        MOTIVATING_COMMAND,
        simulation_judges.rate_of_conditional_weights,
    )
    yield Claim(
        "sufficient-environments",
        "So many environments suffice for an error of at most epsilon at every x with probability 1 - delta.",
        "Proposition 2",
        "(1 - 2 rho_y)^2 kappa^2 log(2/delta) / (2 epsilon^2)",
        "",
        "",
        measured.so_many_environments_suffice,
    )
    yield Claim(
        "biased-limit",
        "With uniform weights the error converges to a biased limit.",
        "Proposition 3, Figure 3",
        "a limit above zero",
        "motivating",
        MOTIVATING_COMMAND,
        simulation_judges.biased_limit_of_uniform_weights,
    )


def _p_values() -> Iterator[Claim]:
    yield Claim(
        "p-values-simulation",
        "The p-values of the nine parametric tables are those of a one-sided t-test with Benjamini-Yekutieli "
        "correction.",
        "Section 5",
        "0.015 at the baseline",
        "",
        "",
        measured.seeds_behind_p_values(
            [f"parametric, {setting}" for setting, table in PAPER.items() if table.p_values], 3, (2, 4, 5, 10)
        ),
    )
    yield Claim(
        "p-values-data",
        "So are those of the four data tables.",
        "Section 5",
        "0.004 on Colored MNIST",
        "",
        "",
        measured.seeds_behind_p_values(["Colored MNIST", "quasars", "microbiome", "sepsis"], 5, (3, 4, 6, 10)),
    )


def _untestable() -> Iterator[Claim]:
    """Sentences that no run can hold or fail."""
    for key, text, place, reason in (
        (
            "no-prior",
            "Unlike other variational approaches, the method does not require a prior to be specified.",
            "Section 6",
            "true by construction: the prior is the mixture of what the networks say of x; what the recipe sets "
            "besides stands in docs/method.md",
        ),
        (
            "assumption",
            "The real data have environments that change the distribution of a latent state and leave p(x|z) and "
            "p(y|z) as they are.",
            "Sections 1 and 5",
            "nobody observes z in them; only in the two simulations is it known",
        ),
    ):
        yield Claim(key, text, place, "no figure", "", "", _untested(reason))


def _untested(reason: str) -> Judge:
    def judge(evidence: Evidence) -> Finding:
        return Finding(Verdict.UNTESTABLE, "–", reason)

    return judge
