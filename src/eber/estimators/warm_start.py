"""A fit that goes on from the weights of an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from eber.nn.image_extractor import convolutional_parts

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

SAME = {
    "classes_": "classes",
    "input_shape_": "shape of a row",
    "feature_names_in_": "columns",
    "environments_": "environments",
}
"""What has to be as it was, by the attribute that keeps it."""


def goes_on(estimator: EnvironmentClassifier) -> bool:
    """Whether a fit starts from what the classifier has learned before."""
    return bool(estimator.warm_start) and (hasattr(estimator, "module_") or hasattr(estimator, "members_"))


def take_weights(estimator: EnvironmentClassifier, attributes: dict[str, Any], module: nn.Module) -> None:
    """Give a new module the weights of the earlier fit, refusing what does not fit them.

    Parameters
    ----------
    attributes : what the new fit knows of its rows
    """
    if hasattr(estimator, "members_"):
        raise ValueError(
            f"warm_start goes on from an average of {len(estimator.members_)} members, but n_members is "
            f"{estimator.n_members}: leave n_members as it was, or set warm_start=False."
        )
    for name, noun in SAME.items():
        before, now = getattr(estimator, name, None), attributes.get(name)
        if not np.array_equal(np.asarray(before), np.asarray(now)):
            raise ValueError(
                f"warm_start goes on from a fit with {noun} {_listed(before)}, but now {noun} {_listed(now)} "
                f"{'is' if name == 'input_shape_' else 'are'} given: set warm_start=False to start anew."
            )
    learned, wanted = estimator.module_.state_dict(), module.state_dict()
    if {name: value.shape for name, value in learned.items()} != {name: value.shape for name, value in wanted.items()}:
        raise ValueError(
            "warm_start goes on from networks of another shape: parameters such as hidden_dims, featurizer or "
            "latent_dim were changed after the fit. Put them back, or set warm_start=False."
        )
    module.load_state_dict(learned)
    for extractor in convolutional_parts(module):
        extractor.expect_centre()


def _listed(values: Any) -> str:
    if values is None:
        return "(none)"
    items = [str(value) for value in values]
    return ", ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")
