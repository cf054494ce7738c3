"""The paper's four baselines: a representation of x, a linear classifier on it, and one of four objectives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from torch import nn

from eber.estimators.base import EnvironmentClassifier, FitJob
from eber.estimators.validation import encode_environments
from eber.exceptions import FitWarning, warn_user
from eber.method.inference import in_chunks
from eber.nn.networks import Classifier, build_network
from eber.objectives.base import Batch, Objective, PenaltySchedule
from eber.objectives.erm import ERMObjective
from eber.objectives.fishr import FishrObjective
from eber.objectives.irm import IRMObjective
from eber.objectives.vrex import VRExObjective
from eber.training import TrainingSettings, steps_in


class _Baseline(EnvironmentClassifier):
    """A network p(y|x), whatever its objective."""

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K) with columns as in `classes_`."""
        x, network = self._features(X), self.module_.network
        with torch.no_grad():
            proba = in_chunks(lambda rows: torch.softmax(self.module_(rows)[1], 1).T, x, network).T
        return np.ascontiguousarray(proba.numpy())

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The learned representation, (n, representation_dim)."""
        x, network = self._features(X), self.module_.network
        with torch.no_grad():
            representation = in_chunks(lambda rows: self.module_(rows)[0].T, x, network).T
        return np.ascontiguousarray(representation.numpy())

    @property
    def _n_features_out(self) -> int:
        return int(self.module_.network.head.in_features)

    def _build(self, attributes: dict[str, Any], generator: torch.Generator | None = None) -> nn.Module:
        return self._network(attributes["input_shape_"], len(attributes["classes_"]), generator)

    def _module(self) -> nn.Module:
        return self._network(self.input_shape_, len(self.classes_), torch.Generator())

    def _network(self, input_shape: Sequence[int], n_classes: int, generator: torch.Generator | None) -> Classifier:
        return Classifier(
            build_network(
                self.featurizer,
                input_shape,
                (),
                n_classes,
                hidden_dims=self.hidden_dims,
                representation_dim=self.representation_dim,
                input_scale=self.input_scale,
                generator=generator,
            )
        )


class ERMClassifier(_Baseline):
    """Empirical risk minimisation: pool all rows and ignore where they came from.

    Parameters
    ----------
    featurizer, hidden_dims, representation_dim
    epochs, batch_size, learning_rate, clip_norm, n_threads, random_state, verbose
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

    def __init__(
        self,
        *,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        average_decay: float | None = None,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.featurizer = featurizer
        self.hidden_dims = hidden_dims
        self.representation_dim = representation_dim
        self.input_scale = input_scale
        self.centre_features = centre_features
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.average_decay = average_decay
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        return ERMObjective()


class PenalisedClassifier(_Baseline):
    """A baseline with a penalty on how environments differ.

    Parameters
    ----------
    penalty_weight : float, default=1.0
        Weight of the penalty.
    anneal_fraction : float, default=0.0
        Share of the training steps before the penalty gets its full weight; until then IRM and V-REx use weight 1
        and Fishr weight 0. It is a fraction since absolute numbers of steps, tuned for long training, never switch
        on in a short one.
    anneal_steps : int or None, default=None
        Absolute number of steps in place of the fraction, as in DomainBed.
    reset_optimizer : bool, default=False
        Forget Adam's moments when annealing ends, as in DomainBed.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **EnvironmentClassifier._parameter_constraints,
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
        "anneal_fraction": [Interval(Real, 0, 1, closed="both")],
        "anneal_steps": [Interval(Integral, 0, None, closed="left"), None],
        "reset_optimizer": ["boolean"],
    }

    def __init__(
        self,
        *,
        penalty_weight: float = 1.0,
        anneal_fraction: float = 0.0,
        anneal_steps: int | None = None,
        reset_optimizer: bool = False,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        average_decay: float | None = None,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.penalty_weight = penalty_weight
        self.anneal_fraction = anneal_fraction
        self.anneal_steps = anneal_steps
        self.reset_optimizer = reset_optimizer
        self.featurizer = featurizer
        self.hidden_dims = hidden_dims
        self.representation_dim = representation_dim
        self.input_scale = input_scale
        self.centre_features = centre_features
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.average_decay = average_decay
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def _environment_attributes(self, environments: Any, y: NDArray[np.int64], classes: NDArray[Any]) -> dict[str, Any]:
        names, index = encode_environments(environments, y, classes, type(self).__name__)
        return {"environments_": names, "environment_index": index}

    def _anneal_steps(self, n_rows: int) -> int:
        if self.anneal_steps is not None:
            return self.anneal_steps
        return round(self.anneal_fraction * steps_in(n_rows, super()._settings(n_rows)))

    def _prepare(self, data: Batch, n_environments: int) -> Batch:
        steps = steps_in(len(data.y), super()._settings(len(data.y)))
        _, initial = self._penalised
        if self.anneal_steps is not None and self.anneal_steps >= steps and self.penalty_weight != initial:
            warn_user(
                f"The penalty never gets its weight of {self.penalty_weight:g}: anneal_steps={self.anneal_steps}, but "
                f"training has {steps} steps. Use anneal_fraction, or train longer.",
                FitWarning,
            )
        return data

    def _settings(self, n_rows: int) -> TrainingSettings:
        settings = super()._settings(n_rows)
        reset_at = self._anneal_steps(n_rows) if self.reset_optimizer else None
        return TrainingSettings(**{**vars(settings), "reset_optimizer_at": reset_at})

    @property
    @abstractmethod
    def _penalised(self) -> tuple[Callable[[PenaltySchedule, int], Objective], float]:
        """The objective, and the weight of its penalty before annealing ends."""

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        objective, initial = self._penalised
        weights = tuple(float(job.estimator.penalty_weight) for job in jobs)
        schedule = PenaltySchedule(weights, self._anneal_steps(len(jobs[0].data.y)), initial)
        return objective(schedule, len(jobs[0].attributes["environments_"]))


class IRMClassifier(PenalisedClassifier):
    """Invariant risk minimisation (Arjovsky et al. 2019).

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    @property
    def _penalised(self) -> tuple[Callable[[PenaltySchedule, int], Objective], float]:
        return IRMObjective, 1.0


class VRExClassifier(PenalisedClassifier):
    """Risk extrapolation by variance (V-REx; Krueger et al. 2021).

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    @property
    def _penalised(self) -> tuple[Callable[[PenaltySchedule, int], Objective], float]:
        return VRExObjective, 1.0


class FishrClassifier(PenalisedClassifier):
    """Invariant gradient variances (Fishr; Rame et al. 2022), with its moving average of 0.95.

    Parameters
    ----------
    penalty_weight, anneal_fraction, anneal_steps, reset_optimizer
        Weight and annealing of the penalty; see `PenalisedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    @property
    def _penalised(self) -> tuple[Callable[[PenaltySchedule, int], Objective], float]:
        return FishrObjective, 0.0
