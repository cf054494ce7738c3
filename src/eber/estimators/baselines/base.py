"""What all baselines share: a representation of x, a linear classifier on it, parameters, annealing."""

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
from eber.estimators.members import averaged, side_by_side
from eber.estimators.pieces import pieces_of
from eber.estimators.rows import ClassWeight
from eber.estimators.validation import encode_environments
from eber.exceptions import FitWarning, warn_user
from eber.method.inference import in_chunks
from eber.nn.column_pieces import ColumnPieces
from eber.nn.networks import Classifier, build_network
from eber.objectives.base import Batch, Objective, PenaltySchedule
from eber.training import TrainingSettings, steps_in


class Baseline(EnvironmentClassifier):
    """A network p(y|x), whatever its objective. See `ERMClassifier` for the meaning of the parameters."""

    def __init__(
        self,
        *,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        column_pieces: int | None = None,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int | str = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        weight_decay: float = 0.0,
        n_members: int = 1,
        average_decay: float | None = None,
        class_weight: ClassWeight = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.featurizer = featurizer
        self.hidden_dims = hidden_dims
        self.representation_dim = representation_dim
        self.column_pieces = column_pieces
        self.input_scale = input_scale
        self.centre_features = centre_features
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.weight_decay = weight_decay
        self.n_members = n_members
        self.average_decay = average_decay
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    @averaged
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K) with columns as in `classes_`."""
        x, network = self._features(X), self.module_.network
        with torch.no_grad():
            proba = in_chunks(lambda rows: torch.softmax(self.module_(rows)[1], 1).T, x, network).T
        return np.ascontiguousarray(proba.numpy())

    @side_by_side
    def transform(self, X: Any) -> NDArray[np.float64]:
        """The learned representation, (n, representation_dim)."""
        x, network = self._features(X), self.module_.network
        with torch.no_grad():
            representation = in_chunks(lambda rows: self.module_(rows)[0].T, x, network).T
        return np.ascontiguousarray(representation.numpy())

    @property
    def _n_features_out(self) -> int:
        members = getattr(self, "members_", [self])
        return sum(int(member.module_.network.head.in_features) for member in members)

    def _environment_attributes(self, environments: Any, y: NDArray[Any], classes: NDArray[Any]) -> dict[str, Any]:
        if not self._uses_environments:
            return {}
        names, index = encode_environments(environments, y, classes, type(self).__name__)
        return {"environments_": names, "environment_index": index}

    def _build(self, attributes: dict[str, Any], generator: torch.Generator | None = None) -> nn.Module:
        pieces = pieces_of(attributes)
        return self._network(attributes["input_shape_"], len(attributes["classes_"]), generator, pieces)

    def _module(self) -> nn.Module:
        return self._network(self.input_shape_, len(self.classes_), torch.Generator(), pieces_of(vars(self)))

    def _network(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        generator: torch.Generator | None,
        pieces: ColumnPieces | None,
    ) -> Classifier:
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
                pieces=pieces,
            )
        )


class AnnealedClassifier(Baseline):
    """A baseline whose objective changes in the course of training.

    Parameters
    ----------
    anneal_fraction : float, default=0.0
        Share of the training steps before the objective takes its final form. It is a fraction since absolute numbers
        of steps, tuned for long training, never switch on in a short one.
    anneal_steps : int or None, default=None
        Absolute number of steps in place of the fraction, as in DomainBed.
    reset_optimizer : bool, default=False
        Forget Adam's moments when annealing ends, as in DomainBed.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **Baseline._parameter_constraints,
        "anneal_fraction": [Interval(Real, 0, 1, closed="both")],
        "anneal_steps": [Interval(Integral, 0, None, closed="left"), None],
        "reset_optimizer": ["boolean"],
    }

    def __init__(
        self,
        *,
        anneal_fraction: float = 0.0,
        anneal_steps: int | None = None,
        reset_optimizer: bool = False,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        column_pieces: int | None = None,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int | str = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        weight_decay: float = 0.0,
        n_members: int = 1,
        average_decay: float | None = None,
        class_weight: ClassWeight = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            featurizer=featurizer,
            hidden_dims=hidden_dims,
            representation_dim=representation_dim,
            column_pieces=column_pieces,
            input_scale=input_scale,
            centre_features=centre_features,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            weight_decay=weight_decay,
            n_members=n_members,
            average_decay=average_decay,
            class_weight=class_weight,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            n_threads=n_threads,
            random_state=random_state,
            verbose=verbose,
        )
        self.anneal_fraction = anneal_fraction
        self.anneal_steps = anneal_steps
        self.reset_optimizer = reset_optimizer

    def _anneal_steps(self, n_rows: int) -> int:
        if self.anneal_steps is not None:
            return self.anneal_steps
        return round(self.anneal_fraction * steps_in(n_rows, super()._settings(n_rows)))

    def _prepare(self, data: Batch, n_environments: int) -> Batch:
        steps, never = steps_in(len(data.y), super()._settings(len(data.y))), self._left_out()
        if self.anneal_steps is not None and self.anneal_steps >= steps and never is not None:
            warn_user(
                f"{never}: anneal_steps={self.anneal_steps}, but training has {steps} steps. Use anneal_fraction, or "
                "train longer.",
                FitWarning,
            )
        return data

    def _first_judged_epoch(self, n_rows: int) -> int:
        """After annealing, before which the objective is another one; the last pass where that never ends."""
        per_epoch = -(-n_rows // super()._settings(n_rows).batch_size)
        return min(1 + -(-self._anneal_steps(n_rows) // per_epoch), self.epochs)

    @abstractmethod
    def _left_out(self) -> str | None:
        """What never happens where training ends before annealing does, as half a sentence."""

    def _settings(self, n_rows: int) -> TrainingSettings:
        settings = super()._settings(n_rows)
        reset_at = self._anneal_steps(n_rows) if self.reset_optimizer else None
        return TrainingSettings(**{**vars(settings), "reset_optimizer_at": reset_at})


class PenalisedClassifier(AnnealedClassifier):
    """A baseline with a weighted penalty.

    Parameters
    ----------
    penalty_weight : float, default=1.0
        Weight of the penalty.
    anneal_fraction : float, default=0.0
        Share of the training steps before the penalty gets its full weight; until then IRM, V-REx and IB-IRM use
        weight 1 and the others weight 0.
    anneal_steps, reset_optimizer
        See `AnnealedClassifier`.

    The other parameters are those of `ERMClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AnnealedClassifier._parameter_constraints,
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
    }
    _initial_weight = 0.0
    """Weight of the penalty before annealing ends."""

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
        column_pieces: int | None = None,
        input_scale: float = 1.0,
        centre_features: bool = False,
        epochs: int = 50,
        batch_size: int | str = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        weight_decay: float = 0.0,
        n_members: int = 1,
        average_decay: float | None = None,
        class_weight: ClassWeight = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        n_threads: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            anneal_fraction=anneal_fraction,
            anneal_steps=anneal_steps,
            reset_optimizer=reset_optimizer,
            featurizer=featurizer,
            hidden_dims=hidden_dims,
            representation_dim=representation_dim,
            column_pieces=column_pieces,
            input_scale=input_scale,
            centre_features=centre_features,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            weight_decay=weight_decay,
            n_members=n_members,
            average_decay=average_decay,
            class_weight=class_weight,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            n_threads=n_threads,
            random_state=random_state,
            verbose=verbose,
        )
        self.penalty_weight = penalty_weight

    def _left_out(self) -> str | None:
        if self.penalty_weight == self._initial_weight:
            return None
        return f"The penalty never gets its weight of {self.penalty_weight:g}"

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        return self._penalised(self._schedule(jobs, "penalty_weight", self._initial_weight), jobs)

    def _schedule(self, jobs: Sequence[FitJob], parameter: str, initial: float) -> PenaltySchedule:
        """The weights of that name of all jobs, which anneal together."""
        weights = tuple(float(getattr(job.estimator, parameter)) for job in jobs)
        return PenaltySchedule(weights, self._anneal_steps(len(jobs[0].data.y)), initial)

    @abstractmethod
    def _penalised(self, schedule: PenaltySchedule, jobs: Sequence[FitJob]) -> Objective:
        """The objective with its penalty."""
