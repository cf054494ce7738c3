"""DomainBed's updates of the baselines restated in plain PyTorch: modules, loops over environments, torch's Adam.

The yardstick for the time of a step. Minibatches are lists of (x, y), one for each environment;
`tests/test_benchmarks.py` holds the restatement to the trajectories of DomainBed's own classes.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, autograd, nn
from torch.nn import functional as F

Minibatches = list[tuple[Tensor, Tensor]]
Terms = dict[str, float]


class MLP(nn.Module):
    """The featurizer of the trajectories: one hidden layer of ReLUs, a linear output."""

    def __init__(self, in_features: int, hidden: int, out_features: int) -> None:
        super().__init__()
        self.input, self.output = nn.Linear(in_features, hidden), nn.Linear(hidden, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(F.relu(self.input(x)))


class Algorithm(nn.Module):
    """A featurizer, a linear classifier and Adam on both."""

    def __init__(self, in_features: int, hidden: int, width: int, n_classes: int, anneal_steps: int = 0) -> None:
        super().__init__()
        self.featurizer, self.classifier = MLP(in_features, hidden, width), nn.Linear(width, n_classes)
        self.network = nn.Sequential(self.featurizer, self.classifier)
        self.anneal_steps, self.update_count = anneal_steps, 0
        self.rebuild_optimizer()

    def rebuild_optimizer(self) -> None:
        """Adam with its moments forgotten."""
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3, weight_decay=0.0)

    @abstractmethod
    def update(self, minibatches: Minibatches) -> Terms:
        """One step; the loss and penalties that DomainBed's class returns."""

    def follow(self, objective: Tensor) -> None:
        """Backward and a step of Adam."""
        self.optimizer.zero_grad()
        objective.backward()
        self.optimizer.step()
        self.update_count += 1


class GroupDRO(Algorithm):
    """Sagawa et al. 2020."""

    def update(self, minibatches: Minibatches, eta: float = 0.01) -> Terms:
        if not hasattr(self, "q"):
            self.q = torch.ones(len(minibatches))
        losses = torch.zeros(len(minibatches))
        for m, (x, y) in enumerate(minibatches):
            losses[m] = F.cross_entropy(self.network(x), y)
            self.q[m] *= (eta * losses[m].data).exp()
        self.q /= self.q.sum()
        loss = torch.dot(losses, self.q)
        self.follow(loss)
        return {"loss": loss.item()}


class PairwiseAlignment(Algorithm):
    """A penalty on the features of every pair of environments."""

    @abstractmethod
    def discrepancy(self, x: Tensor, y: Tensor) -> Tensor:
        """How far the features of two environments are apart."""

    def update(self, minibatches: Minibatches, gamma: float = 1.0) -> Terms:
        objective, penalty, n = torch.zeros(()), torch.zeros(()), len(minibatches)
        features = [self.featurizer(x) for x, _ in minibatches]
        logits = [self.classifier(f) for f in features]
        for i in range(n):
            objective = objective + F.cross_entropy(logits[i], minibatches[i][1])
            for j in range(i + 1, n):
                penalty = penalty + self.discrepancy(features[i], features[j])
        objective = objective / n
        if n > 1:
            penalty = penalty / (n * (n - 1) / 2)
        self.follow(objective + gamma * penalty)
        return {"loss": objective.item(), "penalty": penalty.item()}


class CORAL(PairwiseAlignment):
    """Sun and Saenko 2016."""

    def discrepancy(self, x: Tensor, y: Tensor) -> Tensor:
        mean_x, mean_y = x.mean(0, keepdim=True), y.mean(0, keepdim=True)
        cent_x, cent_y = x - mean_x, y - mean_y
        cova_x, cova_y = (cent_x.t() @ cent_x) / (len(x) - 1), (cent_y.t() @ cent_y) / (len(y) - 1)
        return (mean_x - mean_y).pow(2).mean() + (cova_x - cova_y).pow(2).mean()


class MMD(PairwiseAlignment):
    """Li et al. 2018."""

    def distances(self, x: Tensor, y: Tensor) -> Tensor:
        x_norm, y_norm = x.pow(2).sum(dim=-1, keepdim=True), y.pow(2).sum(dim=-1, keepdim=True)
        result = torch.addmm(y_norm.transpose(-2, -1), x, y.transpose(-2, -1), alpha=-2).add_(x_norm)
        return result.clamp_min_(1e-30)

    def kernel(self, x: Tensor, y: Tensor) -> Tensor:
        D = self.distances(x, y)
        K = torch.zeros_like(D)
        for g in (0.001, 0.01, 0.1, 1, 10, 100, 1000):
            K.add_(torch.exp(D.mul(-g)))
        return K

    def discrepancy(self, x: Tensor, y: Tensor) -> Tensor:
        Kxx, Kyy, Kxy = self.kernel(x, x).mean(), self.kernel(y, y).mean(), self.kernel(x, y).mean()
        return Kxx + Kyy - 2 * Kxy


class SD(Algorithm):
    """Pezeshki et al. 2021."""

    def update(self, minibatches: Minibatches, weight: float = 0.1) -> Terms:
        all_x, all_y = (torch.cat(parts) for parts in zip(*minibatches, strict=True))
        logits = self.network(all_x)
        loss, penalty = F.cross_entropy(logits, all_y), (logits**2).mean()
        self.follow(loss + weight * penalty)
        return {"loss": loss.item(), "penalty": penalty.item()}


class ANDMask(Algorithm):
    """Parascandolo et al. 2021."""

    def update(self, minibatches: Minibatches, tau: float = 0.6) -> Terms:
        mean_loss = 0.0
        gradients: list[list[Tensor]] = [[] for _ in self.network.parameters()]
        for x, y in minibatches:
            loss = F.cross_entropy(self.network(x), y)
            mean_loss += loss.item() / len(minibatches)
            for of_parameter, grad in zip(gradients, autograd.grad(loss, list(self.network.parameters())), strict=True):
                of_parameter.append(grad)
        self.optimizer.zero_grad()
        for parameter, of_parameter in zip(self.network.parameters(), gradients, strict=True):
            grads = torch.stack(of_parameter, dim=0)
            mask = (torch.mean(torch.sign(grads), dim=0).abs() >= tau).to(torch.float32)
            parameter.grad = mask * torch.mean(grads, dim=0)
            parameter.grad *= 1.0 / (1e-10 + mask.sum() / mask.numel())
        self.optimizer.step()
        return {"loss": mean_loss}


class IGA(Algorithm):
    """Koyama and Yamaguchi 2021."""

    def update(self, minibatches: Minibatches, weight: float = 1.0) -> Terms:
        total, grads = torch.zeros(()), []
        for x, y in minibatches:
            loss = F.cross_entropy(self.network(x), y)
            total = total + loss
            grads.append(autograd.grad(loss, list(self.network.parameters()), create_graph=True))
        mean_loss = total / len(minibatches)
        mean_grad = autograd.grad(mean_loss, list(self.network.parameters()), retain_graph=True)
        penalty = torch.zeros(())
        for grad in grads:
            for g, mean_g in zip(grad, mean_grad, strict=True):
                penalty = penalty + (g - mean_g).pow(2).sum()
        self.follow(mean_loss + weight * penalty)
        return {"loss": mean_loss.item(), "penalty": penalty.item()}


class Bottleneck(Algorithm):
    """Ahuja et al. 2021, with IRM's penalty or without."""

    invariant: bool

    def irm_penalty(self, logits: Tensor, y: Tensor) -> Tensor:
        scale = torch.tensor(1.0).requires_grad_()
        halves = [F.cross_entropy(logits[start::2] * scale, y[start::2]) for start in (0, 1)]
        first, second = (autograd.grad(loss, [scale], create_graph=True)[0] for loss in halves)
        return torch.sum(first * second)

    def update(self, minibatches: Minibatches) -> Terms:
        annealed = self.update_count >= self.anneal_steps
        irm_weight, ib_weight = (100.0 if annealed else 1.0), (10.0 if annealed else 0.0)
        nll, irm, ib = torch.zeros(()), torch.zeros(()), torch.zeros(())
        all_features = self.featurizer(torch.cat([x for x, _ in minibatches]))
        all_logits, start = self.classifier(all_features), 0
        for x, y in minibatches:
            rows = slice(start, start + len(x))
            start += len(x)
            nll = nll + F.cross_entropy(all_logits[rows], y)
            if self.invariant:
                irm = irm + self.irm_penalty(all_logits[rows], y)
            ib = ib + all_features[rows].var(dim=0).mean()
        nll, irm, ib = (term / len(minibatches) for term in (nll, irm, ib))
        loss = nll + irm_weight * irm + ib_weight * ib
        if self.update_count == self.anneal_steps:
            self.rebuild_optimizer()
        self.follow(loss)
        penalties = {"IB_penalty": ib.item()}
        return {"loss": loss.item(), **penalties, **({"IRM_penalty": irm.item()} if self.invariant else {})}


class IBERM(Bottleneck):
    """Without IRM's penalty."""

    invariant = False


class IBIRM(Bottleneck):
    """With IRM's penalty."""

    invariant = True


class EQRM(Algorithm):
    """Eastwood et al. 2022: kernel density of the risks, its quantile by bisection."""

    def update(self, minibatches: Minibatches, quantile: float = 0.75) -> Terms:
        risks = torch.cat([F.cross_entropy(self.network(x), y).reshape(1) for x, y in minibatches])
        if self.update_count < self.anneal_steps:
            loss = torch.mean(risks)
        else:
            loss = self.icdf(torch.sort(risks)[0], torch.tensor(quantile, dtype=torch.float64))
        if self.update_count == self.anneal_steps:
            self.rebuild_optimizer()
        self.follow(loss)
        return {"loss": loss.item()}

    def icdf(self, risks: Tensor, alpha: Tensor) -> Tensor:
        bandwidth = 1.06 * torch.std(risks, unbiased=True) * len(risks) ** -0.2

        def cdf(t: Tensor) -> Tensor:
            scales = torch.ones(len(risks)) * bandwidth
            return torch.mean(torch.distributions.Normal(risks, scales).cdf(t.repeat(len(risks), 1).T))

        bounds = [torch.distributions.Normal(edge, bandwidth).icdf(alpha) for edge in (risks[0], risks[-1])]
        k = 0.5 * (bounds[0] + bounds[1])
        for _ in range(32):
            bounds[int(cdf(k) > alpha)] = k
            next_k = 0.5 * (bounds[0] + bounds[1])
            if torch.isclose(next_k, k):
                break
            k = next_k
        return k


ALGORITHMS: dict[str, type[Algorithm]] = {
    "GroupDRO": GroupDRO,
    "CORAL": CORAL,
    "MMD": MMD,
    "SD": SD,
    "ANDMask": ANDMask,
    "IGA": IGA,
    "IB_ERM": IBERM,
    "IB_IRM": IBIRM,
    "EQRM": EQRM,
}
"""By the names of the trajectories."""
