"""One plain sentence or two for each question of the page, from the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from eber.compare.summary import ComparisonSummary, MethodSummary
from eber.compare.suspicions import Suspicion
from eber.evaluation.intervals import within_range
from eber.evaluation.metrics import Metric, expected_calibration_error
from eber.report.environment_charts import mean_uncertainty
from eber.report.held_out import HeldOut

CHANCE_DRAWS = 20
BEYOND_CHANCE = 1.5
"""An ECE up to so many times what chance alone would show is no sign against a method."""
FLAT = 0.9
"""Of the largest possible entropy of p(e|x): above, x hardly tells environments apart."""
NOT_EBER = "Only EBER can say, and it was not among the methods."


def expectation(summary: ComparisonSummary) -> str:
    """What to expect of the recommended method in a new environment."""
    row, metric = summary.recommended, summary.metric
    scores = _known(row, metric)
    if not scores:
        return f"{metric.label} is not defined in any held-out environment, so this cannot be said."
    mean = metric.format(row.means[metric.name])
    if len(scores) < 3:
        return (
            f"{row.method} had a mean {metric.label} of {mean} over {summary.held_out}: too few to say how it varies."
        )
    low, high = prediction_interval(list(scores.values()), metric)
    order = sorted(scores, key=lambda fold: scores[fold], reverse=bool(metric.higher_is_better))
    best, worst = order[0], order[-1]
    new = "new environments" if summary.alone else "new groups of environments"
    return (
        f"Expect about {mean} ({metric.label}) from {row.method}, and between {metric.format(low)} and "
        f"{metric.format(high)} in 19 of 20 {new}, if they differ as the held-out ones do. It did best in "
        f"{best} ({metric.format(scores[best])}) and worst in {worst} ({metric.format(scores[worst])})."
    )


def prediction_interval(scores: Sequence[float], metric: Metric) -> tuple[float, float]:
    """Where the score of one further environment lies with 95 %, by Student's t, within what the metric can be."""
    values = np.asarray(scores)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) * math.sqrt(1 + 1 / len(values))
    mean = float(values.mean())
    return within_range(metric.name, mean - half), within_range(metric.name, mean + half)


def trust(held: HeldOut) -> str:
    """Whether the recommended method's probabilities can be taken at their word."""
    summary = held.summary
    row = summary.recommended
    ece, chance = row.means["ece"], chance_ece(held, row.method)
    best = min(summary.rows, key=lambda other: other.means["ece"])
    verdict = "As far as these rows can tell, yes" if ece <= BEYOND_CHANCE * chance else "With care"
    other = "" if best is row else f" The best calibrated is {best.method} ({best.means['ece']:.3f})."
    return (
        f"{verdict}: in a held-out environment the probabilities of {row.method} are off by {ece:.3f} on average "
        f"(ECE); with so many rows, chance alone would show about {chance:.3f}.{other}"
    )


def chance_ece(held: HeldOut, method: str) -> float:
    """Mean ECE over folds if labels were drawn from the very probabilities that the method gave."""
    rng = np.random.default_rng(0)
    means = []
    for fold in held.summary.folds:
        for _, proba in held.predictions(method, fold)[:1]:
            cumulative = proba.cumsum(axis=1)[:, :-1]
            classes = np.arange(proba.shape[1])
            drawn = [(cumulative < rng.random((len(proba), 1))).sum(axis=1) for _ in range(CHANCE_DRAWS)]
            means.append(np.mean([expected_calibration_error(labels, proba, classes) for labels in drawn]))
    return float(np.mean(means))


def resemblance(held: HeldOut) -> str:
    """Which environments are alike, or that x cannot say."""
    if not held.eber:
        return NOT_EBER
    m = {fold: len(arrays["p_e"]) for fold, arrays in held.eber.items()}
    shares = [
        float(arrays["environment_entropy"][0]) / math.log(m[fold]) for fold, arrays in held.eber.items() if m[fold] > 1
    ]
    if not shares:
        return "There is one training environment, so there is nothing to compare."
    strongest = max(held.eber, key=lambda fold: float(held.eber[fold]["p_e"].max()))
    arrays = held.eber[strongest]
    nearest, weight = str(arrays["environments"][arrays["p_e"].argmax()]), float(arrays["p_e"].max())
    share = float(np.mean(shares))
    if share > FLAT:
        return (
            f"None clearly: a row hardly tells where it comes from (its p(e|x) keeps {_percent(share)} of the largest "
            f"possible entropy). The nearest pair is {strongest} and {nearest}, which gets {_percent(weight)} of its "
            "rows' weight."
        )
    return (
        f"{strongest} and {nearest} most of all: {nearest} gets {_percent(weight)} of the weight of the rows of "
        f"{strongest}. On average p(e|x) keeps {_percent(share)} of the largest possible entropy; at 100 % a row says "
        "nothing about where it comes from."
    )


def uncertainty(held: HeldOut) -> str:
    """How much of the uncertainty knowing the environment would remove."""
    if not held.eber:
        return NOT_EBER
    within, between = mean_uncertainty(held)
    share = between.sum() / max(within.sum() + between.sum(), 1e-300)
    source = "from the rows themselves" if share < 0.5 else "from disagreement between environments"
    return (
        f"Mostly {source}: {_percent(share)} of EBER's uncertainty is disagreement between environments, which "
        "knowing the environment would remove; the rest is that x does not settle y, which only better features can "
        "change."
    )


def suspicion(found: Sequence[Suspicion]) -> str:
    """How much was found."""
    if found:
        n = len(found)
        return f"{n} {'finding' if n == 1 else 'findings'}, which should be read before any score is believed."
    return (
        "Nothing was found: no identical rows and no known subjects shared between environments, no column that gives "
        "the label or the environment away, no environment far smaller than the others."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share > 0.1 else 1}f} %"


def _known(row: MethodSummary, metric: Metric) -> dict[str, float]:
    return {fold: values[metric.name] for fold, values in row.by_fold.items() if not math.isnan(values[metric.name])}
