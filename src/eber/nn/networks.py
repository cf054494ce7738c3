"""Feature extractors and the networks on (x, y, e).

A network that is conditioned on categories answers for *all* of them at once; see `conditional_mlp`. Outputs have the
batch as their last axis: ``(out, K, m, B)``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eber.nn.column_pieces import ColumnPieces, through_pieces
from eber.nn.conditional_mlp import ConditionalMLP, MLPLayout, StackedMLP, single_mlp
from eber.nn.image_extractor import ConvolutionalExtractor
from eber.nn.initial_weights import linear
from eber.nn.stack import ModuleStack

Featurizer = str | Callable[..., nn.Module]
Plans = dict[tuple[nn.Module, int], StackedMLP]
"""Arrays of networks, by network and number of rows."""


class ConditionalNetwork(nn.Module):
    """A network on x and categorical contexts, evaluated for every combination of the contexts.

    Parameters
    ----------
    extractor : module or None
        Sees x alone and returns (B, in_features); `None` when x is a table row.
    in_features : int
        Width of what enters the first layer in place of x.
    contexts : sequence of int
        Number of categories of each context, for instance ``(K, m)`` for g(x, y, e), ``()`` for h(x).
    hidden_dims : sequence of int
        Widths of the ReLU layers. Where there are none and no linear representation either, each combination of the
        contexts has a linear head of its own.
    representation_dim : int or None
        Width of the linear layer before the head; `None` where the extractor already ends in a representation.
    out_features : int
    input_scale : float
        Factor on the initial weights that see x, so that y and e are heard from the start.
    generator : torch.Generator, optional
        What initial weights are drawn from; torch's global generator when not given.
    pieces : ColumnPieces, optional
        What the columns of a table row are cut into beside themselves.
    """

    def __init__(
        self,
        extractor: nn.Module | None,
        in_features: int,
        contexts: Sequence[int],
        hidden_dims: Sequence[int],
        representation_dim: int | None,
        out_features: int,
        input_scale: float = 1.0,
        generator: torch.Generator | None = None,
        pieces: ColumnPieces | None = None,
    ) -> None:
        super().__init__()
        self.extractor, self.pieces = extractor, pieces
        self.contexts = tuple(contexts)
        widths = [*hidden_dims, *([] if representation_dim is None else [representation_dim])]
        self.linear_representation = representation_dim is not None
        self.first = linear(in_features, widths[0], generator) if widths else None
        self.tables = nn.ParameterList([nn.Parameter(torch.empty(widths[0], size)) for size in contexts if widths])
        self.layers = nn.ModuleList([linear(a, b, generator) for a, b in pairwise(widths)])
        n_heads = 1 if widths else math.prod(contexts)
        self.head = linear(widths[-1] if widths else in_features, out_features * n_heads, generator)
        self._initialise_first_layer(in_features, input_scale, generator)

    def _initialise_first_layer(self, in_features: int, input_scale: float, generator: torch.Generator | None) -> None:
        """PyTorch's default for one layer on the concatenation [x; y; e], with the block that sees x scaled."""
        if self.first is None:
            return
        bound = 1 / math.sqrt(max(1, in_features + sum(self.contexts)))
        with torch.no_grad():
            for weight in (self.first.weight, self.first.bias, *self.tables):
                weight.uniform_(-bound, bound, generator=generator)
            self.first.weight.mul_(input_scale)

    def features(self, x: Tensor) -> Tensor:
        """What enters the first layer in place of x, (B, in_features)."""
        inner = self.extractor if self.pieces is None else self.pieces
        return x if inner is None else inner(x)

    def forward(self, x: Tensor, plans: Plans | None = None) -> Tensor:
        """Outputs for every combination of contexts, ``(out, *contexts, B)``.

        With `plans`, without autograd: arrays are kept there from call to call, and an output is valid until the next
        call. Parameters must not change meanwhile.
        """
        features = self.features(x)
        if plans is None:
            out: Tensor = ConditionalMLP.apply(features, self.layout, *self._learned())  # type: ignore[no-untyped-call]
            return out
        mlp = plans.get((self, len(x)))
        if mlp is None:
            mlp = plans[self, len(x)] = single_mlp(self.layout, features, self._learned())
        else:
            mlp.inputs[0, :, :-1] = features
        return mlp.forward()[0]

    def _learned(self) -> list[nn.Parameter]:
        """The tables, then weight and bias of each layer after the extractor."""
        layers = [f"{layer}.{part}" for layer in self.layer_names for part in ("weight", "bias")]
        return [self.get_parameter(name) for name in (*self.table_names, *layers)]

    @property
    def layout(self) -> MLPLayout:
        """How the parameters after the extractor are to be read."""
        n_layers = 0 if self.first is None else 1 + len(self.layers)
        return MLPLayout(len(self.tables), self.linear_representation, n_layers, () if n_layers else self.contexts)

    @property
    def table_names(self) -> list[str]:
        """Names of the contexts' tables."""
        return [f"tables.{i}" for i in range(len(self.tables))]

    @property
    def layer_names(self) -> list[str]:
        """Names of the linear layers after the extractor: the first, further ones, the head."""
        further = [f"layers.{i}" for i in range(len(self.layers))]
        return [*([] if self.first is None else ["first", *further]), "head"]


def build_network(
    featurizer: Featurizer,
    input_shape: Sequence[int],
    contexts: Sequence[int],
    out_features: int,
    *,
    hidden_dims: Sequence[int],
    representation_dim: int,
    input_scale: float = 1.0,
    generator: torch.Generator | None = None,
    pieces: ColumnPieces | None = None,
) -> ConditionalNetwork:
    """A conditional network on the named extractor.

    ``"linear"`` and ``"mlp"`` concatenate the contexts with x before the first layer. ``"cnn"`` and any callable
    (called as ``featurizer(input_shape, representation_dim)``, returning a module that maps x to
    (B, representation_dim)) see x alone; each combination of the contexts then has a linear head of its own on the
    features. A head on features and one-hot contexts together could not make y and e interact with x, and a hidden
    layer between them learns to only slowly.
    """
    common: dict[str, Any] = {"out_features": out_features, "input_scale": input_scale, "generator": generator}
    if featurizer in ("linear", "mlp"):
        if len(input_shape) != 1:
            raise ValueError(
                f"The {featurizer!r} featurizer needs a table of shape (rows, columns), got rows of shape "
                f"{tuple(input_shape)}. Use featurizer='cnn' for images."
            )
        hidden = tuple(hidden_dims) if featurizer == "mlp" else ()
        width = input_shape[0] + (0 if pieces is None else len(pieces.column))
        return ConditionalNetwork(None, width, contexts, hidden, representation_dim, **common, pieces=pieces)
    if featurizer == "cnn":
        if len(input_shape) != 3:
            raise ValueError(
                f"The 'cnn' featurizer needs images of shape (rows, channels, height, width), got rows of shape "
                f"{tuple(input_shape)}."
            )
        extractor: nn.Module = ConvolutionalExtractor(input_shape, representation_dim, generator=generator)
    elif callable(featurizer):
        extractor = _custom_extractor(featurizer, input_shape, representation_dim)
    else:
        raise ValueError(f"Unknown featurizer {featurizer!r}: choose 'linear', 'mlp', 'cnn', or give a callable.")
    return ConditionalNetwork(extractor, representation_dim, contexts, (), None, **common)


def _custom_extractor(
    featurizer: Callable[..., nn.Module], input_shape: Sequence[int], representation_dim: int
) -> nn.Module:
    """A module of a user's own, in a copy: the callable may hand out one and the same each time."""
    if isinstance(featurizer, nn.Module):
        raise TypeError(
            f"featurizer is a module ({type(featurizer).__name__}); give a callable that returns one, "
            "for instance lambda input_shape, representation_dim: module."
        )
    try:
        extractor = copy.deepcopy(featurizer(tuple(input_shape), representation_dim))
    except TypeError as error:
        raise TypeError(
            "The featurizer callable is called as featurizer(input_shape, representation_dim), here with "
            f"{tuple(input_shape)} and {representation_dim}, and returns a torch.nn.Module; it failed: {error}"
        ) from error
    if not isinstance(extractor, nn.Module):
        raise TypeError(f"The featurizer callable must return a torch.nn.Module, got {type(extractor).__name__}.")
    was_training = extractor.training
    extractor.eval()
    with torch.no_grad():
        shape = tuple(extractor(torch.zeros(2, *input_shape)).shape)
    extractor.train(was_training)
    if shape != (2, representation_dim):
        raise ValueError(
            f"The featurizer callable's module maps 2 rows to shape {shape}; it must map them to "
            f"(2, representation_dim={representation_dim})."
        )
    return extractor


def multilayer(
    in_features: int, hidden_dims: Sequence[int], out_features: int, generator: torch.Generator | None = None
) -> nn.Sequential:
    """Linear layers with ReLU between them; a single linear map when `hidden_dims` is empty."""
    widths = [in_features, *hidden_dims]
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [linear(a, b, generator), nn.ReLU()]
    return nn.Sequential(*layers, linear(widths[-1], out_features, generator))


class Classifier(nn.Module):
    """What the baselines train: a representation of x and a linear classifier on it."""

    def __init__(self, network: ConditionalNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Representation (B, R) and logits (B, K)."""
        features = self.network.features(x)
        representation, logits = _classify(self.network, lambda name: self.get_parameter(name)[None], features[None])
        return representation[0], logits[0]


def classify(stack: ModuleStack, x: Tensor) -> tuple[Tensor, Tensor]:
    """Representation (S, B, R) and logits (S, B, K) of S classifiers, each for its own rows (S, B, ...)."""
    networks = [module.network for module in stack.modules if isinstance(module, Classifier)]
    return _classify(networks[0], stack.parameter, stacked_features(networks, x))


def _classify(network: ConditionalNetwork, parameter: Callable[[str], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Layer by layer, with `parameter` giving the S models' parameters by name, (S, ...)."""

    def affine(layer: str, inputs: Tensor) -> Tensor:
        weight, bias = parameter(f"network.{layer}.weight"), parameter(f"network.{layer}.bias")
        return torch.baddbmm(bias[:, None], inputs, weight.mT)

    *layers, head = network.layer_names
    for i, layer in enumerate(layers):
        x = affine(layer, x)
        if network.layout.has_relu(i):
            x = torch.relu(x)
    return x, affine(head, x)


def stacked_features(networks: Sequence[ConditionalNetwork], x: Tensor) -> Tensor:
    """What enters the first layer of S networks, each for its own rows: (S, B, ...) -> (S, B, in_features)."""
    pieces = [network.pieces for network in networks if network.pieces is not None]
    if pieces:
        return through_pieces(pieces, x)
    if networks[0].extractor is None:
        return x
    features = [network.features(rows)[None] for network, rows in zip(networks, x, strict=True)]
    return features[0] if len(features) == 1 else torch.cat(features)


def loss_gradients(stack: ModuleStack, losses: Tensor, differentiable: bool = False) -> Tensor:
    """Gradients of n losses of each of S classifiers, (S, n) -> (n, S, P); see `ModuleStack.gradients`."""
    at_once = all(isinstance(module, Classifier) and module.network.extractor is None for module in stack.modules)
    return stack.gradients(losses, at_once=at_once, differentiable=differentiable)


def row_losses(logits: Tensor, y: Tensor) -> Tensor:
    """-log p(y|x) of every row: (S, B, K) and (S, B) -> (S, B)."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)
