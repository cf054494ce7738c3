"""Layers whose first weights come from a generator that is passed in.

They get the numbers that torch's own layers get from its global generator in the same state. That one belongs to the
whole process: whoever seeds it or draws from it does so for all threads.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def linear(in_features: int, out_features: int, generator: torch.Generator | None) -> nn.Linear:
    """`torch.nn.Linear`; from the global generator where none is given."""
    layer = nn.Linear(in_features, out_features, device="meta").to_empty(device=torch.get_default_device())
    draw_initial_weights(layer.weight, layer.bias, generator)
    return layer


def convolution(in_channels: int, out_channels: int, generator: torch.Generator | None) -> nn.Conv2d:
    """`torch.nn.Conv2d` of 3x3, with as many pixels out as in."""
    layer = nn.Conv2d(in_channels, out_channels, 3, padding=1, device="meta").to_empty(
        device=torch.get_default_device()
    )
    assert layer.bias is not None
    draw_initial_weights(layer.weight, layer.bias, generator)
    return layer


@torch.no_grad()
def draw_initial_weights(weight: Tensor, bias: Tensor, generator: torch.Generator | None) -> None:
    """As `reset_parameters` of both layers does it: the weight first, then the bias."""
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
    fan_in = weight[0].numel()
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    bias.uniform_(-bound, bound, generator=generator)
