"""What can go wrong, by name."""

from __future__ import annotations

import sys
import warnings

CALLED_THROUGH = ("eber", "sklearn", "joblib")
"""Packages that stand between a user's line and a warning about it."""


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


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the library, however deep inside it (or inside scikit-learn) this is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in CALLED_THROUGH:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
