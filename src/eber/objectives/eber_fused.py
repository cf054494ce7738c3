"""The default objective (stratified, tied, one sample an environment) with its gradient written by hand.

`eber.py` is the readable form and the judge: tests compare this file with it, value and gradient. What is gained is
time: autograd records some eighty small operations there, and none here.

Notation, batch last: theta (2L, K, m, B) raw outputs of g; lp_y = log p(y|x,e) (K, m, B); lp_e = log p(e|x) (m, B),
h's or supplied; r = p(e|x,y) (m, B); z (L, m, B) one draw from each q(z;x,y,e). With

    t[s,k] = log sum_e p(k,e|x) q(z_s; x,k,e) = log q(z_s, k; x)

the KL integrand log q(z;x,y) - log q(z;x) equals log_softmax_k(t)[y] - log p(y|x), so the bound of one row is

    L = sum_s r_s v_s + log p(y|x),     v_s = log p(y|z_s) - log_softmax_k(t_s)[y],

and, with d[k,e] = log p(k|x,e) + log q(z_e;x,k,e), the tie is

    L_e = log p(y|z_e) - log_softmax_k(d_e)[y] + log p(y|x,e).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eber import conditional_mlp
from eber.aggregates import at_label
from eber.distributions import LOG_2PI
from eber.model import EBERNetworks
from eber.networks import ConditionalNetwork
from eber.objectives.base import Batch, LossTerms
from eber.objectives.eber import TERMS
from eber.workspace import Workspace


def _decode(
    f1: nn.Sequential, z: Tensor, y: Tensor, label: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """log p(y|z) (m, B), and the gradient of its weighted sum with respect to z and to f1's parameters."""
    L, m, B = z.shape
    points = z.reshape(L, -1)  # (L, m·B)
    if len(f1) == 1:
        last = f1[0]
        assert isinstance(last, nn.Linear)
        logits = torch.addmm(last.bias[:, None], last.weight, points)
        log_p = torch.log_softmax(logits, 0).view(-1, m, B)  # (K, m, B)
        grad = torch.sub(label[:, None], torch.exp(log_p)).mul_(weight).flatten(1)  # weight · (1[k = y] - p(k|z))
        return at_label(log_p, y, 0), (last.weight.T @ grad).view(L, m, B), (grad @ points.T, grad.sum(1))
    with torch.enable_grad():
        leaf = points.T.detach().requires_grad_()  # (m·B, L)
        log_lik = -F.cross_entropy(f1(leaf), y.repeat(m), reduction="none")
        grad_z, *grad_f1 = torch.autograd.grad(torch.dot(log_lik, weight.reshape(-1)), (leaf, *f1.parameters()))
    return log_lik.detach().view(m, B), grad_z.T.reshape(L, m, B), tuple(grad_f1)


EXP_FLOOR = -80.0
"""exp of anything lower is zero beside one in float32, and many times slower to compute."""


@dataclass(frozen=True)
class StratifiedGradient:
    """The loss of a batch, its terms in the order of TERMS, and its gradient with respect to the networks' outputs."""

    loss: float
    terms: tuple[float, ...]
    theta: Tensor  # (2L, K, m, B)
    f0_logits: Tensor  # (K, m, B)
    h_logits: Tensor  # (m, B)
    f1_parameters: tuple[Tensor, ...]


@torch.no_grad()
def stratified_gradient(
    theta: Tensor,
    f0_logits: Tensor,
    h_logits: Tensor,
    noise: Tensor,
    batch: Batch,
    module: EBERNetworks,
    env_loss_weight: float,
    tie_weight: float,
    workspace: Workspace,
) -> StratifiedGradient:
    """Loss and gradient at the outputs of g, f0 and h, with z drawn by `noise` (L, m, B)."""
    L, gain, y = module.latent_dim, module.environment_gain, batch.y
    K, m, B = f0_logits.shape
    bounds = module.bounds
    if bounds is not None:
        ratio = torch.tanh(theta / bounds)
        theta = bounds * ratio
    mu, log_sigma = theta[:L], theta[L:]

    lp_y = torch.log_softmax(f0_logits, 0)
    lp_h = torch.log_softmax(gain * h_logits, 0)
    lp_e = lp_h if batch.log_p_e_given_x is None else batch.log_p_e_given_x
    lp_label = at_label(lp_y, y, 0)  # (m, B), log p(y|x,e) at the observed label
    lw_label = lp_label + lp_e
    log_r = torch.log_softmax(lw_label, 0)
    r = torch.exp(log_r)  # p(e|x,y)
    log_p_label = lw_label[0] - log_r[0]  # (B,), log p(y|x)
    observed = (module.environment_index == batch.e).to(r.dtype)  # (m, B)
    label = (module.class_index == y).to(r.dtype)  # (K, B)

    theta_label = at_label(theta, y, 1)  # (2L, m, B)
    step = torch.exp(theta_label[L:]).mul_(noise)  # sigma · noise
    z = theta_label[:L] + step  # (L, m, B)
    # All gradients below are of the loss, minus the batch mean: the factor -1/B enters here, once.
    r_B, tied = r * (-1 / B), observed * (-tie_weight / B)
    log_lik, grad_z, grad_f1 = _decode(module.f1, z, y, label, r_B + tied)

    # The pairwise densities: every draw s under every component (k, e). These are the only large arrays.
    inv_sigma = torch.exp(-log_sigma)
    u = workspace.take("u", (L, m, K, m, B), z)
    torch.sub(z[:, :, None, None], mu[:, None], out=u).mul_(inv_sigma[:, None])  # (L, m, K, m, B)
    offset = (lp_y + lp_e).sub_(log_sigma.sum(0)).sub_(0.5 * L * LOG_2PI)  # (K, m, B)
    joint = workspace.take("joint", (m, K, m, B), z)  # log p(k,e|x) q(z_s;x,k,e)
    if L == 1:
        torch.addcmul(offset, u[0], u[0], value=-0.5, out=joint)
    else:
        torch.add(offset, u.square().sum(0), alpha=-0.5, out=joint)
    own = joint.diagonal(dim1=0, dim2=2).permute(0, 2, 1) - lp_e  # (K, m, B), d[k,e]
    top = joint.amax(2, keepdim=True)
    responsibility = joint.sub_(top).clamp_(min=EXP_FLOOR).exp_()  # (m, K, m, B), not yet normalised over e
    mass = responsibility.sum(2, keepdim=True)
    t = top.add_(mass.log()).squeeze(2)  # (m, K, B)
    log_post = torch.log_softmax(t, 1)  # log q(k|z_s;x)
    log_post_own = torch.log_softmax(own, 0)  # log q(k|z_e;x,e)
    log_post_label = at_label(log_post, y, 1)  # (m, B)
    kl = at_label(log_post_own, y, 0).sub_(lp_label)  # (m, B), log q(z_e;x,y,e) - log q(z_e;x,e)
    v = log_lik - log_post_label  # (m, B)

    grad_t = torch.exp(log_post).sub_(label).mul_(r_B[:, None])  # (m, K, B)
    a = responsibility.mul_((grad_t / mass.squeeze(2))[:, :, None])  # d L / d joint
    grad_log_w = a.sum(0)  # (K, m, B)
    grad_own = torch.exp(log_post_own).sub_(label[:, None]).mul_(tied)  # (K, m, B), d / d own
    a.diagonal(dim1=0, dim2=2).add_(grad_own.permute(0, 2, 1))
    grad_n = grad_log_w + grad_own  # (K, m, B), summed over draws
    # (L, m, K, m, B); with one latent dimension it takes the place of a, to touch less memory
    av = a.mul_(u[0])[None] if L == 1 else torch.mul(u, a, out=workspace.take("av", (L, m, K, m, B), z))
    grad_theta = torch.empty_like(theta)
    torch.mul(av.sum(1), inv_sigma, out=grad_theta[:L])
    torch.sub(u.mul_(av).sum(1), grad_n, out=grad_theta[L:])
    grad_z = grad_z.sub_(av.mul_(inv_sigma[:, None]).sum((2, 3)))
    through_z = torch.cat([grad_z, grad_z * step])  # (2L, m, B), through the draw of the label's component
    grad_theta.addcmul_(label[:, None], through_z[:, None])
    if bounds is not None:
        grad_theta.mul_(1 - ratio.square_())

    grad_label = (v - (r * v).sum(0)).add_(1).mul_(r_B)  # (m, B), through log p(y,e|x) at the observed label
    grad_lp_h = observed * (-env_loss_weight / B)
    if batch.log_p_e_given_x is None:
        grad_lp_h += grad_log_w.sum(0).add_(grad_label)
    grad_lp_y = grad_n.addcmul_(label[:, None], grad_label.add_(tied))
    grad_f0 = torch.addcmul(grad_lp_y, torch.exp(lp_y), grad_lp_y.sum(0), value=-1)
    grad_h = torch.addcmul(grad_lp_h, torch.exp(lp_h), grad_lp_h.sum(0), value=-1).mul_(gain)

    # Terms by name, in the order of TERMS, with KL and couplings as in Theorem 1, weighted with p(e|x,y).
    log_q_own = at_label(own, y, 0).sub_(lp_label)  # log q(z_e;x,y,e)
    posterior_coupling = log_q_own.sub_(at_label(t, y, 1)).add_(log_p_label)
    integrands = torch.stack([log_lik, kl, posterior_coupling, log_post_label, lp_h]).view(5, -1)
    averages = integrands @ torch.stack([r, observed]).view(2, -1).T  # sums over e and rows, by p(e|x,y) and observed
    sums, observed_sums = (averages / B).T.tolist()
    likelihood, kl_mean, posterior_mean, log_post_mean, _ = sums
    log_h, tie = observed_sums[4], observed_sums[0] - observed_sums[1]
    total_kl = log_post_mean - log_p_label.mean().item()  # KL(q(z;x,y) || q(z;x)) = kl - posterior + prior coupling
    prior_mean = total_kl - kl_mean + posterior_mean
    loss = total_kl - likelihood - env_loss_weight * log_h - tie_weight * tie
    terms = (likelihood, kl_mean, posterior_mean, prior_mean, -log_h, tie)
    return StratifiedGradient(loss, terms, grad_theta, grad_f0, grad_h, grad_f1)


class FusedEBERObjective:
    """`EBERObjective` with reading ``"stratified"`` and one sample, without autograd.

    Where a network has an extractor of its own, autograd serves that extractor and nothing else.
    """

    def __init__(self, env_loss_weight: float = 1.0, tie_weight: float = 0.0) -> None:
        self.env_loss_weight, self.tie_weight = env_loss_weight, tie_weight
        self._workspace = Workspace()
        self._networks: tuple[EBERNetworks, list[_HandDifferentiated]] | None = None

    def __call__(self, module: EBERNetworks, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        if self._networks is None or self._networks[0] is not module:
            assert module.g is not None
            self._networks = module, [_HandDifferentiated(network) for network in (module.g, module.f0, module.h)]
        networks = self._networks[1]
        theta, f0_logits, h_logits = (network.forward(batch.x) for network in networks)
        shape = (module.latent_dim, module.n_environments, len(batch.y))
        noise = torch.randn(shape, generator=generator, dtype=theta.dtype)
        result = stratified_gradient(
            theta, f0_logits, h_logits, noise, batch, module, self.env_loss_weight, self.tie_weight, self._workspace
        )

        def backward() -> None:
            parameters: list[Tensor] = list(module.f1.parameters())
            grads = list(result.f1_parameters)
            graphs: list[Tensor] = []  # what autograd takes over, with the gradients it starts from
            starts: list[Tensor] = []
            for network, grad_out in zip(networks, (result.theta, result.f0_logits, result.h_logits), strict=True):
                by_hand, graph, start = network.backward(grad_out)
                parameters += network.parameters
                grads += by_hand
                if graph is not None and start is not None:
                    graphs.append(graph)
                    starts.append(start)
            torch._foreach_add_([p.grad for p in parameters if p.grad is not None], grads)
            if graphs:
                torch.autograd.backward(graphs, starts)

        return LossTerms(result.loss, dict(zip(TERMS, result.terms, strict=True)), backward)


class _HandDifferentiated:
    """A network, its output for a batch, and the gradient of its parameters given that of the output."""

    def __init__(self, network: ConditionalNetwork) -> None:
        self.network, self.layout, self.workspace = network, network.layout, Workspace()
        # Where there is no multilayer part, autograd does it all and there is nothing left to accumulate.
        self.parameters = [] if self.layout is None else network.mlp_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """The output, (out, *contexts, B), detached."""
        if self.layout is None:
            self.graph = self.network(x)
            return self.graph.detach()
        extractor = self.network.extractor
        self.features = x if extractor is None else extractor(x)
        with torch.no_grad():
            out, self.cache = conditional_mlp.forward(
                self.layout, self.parameters, self.features.detach(), self.workspace
            )
        return out

    @torch.no_grad()
    def backward(self, grad_out: Tensor) -> tuple[list[Tensor], Tensor | None, Tensor | None]:
        """Gradients of `parameters`; and, where autograd is to go on, from which tensor and with which gradient."""
        if self.layout is None:
            return [], self.graph, grad_out
        through_features = self.features.requires_grad
        grad_features, grads = conditional_mlp.backward(
            self.layout, self.parameters, self.cache, grad_out, self.workspace, through_features
        )
        return grads, self.features if through_features else None, grad_features
