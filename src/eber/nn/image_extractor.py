"""The extractor of images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from eber.nn.initial_weights import convolution, linear

IMAGES_AT_ONCE = 128
CENTRING_IMAGES = 1024
"""Images from which the centre of the pooled features is worked out."""


class CentredFlatten(nn.Flatten):
    """Pooled features as rows v - c, with a centre c that is zero unless it is set."""

    centre: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(width), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        rows: Tensor = super().forward(x) - self.centre
        return rows


class ConvolutionalExtractor(nn.Module):
    """The paper's image extractor: two blocks of 3x3 convolution, ReLU and 2x2 max pooling, a linear layer, ReLU.

    ReLU is applied after pooling: the largest of four values is the same before and after a function that never
    decreases, and there are four times fewer of them. Channels come last in memory, in which order convolution and
    pooling are twice as fast on a CPU.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        representation_dim: int,
        channels: Sequence[int] = (16, 32),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        depth, height, width = image_shape
        if height < 4 or width < 4:
            raise ValueError(f"The 'cnn' featurizer pools twice: images must be at least 4x4, got {height}x{width}.")
        width_pooled = channels[1] * (height // 4) * (width // 4)
        self.layers = nn.Sequential(
            convolution(depth, channels[0], generator),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            convolution(channels[0], channels[1], generator),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            CentredFlatten(width_pooled),
            linear(width_pooled, representation_dim, generator),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        # A few images at a time, so that what one layer writes is still in the cache when the next one reads it.
        parts = x.contiguous(memory_format=torch.channels_last).split(IMAGES_AT_ONCE)
        return torch.cat([self.layers(part) for part in parts])

    @torch.no_grad()
    def centre(self, x: Tensor) -> None:
        """Let the linear layer see v - c in place of the pooled features v, with c their mean over these images.

        Pooled features are never negative, so that a step of Adam moves all weights of a unit together, and with them
        what the unit says of every image. Within a pass most units end below zero for all images, where ReLU has no
        gradient that could bring them back. What is centred has no such common part.
        """
        flatten, _ = self._last
        few = x[:: max(1, len(x) // CENTRING_IMAGES)].contiguous(memory_format=torch.channels_last)
        pooled = torch.cat([self.layers[:-2](part) for part in few.split(IMAGES_AT_ONCE)])
        flatten.centre += pooled.mean(0)

    @torch.no_grad()
    def absorb_centre(self) -> None:
        """W(v - c) + b = Wv + (b - Wc): the same function with a centre of zero."""
        flatten, linear = self._last
        linear.bias.sub_(linear.weight @ flatten.centre)
        flatten.centre.zero_()

    @torch.no_grad()
    def expect_centre(self) -> None:
        """The reverse: the same function as with a centre of zero, once a centre is set."""
        flatten, linear = self._last
        linear.bias.add_(linear.weight @ flatten.centre)

    @property
    def _last(self) -> tuple[CentredFlatten, nn.Linear]:
        flatten, linear = self.layers[-3], self.layers[-2]
        assert isinstance(flatten, CentredFlatten)
        assert isinstance(linear, nn.Linear)
        return flatten, linear


def convolutional_parts(module: nn.Module) -> list[ConvolutionalExtractor]:
    """The extractors of images in a module."""
    return [part for part in module.modules() if isinstance(part, ConvolutionalExtractor)]
