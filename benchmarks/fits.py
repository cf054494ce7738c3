"""Cost of training, in units of plain ERM in the same run."""

from __future__ import annotations

import warnings

from benchmarks.contestants import ROWS, literal_steps, make_rows, module_featurizer, own_pass, plain_erm
from benchmarks.measure import Step, least_seconds, peak_mebibytes
from eber import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier

SEEDS = 10
PASSES = 10
STEPS = -(-ROWS // 64)
TOGETHER = f"EBER, one of {SEEDS} seeds together"
TOGETHER_STEPS = 12
LITERAL = {"literal Algorithm 1": False, "literal Algorithm 1, components shared": True}
Figures = dict[str, float]


def passes(m: int) -> Figures:
    """A pass over the data of each contestant, all taking turns."""
    rows = make_rows(m)
    # First, before freed memory lies ready to be used again.
    memory = peak_mebibytes(own_pass(EBERClassifier(), rows, m))
    # Steps of a turn, a pass unless said: turns of similar length have the same chance of being left undisturbed.
    steps = {"EBER": 5 if m >= 1000 else STEPS, TOGETHER: TOGETHER_STEPS, **dict.fromkeys(LITERAL, 1)}
    contestants = {"plain ERM": plain_erm(rows), "EBER": own_pass(EBERClassifier(), rows, m, steps=steps["EBER"])}
    if m == 36:  # few enough for a draw from every environment
        contestants["EBER, exact couplings"] = own_pass(EBERClassifier(coupling="exact"), rows, m)
    if m <= 36:
        contestants |= {
            "EBER, any module as extractor": own_pass(EBERClassifier(featurizer=module_featurizer), rows, m),
            TOGETHER: own_pass(EBERClassifier(), rows, m, SEEDS, TOGETHER_STEPS),
        }
    if m >= 144:
        contestants["EBER, 36 pseudo-environments"] = own_pass(EBERClassifier(pseudo_environments=36), rows, m)
    if m <= 144:
        contestants |= {name: literal_steps(rows, m, 1, sharing) for name, sharing in LITERAL.items()}
    seconds = {
        name: value * STEPS / steps.get(name, STEPS) for name, value in least_seconds(contestants, blocks=30).items()
    }
    if TOGETHER in seconds:
        seconds[TOGETHER] /= SEEDS
    figures = {name: value / seconds["plain ERM"] for name, value in seconds.items() if name != "plain ERM"}
    for name in [name for name in LITERAL if name in figures]:
        figures[f"EBER: times faster than {name}"] = figures[name] / figures["EBER"]
    figures["EBER: most memory of a pass, MiB"] = memory
    return figures


def whole_fits(m: int) -> Figures:
    """`fit` from validation to diagnostics, ten passes, in units of ten passes of plain ERM."""
    rows = make_rows(m)
    X, y, e = (array.numpy() for array in (rows.x, rows.y, rows.e))

    def fit(kind: type[EBERClassifier] | type[ERMClassifier]) -> Step:
        return lambda: kind(epochs=PASSES, random_state=0).fit(X, y, environments=e)

    def plain() -> None:
        one_pass = plain_erm(rows)
        for _ in range(PASSES):
            one_pass()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the labels are noise, and the fit says so
        seconds = least_seconds({"plain": plain, "EBER": fit(EBERClassifier), "ERM": fit(ERMClassifier)}, blocks=6)
    return {f"{name}.fit": seconds[name] / seconds["plain"] for name in ("EBER", "ERM")}


def many_at_once() -> dict[str, Figures]:
    """How much cheaper a fit is with others of its shape at its side."""
    rows, cheaper = make_rows(6), {}
    for kind in (EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier):
        alone, together = own_pass(kind(), rows, 6), own_pass(kind(), rows, 6, SEEDS, TOGETHER_STEPS)
        seconds = least_seconds({"alone": alone, "together": together}, blocks=30)
        cheaper[kind.__name__] = SEEDS * seconds["alone"] / STEPS / (seconds["together"] / TOGETHER_STEPS)
    return {f"times cheaper, {SEEDS} together": cheaper}


def growth() -> dict[str, Figures]:
    """A pass of EBER, in units of the one with 3000 rows, 10 columns, 6 environments, batches of 64, one latent."""
    base = own_pass(EBERClassifier(), make_rows(6), 6)
    others = {
        "12,000 rows": own_pass(EBERClassifier(), make_rows(6, rows=4 * ROWS), 6),
        "100 columns": own_pass(EBERClassifier(), make_rows(6, columns=100), 6),
        "1000 columns": own_pass(EBERClassifier(), make_rows(6, columns=1000), 6),
        "12 environments": own_pass(EBERClassifier(), make_rows(12), 12),
        "24 environments": own_pass(EBERClassifier(), make_rows(24), 24),
        "48 environments": own_pass(EBERClassifier(), make_rows(48), 48),
        "batches of 16": own_pass(EBERClassifier(batch_size=16), make_rows(6), 6),
        "batches of 256": own_pass(EBERClassifier(batch_size=256), make_rows(6), 6),
        "latent dimension 2": own_pass(EBERClassifier(latent_dim=2), make_rows(6), 6),
        "latent dimension 8": own_pass(EBERClassifier(latent_dim=8), make_rows(6), 6),
    }
    seconds = least_seconds({"base": base, **others}, blocks=4)
    return {"times the base": {name: seconds[name] / seconds["base"] for name in others}}
