"""Algorithm 1 of the paper as plain loops: a network call for each label and environment, 1000-sample prediction.

It is the yardstick of the benchmarks. Its loss is there twice, with the same value: `loss` reads line for line as the
algorithm is printed, and `loss_sharing` evaluates each component once and uses it in every line, which is a first thing
that one would improve.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def mlp(in_features: int, out_features: int) -> nn.Sequential:
    """The paper's network for the parametric simulation."""
    return nn.Sequential(nn.Linear(in_features, 16), nn.ReLU(), nn.Linear(16, 32), nn.Linear(32, out_features))


class LiteralEBER(nn.Module):
    """Two classes, one latent dimension, one-hot labels and environments concatenated with x."""

    def __init__(self, d: int, m: int) -> None:
        super().__init__()
        self.m = m
        self.g, self.f0, self.h, self.f1 = mlp(d + 2 + m, 2), mlp(d + m, 2), mlp(d, m), nn.Linear(1, 2)

    def posterior(self, x: Tensor, k: int | Tensor, e: int | Tensor) -> torch.distributions.Normal:
        """q(z; x, k, e), with one label and environment for all rows or one for each."""
        one_hot = torch.zeros(len(x), 2 + self.m)
        rows = slice(None) if isinstance(k, int) else torch.arange(len(x))
        one_hot[rows, k] = one_hot[rows, 2 + e] = 1.0
        mu, log_sigma = self.g(torch.cat([x, one_hot], 1)).T
        return torch.distributions.Normal(mu, log_sigma.exp(), validate_args=False)

    def label(self, x: Tensor, e: int) -> Tensor:
        """log p(y|x,e), (B, 2)."""
        one_hot = torch.zeros(len(x), self.m)
        one_hot[:, e] = 1.0
        return torch.log_softmax(self.f0(torch.cat([x, one_hot], 1)), 1)

    def loss(self, x: Tensor, y: Tensor, e: Tensor) -> Tensor:
        """Lines 3 to 11 of Algorithm 1 for a batch, with the environment loss."""
        own = self.posterior(x, y, e)  # line 4
        z = own.loc + own.scale * torch.randn(len(x))  # line 5
        likelihood = -F.cross_entropy(self.f1(z[:, None]), y, reduction="none")  # line 6
        log_h = torch.log_softmax(self.h(x), 1)  # line 7, once: h gives p(e|x) for all e
        rows, log_q_xe, log_joint = torch.arange(len(x)), [], []
        for j in range(self.m):  # line 7: f0, q(z;x,e), p(e|x,y)
            log_p_y = self.label(x, j)
            densities = torch.stack([self.posterior(x, k, j).log_prob(z) for k in range(2)], 1)  # (B, 2)
            log_q_xe.append(torch.logsumexp(log_p_y + densities, 1))
            log_joint.append(log_h[:, j] + log_p_y[rows, y])
        log_r = torch.log_softmax(torch.stack(log_joint), 0)
        of_label = torch.stack([self.posterior(x, y, j).log_prob(z) for j in range(self.m)])  # line 8
        log_q_xy = torch.logsumexp(log_r + of_label, 0)
        log_q_x = torch.logsumexp(log_h.T + torch.stack(log_q_xe), 0)  # line 9
        return -(likelihood - log_q_xy + log_q_x).mean() + F.nll_loss(log_h, e)  # line 11

    def loss_sharing(self, x: Tensor, y: Tensor, e: Tensor) -> Tensor:
        """The same, with every component evaluated once."""
        components = [[self.posterior(x, k, j) for j in range(self.m)] for k in range(2)]
        labels = [self.label(x, j) for j in range(self.m)]
        log_h = torch.log_softmax(self.h(x), 1)
        rows = torch.arange(len(x))
        means = torch.stack([torch.stack([components[k][j].loc for j in range(self.m)]) for k in range(2)])
        scales = torch.stack([torch.stack([components[k][j].scale for j in range(self.m)]) for k in range(2)])
        z = means[y, e, rows] + scales[y, e, rows] * torch.randn(len(x))
        likelihood = -F.cross_entropy(self.f1(z[:, None]), y, reduction="none")
        log_q_x, log_q_xy, log_p_e = [], [], []
        for j in range(self.m):
            densities = torch.stack([components[k][j].log_prob(z) for k in range(2)], 1)  # (B, 2)
            log_q_x.append(log_h[:, j] + torch.logsumexp(labels[j] + densities, 1))
            log_p_e.append(log_h[:, j] + labels[j][rows, y])
            log_q_xy.append(densities[rows, y])
        log_r = torch.log_softmax(torch.stack(log_p_e), 0)
        posterior = torch.logsumexp(log_r + torch.stack(log_q_xy), 0)
        prior = torch.logsumexp(torch.stack(log_q_x), 0)
        return -(likelihood - posterior + prior).mean() + F.nll_loss(log_h, e)

    @torch.no_grad()
    def predict_proba(self, x: Tensor, samples: int = 1000) -> Tensor:
        """Equation (pred) with samples from each component, (B, 2)."""
        log_h = torch.log_softmax(self.h(x), 1)
        total = torch.zeros(len(x), 2)
        for j in range(self.m):
            p_label = self.label(x, j).exp()
            for k in range(2):
                z = self.posterior(x, k, j).sample((samples,))  # (S, B)
                p = torch.softmax(self.f1(z[..., None]), -1).mean(0)
                total += log_h[:, j].exp()[:, None] * p_label[:, k, None] * p
        return total
