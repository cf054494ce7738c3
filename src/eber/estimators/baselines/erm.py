"""Empirical risk minimisation."""

from __future__ import annotations

from collections.abc import Sequence

from eber.estimators.base import FitJob
from eber.estimators.baselines.base import Baseline
from eber.objectives.base import Objective
from eber.objectives.erm import ERMObjective


class ERMClassifier(Baseline):
    """Empirical risk minimisation: pool all rows and ignore where they came from.

    Parameters
    ----------
    featurizer, hidden_dims, representation_dim
    epochs, batch_size, learning_rate, clip_norm, weight_decay, n_members, class_weight
    early_stopping, validation_fraction, n_iter_no_change, warm_start
    n_threads, random_state, verbose
        As for `EBERClassifier`.
    input_scale : float, default=1.0
        Factor on the initial first-layer weights: PyTorch's plain initialisation.
    centre_features : bool, default=False
        Train the last layer of ``"cnn"`` on centred features, as `EBERClassifier` does.
    average_decay : float or None, default=None
        Prediction uses the last weights, or a moving average of them with this decay.

    `environments` may be given to `fit` and is not used.

    Examples
    --------
    >>> from eber import ERMClassifier
    >>> from eber.datasets.parametric import draw
    >>> data = draw(random_state=0).train
    >>> ERMClassifier(epochs=1, random_state=0).fit(data.X, data.y).predict_proba(data.X).shape
    (3000, 2)
    """

    _uses_environments = False

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        return ERMObjective()
