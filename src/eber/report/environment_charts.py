"""Charts of what EBER says about environments: which resemble each other, the latent space, and uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eber.displays.strips import strip_heights
from eber.io.text import natural_order
from eber.report.charts import SYMBOLS, Chart, heat_map, label, new_figure, plain, rows_on
from eber.report.figures import PALETTE
from eber.report.held_out import HeldOut

MAX_SHOWN = 40
"""Environments that a heat map can name."""
MAX_PANELS = 12
ROW_HEIGHT = 30
MAX_TITLE = 18
HEAT = ((0.0, "rgba(31,119,214,0.06)"), (1.0, "rgba(31,119,214,0.6)"))
"""Shades of the page's own ground: on all of them its text can be read, in light and dark."""


def resemblance_chart(held: HeldOut) -> Chart | None:
    """Mean p(e|x) of each held-out fold over the training environments; None where there are too many to name."""
    folds = list(held.eber)
    found = {str(name) for arrays in held.eber.values() for name in arrays["environments"]}
    names = sorted(found, key=natural_order)
    if not folds or len(names) > MAX_SHOWN:
        return None
    matrix = np.full((len(folds), len(names)), np.nan)
    for i, arrays in enumerate(held.eber.values()):
        matrix[i, [names.index(str(name)) for name in arrays["environments"]]] = arrays["p_e"]
    nearest = "; ".join(f"{fold} resembles {names[int(np.nanargmax(matrix[i]))]} most" for i, fold in enumerate(folds))
    return heat_map(
        "resemblance",
        matrix,
        rows=folds,
        columns=names,
        titles=("held out", "training environment"),
        value="mean p(e|x)",
        shades=HEAT,
        limits=(0.0, float(np.nanmax(matrix))),
        alternative=f"Mean p(e|x): {nearest}.",
    )


def latent_charts(held: HeldOut, classes: Sequence[str]) -> list[Chart]:
    """Latent coordinates of held-out rows by class: a line for each fold, or for two coordinates and more a panel."""
    if not held.eber:
        return []
    if next(iter(held.eber.values()))["latent"].shape[1] == 1:
        return [_latent_lines(held, classes)]
    return [_latent_panel(held, fold, j, classes) for j, fold in enumerate(list(held.eber)[:MAX_PANELS])]


def uncertainty_chart(held: HeldOut) -> Chart | None:
    """Mean entropy of the predictions for each fold, within and between environments."""
    if not held.eber:
        return None
    folds = list(held.eber)
    within, between = mean_uncertainty(held)
    figure = new_figure(130 + ROW_HEIGHT * len(folds), barmode="stack", bargap=0.35)
    parts = (("within environments: x does not tell y", within), ("between environments: they disagree", between))
    for j, (name, values) in enumerate(parts):
        figure.add_bar(
            x=values,
            y=list(range(len(folds))),
            customdata=[plain(fold) for fold in folds],
            orientation="h",
            name=name,
            marker={"color": PALETTE[j]},
            hovertemplate="%{customdata}: %{x:.3f} nats<extra>" + name.split(":")[0] + "</extra>",
        )
    rows_on(figure, folds)
    figure.update_xaxes(title_text="mean entropy of p(y|x), nats")
    figure.update_layout(legend_traceorder="normal")
    lines = [
        [fold, f"{a:.3f}", f"{b:.3f}", f"{100 * b / max(a + b, 1e-300):.1f} %"]
        for fold, a, b in zip(folds, within, between, strict=True)
    ]
    share = between.sum() / max(within.sum() + between.sum(), 1e-300)
    return Chart(
        "uncertainty",
        figure,
        f"Uncertainty within and between environments for each held-out one; {100 * share:.1f} % lies between.",
        ("Held out", "Within (nats)", "Between (nats)", "Share between"),
        lines,
    )


def mean_uncertainty(held: HeldOut) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean entropy within and between environments, in nats, for each fold of EBER."""
    parts = [[float(arrays[part].mean()) for arrays in held.eber.values()] for part in ("within", "between")]
    return np.array(parts[0]), np.array(parts[1])


def _latent_lines(held: HeldOut, classes: Sequence[str]) -> Chart:
    rng = np.random.default_rng(0)
    figure = new_figure(130 + 40 * len(held.eber))
    lines: list[list[str]] = []
    points: list[list[NDArray[np.float64]]] = [[] for _ in classes]
    for y, (fold, arrays) in enumerate(held.eber.items()):
        z, labels = arrays["latent"][:, 0].astype(np.float64), arrays["label"][arrays["latent_rows"]]
        # Each fold has a fit of its own, whose z may point either way: turned so that higher classes lie right.
        if np.ptp(labels) and np.corrcoef(z, labels)[0, 1] < 0:
            z = np.negative(z)
        for k, name in enumerate(classes):
            mine = z[labels == k]
            height = y + strip_heights(len(mine), k, len(classes), rng)
            points[k].append(np.stack([mine, height], axis=1))
            if len(mine):
                lines.append([fold, name, str(len(mine)), f"{mine.mean():.2f}", f"{mine.std():.2f}"])
    for k, parts in enumerate(points):
        x, height = np.concatenate(parts).T
        figure.add_scatter(x=np.round(x, 3), y=np.round(height, 3), **_dots(k, classes))
    rows_on(figure, list(held.eber))
    figure.update_xaxes(title_text="E[z|x]")
    heads = ("Held out", "Class", "Rows shown", "Mean of E[z|x]", "Standard deviation")
    return Chart("latent", figure, "Latent coordinate of held-out rows by environment and class.", heads, lines)


def _latent_panel(held: HeldOut, fold: str, j: int, classes: Sequence[str]) -> Chart:
    arrays = held.eber[fold]
    z, labels = arrays["latent"].astype(np.float64), arrays["label"][arrays["latent_rows"]]
    title = {"text": label(fold, MAX_TITLE), "font": {"size": 14}, "x": 0, "xref": "paper", "y": 0.98}
    figure = new_figure(250, title=title, margin_t=32, showlegend=False)
    lines = []
    for k, name in enumerate(classes):
        mine = z[labels == k]
        figure.add_scatter(x=np.round(mine[:, 0], 3), y=np.round(mine[:, 1], 3), **_dots(k, classes))
        if len(mine):
            lines.append([name, str(len(mine)), f"{mine[:, 0].mean():.2f}", f"{mine[:, 1].mean():.2f}"])
    figure.update_xaxes(title_text="E[z|x], first")
    figure.update_yaxes(title_text="second")
    heads = ("Class", "Rows shown", "Mean, first", "Mean, second")
    return Chart(f"latent-{j}", figure, f"Two latent coordinates of the rows of {fold} by class.", heads, lines)


def class_marks(classes: Sequence[str]) -> list[dict[str, str]]:
    """The legend of the latent space: each class with its mark and colour."""
    symbols = list(SYMBOLS)
    return [
        {"name": name, "symbol": symbols[(k + 1) % len(symbols)], "colour": PALETTE[k % len(PALETTE)]}
        for k, name in enumerate(classes)
    ]


def _dots(k: int, classes: Sequence[str]) -> dict[str, object]:
    mark = class_marks(classes)[k]
    return {
        "mode": "markers",
        "name": plain(mark["name"]),
        "marker": {"size": 5, "opacity": 0.7, "color": mark["colour"], "symbol": mark["symbol"]},
        "hovertemplate": "%{x:.2f}<extra>" + plain(mark["name"]) + "</extra>",
    }
