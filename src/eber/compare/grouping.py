"""Fewer environments out of many: similar ones put together.

The cost of EBER's step grows with the square of the number of environments. A group of environments is an environment
as well, whose distribution of the latent is the mixture of its members', so the model holds for groups as it does for
their members; what is lost is what differs within a group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

MAX_ENVIRONMENTS = 40


def group_environments(
    X: NDArray[np.float64], environments: NDArray[np.str_], seed: int, limit: int = MAX_ENVIRONMENTS
) -> NDArray[np.str_]:
    """The group of each row, by k-means of the environments' mean features; environments themselves up to `limit`.

    Parameters
    ----------
    X : array of shape (n, d)
    environments : array of shape (n,)

    Returns
    -------
    array of shape (n,)
        A group is called by its first member and how many more there are.
    """
    names, index = np.unique(environments, return_inverse=True)
    if len(names) <= limit:
        return environments
    counts = np.bincount(index)
    means = np.stack([np.bincount(index, weights=column) / counts for column in X.T], axis=1)
    # Small environments have noisy means and count by their rows.
    group = KMeans(limit, n_init=1, random_state=seed).fit_predict(means, sample_weight=counts)
    labels = np.empty(len(names), dtype=object)
    for g in np.unique(group):
        members = names[group == g]
        labels[group == g] = members[0] if len(members) == 1 else f"{members[0]} and {len(members) - 1} more"
    return labels[index].astype(str)
