"""The pictures of the guide: the marginal rule on one row, and when environments can and cannot be dealt with.

Each is computed exactly, on a grid, from a latent z that is normal in each environment, x = z + noise, and p(y=1|z).
``make figures`` writes them into docs/figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from eber.report.figures import INK, PALETTE, style

Array = NDArray[np.float64]
Z = np.linspace(-14, 14, 1401)
NEW = "#8a8f98"


def steep(z: Array) -> Array:
    """p(y=1|z) that stays: the higher z, the more probable."""
    return expit(3 * z)


def turned(z: Array) -> Array:
    """A p(y=1|z) of another kind: the higher z, the less probable."""
    return expit(-3 * z)


@dataclass(frozen=True)
class Place:
    """An environment: the normal distribution of z in it, and its p(y=1|z)."""

    name: str
    mean: float
    spread: float = 0.8
    label: Callable[[Array], Array] = steep

    def density(self, x: Array, noise: float) -> Array:
        """p(x|e), (n,)."""
        return norm.pdf(x, self.mean, np.hypot(self.spread, noise))

    def rule(self, x: Array, noise: float) -> Array:
        """p(y=1|x,e) = ∫ p(y=1|z) p(z|x,e) dz, (n,)."""
        weights = norm.pdf(x[:, None], Z, noise) * norm.pdf(Z, self.mean, self.spread)  # (n, grid)
        return (weights @ self.label(Z)) / weights.sum(1)


def marginal(places: list[Place], x: Array, noise: float) -> tuple[Array, Array]:
    """p(e|x) of environments of one size, (n, m), and p(y=1|x) = sum_e p(e|x) p(y=1|x,e), (n,)."""
    densities = np.stack([place.density(x, noise) for place in places], 1)
    p_e = densities / densities.sum(1, keepdims=True)
    return p_e, (p_e * np.stack([place.rule(x, noise) for place in places], 1)).sum(1)


def marginal_rule() -> Figure:
    """Three hospitals and a new row, in three panels."""
    places, noise = [Place("A", -2.2), Place("B", 0.4), Place("C", 2.6)], 1.4
    at = np.array([0.9])
    x = np.linspace(-6, 6.5, 300)
    p_e, p_y = marginal(places, at, noise)
    rules = np.array([place.rule(at, noise)[0] for place in places])
    with style():
        figure = Figure(figsize=(9.6, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for place, colour in zip(places, PALETTE, strict=False):
            left.plot(x, place.density(x, noise), color=colour)
            left.fill_between(x, place.density(x, noise), color=colour, alpha=0.15)
            left.text(place.mean, place.density(np.array([place.mean]), noise)[0] + 0.008, place.name, ha="center")
        left.axvline(at[0], color=INK, linestyle="--")
        left.annotate("a new row x", (at[0], 0.33), (5, 0), textcoords="offset points", fontsize="small", va="top")
        left.set(title="training hospitals", yticks=[], xlabel="x", ylim=(0, 0.34))
        names = [place.name for place in places]
        for axes, values, title in (
            (middle, p_e[0], "how plausible each is: p(e|x)"),
            (right, rules, "what each would say: p(y|x,e)"),
        ):
            shown = [f"{name}\n{value:.2f}" for name, value in zip(names, values, strict=True)]
            axes.bar(shown, values, color=PALETTE[:3], width=0.6)
            axes.set(title=title, ylim=(0, 1.12), yticks=[0, 0.5, 1])
        right.axhline(p_y[0], color=INK, linestyle="--")
        right.text(-0.32, p_y[0] + 0.02, f"weighted mean\np(y|x) = {p_y[0]:.2f}", fontsize="small", ha="left")
    return figure


def _case(train: list[Place], new: Place, noise: float, title: str, said: str) -> Figure:
    """Densities above, rules below: training environments in colours, their marginal rule, and the new environment."""
    x = np.linspace(-6, 6, 300)
    with style():
        figure = Figure(figsize=(4.8, 4.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.5])
        for place, colour in zip(train, PALETTE, strict=False):
            above.plot(x, place.density(x, noise), color=colour, label=place.name)
            below.plot(x, place.rule(x, noise), color=colour, linewidth=1)
        above.fill_between(x, new.density(x, noise), color=NEW, alpha=0.35, label=new.name)
        below.plot(x, marginal(train, x, noise)[1], color=INK, linewidth=2.2, label="marginal rule of A, B and C")
        seen = new.density(x, noise) > 0.03  # where the new environment has rows
        own, look = new.rule(x[seen], noise), {"color": NEW, "linewidth": 3, "linestyle": "--"}
        below.plot(x[seen], own, label="the new environment's own rule", **look)
        above.set(yticks=[], ylabel="p(x|e)", title=f"{title}: {said}")
        below.set(ylim=(-0.03, 1.03), yticks=[0, 0.5, 1], ylabel="p(y=1|x)", xlabel="x")
        figure.legend(fontsize="small", loc="outside lower center", frameon=False, ncols=3)
    return figure


def case_between() -> Figure:
    """The new environment lies among the training environments."""
    train = [Place("A", -2.6), Place("B", 0.0), Place("C", 2.6)]
    return _case(train, Place("new", 1.2), 0.8, "among the others", "the marginal rule is not far")


def case_alike() -> Figure:
    """Environments do not differ."""
    train = [Place("A", -0.15), Place("B", 0.0), Place("C", 0.15)]
    return _case(train, Place("new", 0.05), 1.2, "all alike", "one rule for all")


def case_beyond() -> Figure:
    """The new environment lies beyond all others."""
    train = [Place("A", -4.2), Place("B", -2.8), Place("C", -1.6)]
    return _case(train, Place("new", 2.4), 2.0, "beyond the others", "no mixture of them gets there")


def case_other_labels() -> Figure:
    """In the new environment the label means something else."""
    train = [Place("A", -2.6), Place("B", 0.0), Place("C", 2.6)]
    new = Place("new", 0.6, label=turned)
    return _case(train, new, 1.2, "p(y|z) has changed", "nothing in x shows it")


PICTURES = {
    "marginal-rule": marginal_rule,
    "case-between": case_between,
    "case-alike": case_alike,
    "case-beyond": case_beyond,
    "case-other-labels": case_other_labels,
}


def main(folder: Path = Path(__file__).parent / "figures") -> None:
    """Write all of them."""
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        figure = draw()
        with style():  # on white, since a page of documentation may be light or dark
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
