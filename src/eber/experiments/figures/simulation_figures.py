"""Figures of the two simulations with known answers: the motivating example and the parametric simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eber.datasets.motivating import MotivatingResult
from eber.datasets.parametric import ParametricParameters
from eber.datasets.parametric_oracle import ParametricOracle
from eber.report.figures import INK, PALETTE, style

Predictor = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def motivating_figure(result: MotivatingResult) -> Figure:
    """Figure 3 of the paper: conditional weights, the two approximations of p(z=1|x), and their errors against m."""
    with style():
        figure = Figure(figsize=(12, 3.6))
        weights, approximation, errors = figure.subplots(1, 3)

        for x, p_e in zip(result.x_weights, result.weights, strict=True):
            weights.plot(result.pi, p_e, marker="o", markersize=4, linewidth=1, label=f"$x={x:g}$")
        weights.axhline(1 / len(result.pi), color="grey", linewidth=1, linestyle=":", label="uniform")
        weights.set(
            xlabel=r"$\pi_{e_j}$",
            ylabel=r"$p(e_j\mid x)$",
            title=f"Conditional weights, $m={len(result.pi)}$ environments",
        )
        weights.set_ylim(bottom=0)
        weights.legend()

        approximation.plot(result.x, result.population, color=INK, label="population")
        approximation.plot(result.x, result.conditional, color=PALETTE[0], linestyle="--", label="conditional weights")
        approximation.plot(result.x, result.uniform, color=PALETTE[1], linestyle="-.", label="uniform weights")
        approximation.set(xlabel="$x$", ylabel=r"$p(z=1\mid x)$", title="Approximations of the population target")
        approximation.legend()

        _convergence_panel(errors, result)
    return figure


def _convergence_panel(axes: Axes, result: MotivatingResult) -> None:
    """Mean error over the repetitions, with their quartiles."""
    convergence = result.convergence
    m = convergence.m
    for error, colour, marker, label in (
        (convergence.conditional, PALETTE[0], "o", "conditional weights"),
        (convergence.uniform, PALETTE[1], "s", "uniform weights"),
    ):
        low, high = np.quantile(error, [0.25, 0.75], axis=0)
        axes.fill_between(m, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(m, error.mean(axis=0), color=colour, marker=marker, markersize=4, label=label)
    rate = convergence.conditional.mean(axis=0)[0] * np.sqrt(m[0] / m)
    axes.plot(m, rate, color="grey", linestyle=":", label="$m^{-1/2}$")
    axes.axhline(convergence.uniform_limit, color=INK, linewidth=1, linestyle="--", label="limit, uniform weights")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="number of environments $m$",
        ylabel=r"$\sup_x|\hat p(y=1\mid x)-p(y=1\mid x)|$",
        title=f"Mean and quartiles of {len(convergence.conditional)} repetitions",
    )
    axes.set_ylim(bottom=0.2 * convergence.conditional.mean(axis=0).min())
    axes.legend(fontsize="small", loc="lower left")


def label_probability_figure(oracle: ParametricOracle, predictors: Mapping[str, Predictor]) -> Figure:
    """p(y=1|x) of the parametric simulation: Bayes-x against the given predictors.

    Above, along the branch cue x₃ at the phase φ₀; below, over x₃ and the phase within three σ_z of φ₀. The noise
    columns are held at zero, their mean.

    Parameters
    ----------
    oracle : ParametricOracle
        The oracle of the draw on which the methods were trained.
    predictors : mapping from a method's name to its ``predict_proba``
        Each maps X of shape (n, d) to (n, 2).
    """
    p = oracle.parameters
    rules: dict[str, Predictor] = {"Bayes-x": oracle.bayes_x, **predictors}
    cue = _cue_range(p, 241)
    phase = np.linspace(p.phi_0 - 3 * p.sigma_z, p.phi_0 + 3 * p.sigma_z, 81)

    with style():
        figure = Figure(figsize=(max(8.0, 2.6 * len(rules)), 6))
        grid = figure.add_gridspec(2, len(rules), height_ratios=(1.1, 1))
        lines = figure.add_subplot(grid[0, :])
        along_cue = _rows(p, cue, np.full_like(cue, p.phi_0))
        for j, (name, predict_proba) in enumerate(rules.items()):
            colour, width = (INK, 2.5) if j == 0 else (PALETTE[(j - 1) % len(PALETTE)], 1.5)
            lines.plot(cue, predict_proba(along_cue)[:, 1], color=colour, linewidth=width, label=name)
        lines.set(xlabel=r"branch cue $x_3$, at the phase $\phi_0$", ylabel=r"$p(y=1\mid x)$", ylim=(-0.02, 1.02))
        lines.margins(x=0)
        lines.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(rules))
        figure.suptitle("Probability of the label along the branch cue", fontsize="medium")

        plane = _rows(p, *(side.ravel() for side in np.meshgrid(cue, phase)))
        panels: list[Axes] = []
        for j, (name, predict_proba) in enumerate(rules.items()):
            axes = figure.add_subplot(grid[1, j], sharey=panels[0] if panels else None)
            proba = predict_proba(plane)[:, 1].reshape(len(phase), len(cue))
            image = axes.pcolormesh(
                cue, phase, proba, cmap="RdBu_r", vmin=0, vmax=1, shading="nearest", rasterized=True
            )
            axes.set(xlabel="branch cue $x_3$", title=name)
            axes.tick_params(labelleft=j == 0)
            panels.append(axes)
        panels[0].set_ylabel("phase (rad)")
        figure.colorbar(image, ax=panels, label=r"$p(y=1\mid x)$")
    return figure


def environment_probability_figure(oracle: ParametricOracle, predict_environment_proba: Predictor) -> Figure:
    """p(e|x) of the parametric simulation along the branch cue x₃, at the phase φ₀: the oracle's and the learned one.

    The noise columns are held at zero, their mean.

    Parameters
    ----------
    oracle : ParametricOracle
        The oracle of the draw on which the methods were trained.
    predict_environment_proba : callable
        Maps X of shape (n, d) to (n, m), with the columns in the order of ``oracle.centres``.
    """
    p = oracle.parameters
    cue = _cue_range(p, 481)
    X = _rows(p, cue, np.full_like(cue, p.phi_0))
    order = np.argsort(oracle.centres, kind="stable")
    m = len(order)
    by_source = {"oracle": oracle.environment_proba(X), "learned": predict_environment_proba(X)}
    largest = max(proba.max() for proba in by_source.values())

    with style():
        figure = Figure(figsize=(10, max(3.2, 1.5 + 0.1 * m)))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (source, proba) in zip(panels, by_source.items(), strict=True):
            image = axes.pcolormesh(
                cue, np.arange(m), proba.T[order], vmin=0, vmax=largest, shading="nearest", rasterized=True
            )
            axes.set(xlabel=r"branch cue $x_3$, at the phase $\phi_0$", title=rf"$p(e_j\mid x)$, {source}")
        shown = np.arange(0, m, 1 + (m - 1) // 12)
        panels[0].set_yticks(shown, [f"{oracle.centres[order[j]]:.2f}".replace("-", "−") for j in shown])
        panels[0].set_ylabel("environment, by its centre $m_j$")
        figure.colorbar(image, ax=panels, label=r"$p(e_j\mid x)$")
        figure.suptitle("Probability of each training environment along the branch cue", fontsize="medium")
    return figure


def _cue_range(p: ParametricParameters, points: int) -> NDArray[np.float64]:
    """Values of x₃ from half a branch below the lowest to half a branch above the highest."""
    low, high = p.Delta * (min(p.branches) - 0.5) + p.phi_0, p.Delta * (max(p.branches) + 0.5) + p.phi_0
    return np.linspace(p.rho * low, p.rho * high, points)


def _rows(p: ParametricParameters, cue: NDArray[np.float64], phase: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noiseless rows at the given phases and branch cues; (n, d)."""
    X = np.zeros((len(cue), p.d))
    X[:, 0], X[:, 1], X[:, 2] = np.cos(phase), np.sin(phase), cue
    return X
