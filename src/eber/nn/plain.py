"""The networks as the paper draws them: `nn.Linear` on the concatenation [x; one-hot y; one-hot e].

`ConditionalNetwork` has the same function and the same weights in a form that is fast, with a gradient by hand. This
form is slow and has nothing to hide: with it, `EBERObjective` is autograd through plain layers from the loss down to
the weights, and it is what the hand-written gradients are judged by.
"""

from __future__ import annotations

import copy
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eber.nn.networks import ConditionalNetwork


class PlainNetwork(nn.Module):
    """A `ConditionalNetwork`'s weights in plain layers; it answers with the same numbers to rounding.

    Each combination of the contexts is evaluated on its own, as in the paper: g(x, y, e), f0(x, e) and h(x) of its
    method section are this network with contexts (y, e), (e) and none.

    Attributes
    ----------
    extractor : module or None
        Sees x alone.
    pieces : ColumnPieces or None
        What the columns of x are cut into beside themselves.
    layers : the layers on [x; one-hot contexts], the first of them on the concatenation
    heads : the linear layer of the output; one for each combination where there are no layers before it
    """

    def __init__(self, network: ConditionalNetwork) -> None:
        super().__init__()
        self.contexts, self.layout = network.contexts, network.layout
        self.extractor, self.pieces = copy.deepcopy(network.extractor), network.pieces
        weight, bias = network.head.weight.detach(), network.head.bias.detach()
        self.layers, self.heads = nn.ModuleList(), nn.ModuleList()
        if network.first is None:
            of_combination = weight.view(-1, self.n_combinations, weight.shape[1]).unbind(1)
            biases = bias.view(-1, self.n_combinations).unbind(1)
            self.heads.extend(_linear(w, b) for w, b in zip(of_combination, biases, strict=True))
            return
        joined = torch.cat([network.first.weight, *network.tables], 1)  # W = [W_x W_y W_e]
        self.layers.append(_linear(joined, network.first.bias))
        for i in range(len(network.layers)):
            weight_and_bias = (network.get_parameter(f"layers.{i}.{part}") for part in ("weight", "bias"))
            self.layers.append(_linear(*weight_and_bias))
        self.heads.append(_linear(weight, bias))

    @property
    def n_combinations(self) -> int:
        """Number of combinations of the contexts."""
        return len(list(product(*map(range, self.contexts))))

    def forward(self, x: Tensor, plans: object = None) -> Tensor:
        """As `ConditionalNetwork`'s, ``(out, *contexts, B)``; nothing is kept from call to call."""
        inner = self.extractor if self.pieces is None else self.pieces
        features = x if inner is None else inner(x)
        out = [self._of(i, features, combination) for i, combination in enumerate(product(*map(range, self.contexts)))]
        return torch.stack(out, 1).view(-1, *self.contexts, len(x))

    def _of(self, i: int, features: Tensor, combination: tuple[int, ...]) -> Tensor:
        """The output for one combination of the contexts, (out, B)."""
        if not self.layers:
            heads: Tensor = self.heads[i](features)
            return heads.T
        one_hot = [
            F.one_hot(torch.full((len(features),), category), size).to(features)
            for category, size in zip(combination, self.contexts, strict=True)
        ]
        hidden = torch.cat([features, *one_hot], 1)
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden)
            if self.layout.has_relu(number):
                hidden = torch.relu(hidden)
        out: Tensor = self.heads[0](hidden)
        return out.T

    def gradients(self) -> dict[str, Tensor]:
        """The gradients of the plain layers by the names and shapes of the `ConditionalNetwork`'s parameters."""
        found = {f"extractor.{name}": _grad(p) for name, p in (self.extractor or nn.Module()).named_parameters()}
        weights, biases = zip(*map(_gradients, self.heads), strict=True)
        found["head.weight"] = torch.stack(weights, 1).flatten(0, 1)
        found["head.bias"] = torch.stack(biases, 1).flatten()
        if not self.layers:
            return found
        first, *others = map(_gradients, self.layers)
        width = first[0].shape[1] - sum(self.contexts)
        found["first.weight"], *tables = first[0].split([width, *self.contexts], 1)
        found["first.bias"] = first[1]
        found |= {f"tables.{i}": table for i, table in enumerate(tables)}
        for i, (weight, bias) in enumerate(others):
            found[f"layers.{i}.weight"], found[f"layers.{i}.bias"] = weight, bias
        return found


def with_plain_layers(module: nn.Module) -> nn.Module:
    """A copy of a module of which every `ConditionalNetwork` is a `PlainNetwork` with the same weights."""
    plain = copy.deepcopy(module)
    for name, child in module.named_children():
        if isinstance(child, ConditionalNetwork):
            setattr(plain, name, PlainNetwork(child))
    return plain


def gradients_by_name(plain: nn.Module) -> dict[str, Tensor]:
    """The gradients of what `with_plain_layers` gave, by the names of the parameters of what it was made from."""
    networks = {name: child for name, child in plain.named_children() if isinstance(child, PlainNetwork)}
    found = {f"{name}.{key}": grad for name, child in networks.items() for key, grad in child.gradients().items()}
    own = {name: _grad(p) for name, p in plain.named_parameters() if name.split(".")[0] not in networks}
    return own | found


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def _gradients(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Of weight and bias."""
    assert isinstance(layer, nn.Linear)
    return _grad(layer.weight), _grad(layer.bias)


def _grad(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
