"""Random conditionals and networks in float64, where brute force can judge."""

from __future__ import annotations

from collections.abc import Callable

import torch

from eber.method.aggregates import Conditionals
from eber.method.model import EBERNetworks
from eber.objectives.base import Batch

MakeConditionals = Callable[..., Conditionals]


def make_conditionals(seed: int, K: int = 2, m: int = 3, L: int = 1, B: int = 4) -> Conditionals:
    """Conditionals with every weight and density of ordinary size."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    return Conditionals(
        mu=1.5 * normal(L, K, m, B),
        log_sigma=0.4 * normal(L, K, m, B) - 0.3,
        log_p_y_given_xe=torch.log_softmax(normal(K, m, B), 0),
        log_p_e_given_x=torch.log_softmax(normal(m, B), 0),
    )


def make_networks(seed: int, K: int = 2, m: int = 3, L: int = 1, d: int = 4, **options: object) -> EBERNetworks:
    """Networks with random weights in float64."""
    settings: dict[str, object] = {
        "featurizer": "mlp",
        "hidden_dims": (5,),
        "representation_dim": 6,
        "input_scale": 0.3,
        "environment_gain": 2.0,
        "latent_bounds": (5.0, 3.0),
        **options,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return EBERNetworks((d,), K, m, L, **settings).double()  # type: ignore[arg-type]


def make_batch(seed: int, K: int = 2, m: int = 3, d: int = 4, B: int = 7) -> Batch:
    """A random minibatch in float64."""
    g = torch.Generator().manual_seed(seed)
    return Batch(
        torch.randn(B, d, generator=g, dtype=torch.float64),
        torch.randint(0, K, (B,), generator=g),
        torch.randint(0, m, (B,), generator=g),
    )
