"""The four networks of EBER as one module."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eber.method.aggregates import Conditionals
from eber.method.distributions import soft_bound
from eber.nn.column_pieces import ColumnPieces
from eber.nn.networks import ConditionalNetwork, Featurizer, Plans, build_network, multilayer


class EBERNetworks(nn.Module):
    """g(x, y, e), f0(x, e), h(x) and f1(z).

    Parameters
    ----------
    input_shape : shape of one row of X
    n_classes, n_environments, latent_dim : K, m, L
        With pseudo-environments, m is their number.
    pieces : ColumnPieces or None
        What the columns of a table row are cut into; g, f0 and h see the same.
    n_observed : int or None
        Number of environments in the data, where they share m pseudo-environments; None where each is its own.
    environment_gain : float
        Factor on h's output. With a head that starts at zero this is a larger step for the environment classifier.
    zero_environment_head : bool
        Start h at the uniform distribution.
    latent_bounds : pair of float or None
        Soft bounds on mu and on log sigma; `None` for none.
    learn_posterior : bool
        False when q(z; x, y, e) is supplied; there is no g then.
    generator : torch.Generator, optional
        What initial weights are drawn from; torch's global generator when not given.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        n_environments: int,
        latent_dim: int,
        *,
        featurizer: Featurizer,
        hidden_dims: Sequence[int],
        representation_dim: int,
        decoder_hidden_dims: Sequence[int] = (),
        input_scale: float = 1.0,
        environment_gain: float = 1.0,
        zero_environment_head: bool = False,
        latent_bounds: tuple[float, float] | None = None,
        learn_posterior: bool = True,
        n_observed: int | None = None,
        generator: torch.Generator | None = None,
        pieces: ColumnPieces | None = None,
    ) -> None:
        super().__init__()

        def network(contexts: Sequence[int], out_features: int) -> ConditionalNetwork:
            return build_network(
                featurizer,
                input_shape,
                contexts,
                out_features,
                hidden_dims=hidden_dims,
                representation_dim=representation_dim,
                input_scale=input_scale,
                generator=generator,
                pieces=pieces,
            )

        self.n_classes, self.n_environments, self.latent_dim = n_classes, n_environments, latent_dim
        self.environment_gain = environment_gain
        bounds = None if latent_bounds is None else torch.tensor(latent_bounds).repeat_interleave(latent_dim)
        self.bounds: Tensor | None
        self.register_buffer("bounds", None if bounds is None else bounds.view(-1, 1, 1, 1), persistent=False)
        self.g = network((n_classes, n_environments), 2 * latent_dim) if learn_posterior else None
        self.f0 = network((n_environments,), n_classes)
        self.h = network((), n_environments)
        self.f1 = multilayer(latent_dim, decoder_hidden_dims, n_classes, generator)
        # log p(observed environment given pseudo-environment), up to a constant; random, to break their symmetry.
        self.membership = None
        if n_observed is not None:
            self.membership = nn.Parameter(torch.randn(n_environments, n_observed, generator=generator) / 4)
        if zero_environment_head:
            nn.init.zeros_(self.h.head.weight)
            nn.init.zeros_(self.h.head.bias)

    @property
    def affine_layers(self) -> list[str]:
        """Linear layers whose weight and bias a stack keeps side by side."""
        networks = [(name, getattr(self, name)) for name in ("g", "f0", "h")]
        names = [
            f"{name}.{layer}" for name, network in networks if network is not None for layer in network.layer_names
        ]
        return [*names, *(f"f1.{i}" for i, layer in enumerate(self.f1) if isinstance(layer, nn.Linear))]

    def log_p_e_given_x(self, x: Tensor, plans: Plans | None = None) -> Tensor:
        """h, (m, B); `plans` as in `ConditionalNetwork.forward`."""
        return torch.log_softmax(self.environment_gain * self.h(x, plans), 0)

    def log_membership(self) -> Tensor:
        """log p(observed environment | pseudo-environment), (m, n_observed); it learns as fast as h does."""
        assert self.membership is not None, "every environment is its own"
        return torch.log_softmax(self.environment_gain * self.membership, 1)

    def log_p_observed_given_x(self, log_p_e_given_x: Tensor) -> Tensor:
        """log p(observed environment | x) from log p(e|x): (m, B) -> (n_observed, B)."""
        if self.membership is None:
            return log_p_e_given_x
        return torch.logsumexp(self.log_membership().T[:, :, None] + log_p_e_given_x, 1)

    def components_of(self, e: Tensor, log_p_e_given_x: Tensor) -> tuple[Tensor, Tensor]:
        """The components that stand for each row's observed environment, and its probability.

        Returns
        -------
        weights : (m, B)
            p(e | x, observed environment): a point mass where every environment is its own. Not differentiated.
        log_p : (B,)
            log p(observed environment | x).
        """
        if self.membership is None:
            return F.one_hot(e, self.n_environments).T.to(log_p_e_given_x), log_p_e_given_x.gather(0, e[None])[0]
        joint = self.log_membership()[:, e] + log_p_e_given_x
        return torch.softmax(joint.detach(), 0), torch.logsumexp(joint, 0)

    def log_p_y_given_xe(self, x: Tensor, plans: Plans | None = None) -> Tensor:
        """f0, (K, m, B)."""
        return torch.log_softmax(self.f0(x, plans), 0)

    def log_p_y_given_z(self, z: Tensor) -> Tensor:
        """f1, (L, ...) -> (K, ...)."""
        logits = self.f1(z.flatten(1).T).T  # (K, ...)
        return torch.log_softmax(logits, 0).view(-1, *z.shape[1:])

    def conditionals(
        self,
        x: Tensor,
        log_p_e_given_x: Tensor | None = None,
        plans: Plans | None = None,
        dtype: torch.dtype | None = None,
    ) -> Conditionals:
        """Everything the aggregates need for these rows; `log_p_e_given_x` (m, B) takes h's place when given.

        `plans`: see `ConditionalNetwork.forward`. `dtype`: with them, of mu and log_sigma where it is not that of x.
        """
        assert self.g is not None, "these posteriors are supplied, not learned"
        raw = self.g(x, plans)
        if plans is None:
            bounded = soft_bound(raw, self.bounds)
        else:  # of no use to anybody but these rows, or a copy: it can be bounded where it is
            bounded = raw.to(dtype or raw.dtype)
            if self.bounds is not None:
                bounds = self.bounds.to(dtype)
                bounded.div_(bounds).tanh_().mul_(bounds)
        mu, log_sigma = bounded.split(self.latent_dim)  # (L, K, m, B) each
        return Conditionals(
            mu=mu,
            log_sigma=log_sigma,
            log_p_y_given_xe=self.log_p_y_given_xe(x, plans),
            log_p_e_given_x=self.log_p_e_given_x(x) if log_p_e_given_x is None else log_p_e_given_x,
        )
