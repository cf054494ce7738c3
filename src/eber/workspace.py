"""Arrays that are used again at every step."""

from __future__ import annotations

from torch import Tensor


class Workspace:
    """Named arrays that keep their memory: fresh ones of this size cost more, in page faults, than the work on them."""

    def __init__(self) -> None:
        self._arrays: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An array of the given shape with undefined content; what it held before is lost."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != like.dtype:
            array = self._arrays[name] = like.new_empty(shape)
        return array
