"""What can go wrong, by name."""

from __future__ import annotations


class EnvironmentWarning(UserWarning):
    """The environments given to `fit` cannot do what the method needs them for."""


class FitWarning(UserWarning):
    """A fit shows a sign that its result should not be trusted as it stands."""


class AdaptationWarning(UserWarning):
    """An adaptation to new rows rests on too little to be trusted."""


class NonFiniteLossError(ArithmeticError):
    """The loss stopped being finite while training; nothing of that fit was kept."""


class ModelFileError(ValueError):
    """A saved model is truncated, altered, of another version, or not one of ours."""
