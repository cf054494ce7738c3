"""Theorem 1 as tensors: the four terms of the bound for every row, label and environment."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from eber.method.aggregates import Conditionals, Rule, at_label, parts_of, row_chunks
from eber.method.model import EBERNetworks


@dataclass(frozen=True)
class TheoremTerms:
    """The four terms of Theorem 1 for each observed-label component, (m, B) each: z integrated, e not yet."""

    likelihood: Tensor
    kl: Tensor
    posterior_coupling: Tensor
    prior_coupling: Tensor


def theorem_terms(c: Conditionals, module: EBERNetworks, y: Tensor, points: Tensor, weights: Tensor) -> TheoremTerms:
    """Integrate the four integrands over z ~ q(z; x, y, e), for every environment e."""
    z = c.posterior_points(y, points)  # (L, Q, m, B)
    _, Q, m, B = z.shape
    log_n = c.log_q_zxye(z.flatten(1, 2))  # (Q·m, K, m, B)

    def of_own_environment(values: Tensor) -> Tensor:
        """The entry of the environment that drew each z: (Q·m, m, B) -> (Q, m, B)."""
        return values.view(Q, m, m, B).diagonal(dim1=1, dim2=2).transpose(1, 2)

    def integrate(values: Tensor) -> Tensor:
        return torch.einsum("q,qeb->eb", weights, values)

    log_p_y_given_z = at_label(module.log_p_y_given_z(z), y, 0)  # (Q, m, B)
    log_q_zxye = of_own_environment(at_label(log_n, y, 1))
    log_q_zxe = of_own_environment(c.log_q_zxe(log_n))
    log_q_zxy = c.log_q_zxy(log_n, y).view(Q, m, B)
    log_q_zx = c.log_q_zx(log_n).view(Q, m, B)
    return TheoremTerms(
        likelihood=integrate(log_p_y_given_z),
        kl=integrate(log_q_zxye - log_q_zxe),
        posterior_coupling=integrate(log_q_zxye - log_q_zxy),
        prior_coupling=integrate(log_q_zxe - log_q_zx),
    )


def prior_discrepancy(c: Conditionals, points: Tensor, weights: Tensor) -> Tensor:
    """KL(q(z;x,e) || q(z;x)) for every environment, (m, B), with one set of points in every component.

    The label that picks the component is summed over with p(y|x,e), not sampled, so that the estimate is unbiased in
    its gradient too.
    """
    z = c.component_points(points)  # (L, Q, K, m, B)
    _, Q, K, m, B = z.shape
    log_n = c.log_q_zxye(z.flatten(1, 3))  # (Q·K·m, K, m, B)
    log_q_zxe = c.log_q_zxe(log_n).view(Q, K, m, m, B).diagonal(dim1=2, dim2=3).transpose(2, 3)  # (Q, K, m, B)
    log_q_zx = c.log_q_zx(log_n).view(Q, K, m, B)
    return torch.einsum("q,keb,qkeb->eb", weights, c.log_p_y_given_xe.exp(), log_q_zxe - log_q_zx)


@dataclass(frozen=True)
class RowTerms:
    """Theorem 1 for each row, with y and e integrated out under the model, and at the observed y and e.

    Attributes
    ----------
    L_ye : (n, K, m) likelihood - KL(q(z;x,y,e) || q(z;x,e)) for every label and environment
    posterior_ye : (n, K, m) KL(q(z;x,y,e) || q(z;x,y))
    prior_e : (n, m) KL(q(z;x,e) || q(z;x))
    bound_y : (n, K) the lower bound L(x,y) of Equation (pq_elbo_single)
    w : (n, K, m) p(y,e|x)
    """

    L_ye: NDArray[np.float64]
    posterior_ye: NDArray[np.float64]
    prior_e: NDArray[np.float64]
    bound_y: NDArray[np.float64]
    w: NDArray[np.float64]


def theorem_rows(module: EBERNetworks, x: Tensor, rule: Rule, log_p_e_given_x: Tensor | None = None) -> RowTerms:
    """Every term of Theorem 1 for every row, label and environment."""
    K, m = module.n_classes, module.n_environments
    pairs = (K * m) ** 2 * module.latent_dim  # each component's points under each component
    rules = parts_of(rule, pairs)
    parts = []
    with torch.no_grad():
        for rows in row_chunks(len(x), rules[0][1].numel() * pairs):
            log_p_e = None if log_p_e_given_x is None else log_p_e_given_x[:, rows]
            c = module.conditionals(x[rows], log_p_e)
            B = x[rows].shape[0]
            labels = [
                _summed([theorem_terms(c, module, torch.full((B,), k), *part) for part in rules]) for k in range(K)
            ]
            L_ye = torch.stack([t.likelihood - t.kl for t in labels])  # (K, m, B)
            posterior = torch.stack([t.posterior_coupling for t in labels])
            coupled = torch.stack([t.posterior_coupling - t.prior_coupling for t in labels])
            r = torch.stack([c.log_p_e_given_xy(torch.full((B,), k)).exp() for k in range(K)])
            bound = (r * (L_ye + coupled)).sum(1)  # (K, B)
            prior = torch.stack([prior_discrepancy(c, *part) for part in rules]).sum(0)  # (m, B)
            arrays = (L_ye, posterior, prior, bound, c.log_w.exp())
            parts.append(tuple(a.movedim(-1, 0).numpy() for a in arrays))
    return RowTerms(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def _summed(parts: list[TheoremTerms]) -> TheoremTerms:
    """The terms of a rule from those of its parts."""
    names = [field.name for field in fields(TheoremTerms)]
    return TheoremTerms(**{name: torch.stack([getattr(part, name) for part in parts]).sum(0) for name in names})


def decomposition_table(
    rows: RowTerms, y: NDArray[np.int64], e: NDArray[np.int64], environments: NDArray[Any]
) -> pd.DataFrame:
    """Theorem 1 as a table: L_e of each environment, both discrepancies, R(q), and the check that they add up to L.

    Parameters
    ----------
    rows : RowTerms
    y, e : (n,) observed label and environment of each row, as indices
    environments : (m,) their names

    Returns
    -------
    DataFrame with columns ``model`` (expectations under the model's own p(e|x) and p(y|x,e), where the theorem is an
    identity) and ``observed`` (at the observed y and e).
    """
    n, m = np.arange(len(y)), len(environments)
    p_e, p_y = rows.w.sum(1), rows.w.sum(2)  # (n, m), (n, K)
    p_e_given_xy = rows.w[n, y] / p_y[n, y][:, None]  # (n, m)
    counts = np.bincount(e, minlength=m)
    with np.errstate(invalid="ignore"):  # an environment without rows, or without weight, has no L_e
        observed_L_e = np.bincount(e, rows.L_ye[n, y, e], minlength=m) / counts
        model_L_e = (rows.w * rows.L_ye).sum((0, 1)) / rows.w.sum((0, 1))
    columns = {
        "model": (
            p_e.mean(0),
            model_L_e,
            (rows.w * rows.posterior_ye).sum((1, 2)).mean(),
            (p_y * rows.bound_y).sum(1).mean(),
        ),
        "observed": (
            counts / len(y),
            observed_L_e,
            (p_e_given_xy * rows.posterior_ye[n, y]).sum(1).mean(),
            rows.bound_y[n, y].mean(),
        ),
    }
    prior = (p_e * rows.prior_e).sum(1).mean()
    table = {}
    for name, (weights, L_e, posterior, bound) in columns.items():
        mean = np.nansum(weights * L_e)
        balance = posterior - prior
        table[name] = [*L_e, mean, posterior, prior, balance, mean + balance, bound, bound - mean - balance]
    names = [f"L_e[{name}]" for name in environments]
    names += ["E[L_e]", "posterior discrepancy", "prior discrepancy", "R(q)", "E[L_e] + R(q)", "L", "residual"]
    return pd.DataFrame(table, index=names)
