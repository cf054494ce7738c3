"""The penalty weights that an experiment tries: one grid for all methods, or one of a method's own.

The paper prints the weight that each method ended up with. ``--set penalty_weights_irm=10 --set
penalty_weights_vrex=10 --set penalty_weights_fishr=0.1`` is a run with those of its sepsis experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eber.methods import Method

NONE_OF_ITS_OWN = (0.0,)
_PARAMETERS = {"IRM": "penalty_weights_irm", "V-REx": "penalty_weights_vrex", "Fishr": "penalty_weights_fishr"}

OWN_GRIDS: dict[str, tuple[float, ...]] = dict.fromkeys(_PARAMETERS.values(), NONE_OF_ITS_OWN)
"""Parameters of an experiment, with their defaults: 0 stands for those of `penalty_weights`."""


def penalty_grid(method: Method, parameters: Mapping[str, Any]) -> tuple[float, ...]:
    """The weights to try of a method, by an experiment's parameters."""
    own = parameters.get(_PARAMETERS.get(method.name, ""), NONE_OF_ITS_OWN)
    return method.grid(parameters["penalty_weights"]) if own == NONE_OF_ITS_OWN else tuple(own)
