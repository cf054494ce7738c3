"""What all classifiers share: parameters, validation, the fit around the training loop, persistence."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from eber.estimators.batches import batch_rows, scaled_learning_rate
from eber.estimators.early_stopping import ENVIRONMENTS, ROWS, VALIDATION, Judge, hold_out
from eber.estimators.log_probabilities import LogProbabilitiesMixin
from eber.estimators.members import attributes_of_average
from eber.estimators.persistence import fitted_attributes, load_estimator, save_estimator
from eber.estimators.pieces import check_can_be_cut, columns_of_pieces, cut_columns, place_pieces
from eber.estimators.progress import epoch_progress
from eber.estimators.rows import Rows, checked_weights, training_weights
from eber.estimators.validation import (
    categories,
    check_batches,
    check_columns_are_numbers,
    check_finite,
    check_widths,
    distinct,
    index_type,
    plain,
    warn_of_lost_digits,
)
from eber.estimators.warm_start import goes_on, take_weights
from eber.exceptions import NonFiniteLossError
from eber.nn.image_extractor import convolutional_parts
from eber.objectives.base import Batch, Objective
from eber.training import (
    EpochCallback,
    History,
    TrainingSettings,
    isolated_torch,
    prepare_inference,
    steps_in,
    train,
)

STACK_ELEMENTS = 1 << 19
"""Largest array of a training step for all fits side by side: beyond it there is nothing left to gain."""
METHOD_PARAMETERS = {"penalty_weight", "bottleneck_weight", "step_size", "agreement", "quantile"}
"""Weights and the like, of which an objective holds one for each of the models of a stack."""
FREE_PARAMETERS = METHOD_PARAMETERS | {"random_state", "weight_decay", "verbose", "n_threads"}
"""Parameters in which fits that are trained side by side may differ."""
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_")
"""What scikit-learn's validation notes about X."""


class FitJob(NamedTuple):
    """A fit that has all it needs for the training loop."""

    estimator: EnvironmentClassifier
    attributes: dict[str, Any]
    data: Batch
    module: nn.Module
    settings: TrainingSettings
    generator: torch.Generator
    judge: Judge | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """What jobs must have in common to be trained side by side."""
        parameters = self.estimator.get_params(deep=False).items()
        fixed = tuple((name, repr(value)) for name, value in sorted(parameters) if name not in FREE_PARAMETERS)
        sizes = [tuple(p.shape) for p in self.module.parameters()]
        rows = len(self.data.y), self.data.weight is not None
        pieces = tuple(self.attributes.get("piece_columns_", ()))
        return (type(self.estimator), fixed, tuple(sizes), pieces, rows, self.n_environments, self.settings)

    @property
    def n_environments(self) -> int:
        """Environments that the fit knows; none where the method has no use for them."""
        return len(self.attributes.get("environments_", ()))

    def complete(self, outcome: History | NonFiniteLossError) -> None:
        """Hand the estimator what was learned, or raise what went wrong."""
        if isinstance(outcome, NonFiniteLossError):
            raise outcome
        self.estimator._complete(self, outcome)


def train_jobs(jobs: Sequence[FitJob], callback: EpochCallback | None = None) -> list[History | NonFiniteLossError]:
    """Train jobs of one shape side by side; what becomes of each, in their order.

    The callback is told of each pass, the means over the jobs, and ends the training when it says so.
    """
    first = jobs[0].estimator
    shown = any(job.estimator.verbose for job in jobs)
    name = type(first).__name__ + (f" × {len(jobs)}" if len(jobs) > 1 else "")
    with epoch_progress(name, first.epochs) if shown else nullcontext(None) as show:
        listeners = [listener for listener in (show, callback) if listener is not None]

        def on_epoch(done: int, terms: Mapping[str, float]) -> bool:
            answers = [listener(done, terms) for listener in listeners]
            return any(answers)

        return train(
            [job.module for job in jobs],
            first._objective(jobs),
            [job.data for job in jobs],
            jobs[0].settings,
            [job.generator for job in jobs],
            on_epoch if listeners else None,
            [float(job.estimator.weight_decay) for job in jobs],
            jobs[0].judge,  # of a job that is trained alone
        )


class EnvironmentClassifier(
    LogProbabilitiesMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    """Base of the classifiers. See `EBERClassifier` for the meaning of the shared parameters."""

    # These are asked for by default, so that Pipeline, cross_val_score and GridSearchCV hand them on.
    __metadata_request__fit = {"environments": True, "sample_weight": True, "callback": True}
    _uses_environments = True
    """Whether the objective looks at environments; where not, `fit` takes them and goes on without."""
    _answer_parameters: tuple[str, ...] = ()
    """Parameters that are read when the classifier is asked, and may be changed after the fit."""

    _parameter_constraints: dict[str, list[Any]] = {
        "featurizer": [StrOptions({"linear", "mlp", "cnn"}), callable],
        "hidden_dims": ["array-like"],
        "representation_dim": [Interval(Integral, 1, None, closed="left")],
        "column_pieces": [Interval(Integral, 2, None, closed="left"), None],
        "input_scale": [Interval(Real, 0, None, closed="neither")],
        "centre_features": ["boolean"],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "average_decay": [Interval(Real, 0, 1, closed="both"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "early_stopping": ["boolean", StrOptions({ROWS, ENVIRONMENTS})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        sample_weight: Any = None,
        callback: EpochCallback | None = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d), or array of shape (n, channels, height, width)
        y : array of shape (n,)
            Labels, strings or numbers.
        environments : array of shape (n,), optional
            The environment each row came from, strings or numbers. Without it, ERM needs nothing and the other
            methods treat all rows as one environment, with a warning.
        sample_weight : array of shape (n,), optional
            How much each row counts, from zero on; only ratios matter. A row of weight zero is left out. What is
            weighted in each objective: docs/weights.md.
        callback : callable, optional
            Called after each pass over the rows with its number, from 1, and a mapping of the mean loss and each of its
            terms by name, as they go into `history_`. Training ends early when it returns True; what was learned is
            kept then as at the end of any fit.

        Returns
        -------
        self
        """
        if self.n_members > 1:
            if callback is not None:
                raise ValueError(
                    f"callback follows a single fit, and n_members={self.n_members} asks for several: set n_members=1."
                )
            from eber.estimators.many_fits import fit_members  # which imports this module

            fit_members(self, X, y, environments, sample_weight)
            return self
        seed = self._draw_seed()
        with isolated_torch(seed, self.n_threads, self._draws_globally) as generator:
            job = self._begin(X, y, environments, seed, generator, sample_weight)
            (outcome,) = train_jobs([job], callback)
        job.complete(outcome)
        return self

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _begin(
        self,
        X: Any,
        y: Any,
        environments: Any,
        seed: int,
        generator: torch.Generator,
        sample_weight: Any = None,
    ) -> FitJob:
        """Everything up to the training loop; the estimator itself is not touched."""
        self._check_parameters()
        if y is not None:  # scikit-learn says what is missing
            y = categories(y, "y")
        # Validation notes the names and the number of the columns; on a copy, until the fit has succeeded.
        validated = copy.copy(self)
        X = validated._validate_X(X, y=y, reset=True)
        check_classification_targets(y)
        rows = Rows(X, y.ravel(), environments, checked_weights(sample_weight, len(X))).that_count()
        held = None
        if self.early_stopping and len(np.unique(rows.y)) > 1:
            what = ENVIRONMENTS if self.early_stopping == ENVIRONMENTS else ROWS
            rows, held = hold_out(rows, what, self.validation_fraction, seed, type(self).__name__)
        classes, encoded = distinct(rows.y)
        if len(classes) < 2:
            only = plain(classes[0])
            raise ValueError(f"y has only one class, {only!r}; a classifier needs rows of at least two classes.")
        attributes: dict[str, Any] = {"classes_": classes, "input_shape_": rows.X.shape[1:], "seed_": seed}
        attributes |= {name: getattr(validated, name) for name in COLUMN_ATTRIBUTES if hasattr(validated, name)}
        if held is not None and self.early_stopping == ENVIRONMENTS:
            attributes["validation_environments_"] = np.unique(np.asarray(held.environments))
        attributes |= self._environment_attributes(rows.environments, encoded, classes)
        e = attributes.pop("environment_index", np.zeros(len(rows.X), dtype=index_type(1)))
        weight = training_weights(self.class_weight, classes, encoded, rows.weight)
        data = Batch(torch.from_numpy(rows.X), torch.from_numpy(encoded), torch.from_numpy(e), weight=weight)
        job = self._job(attributes, data, generator)
        if held is None:
            return job
        return job._replace(judge=Judge(self, attributes, held, rows, self._first_judged_epoch(len(data.y))))

    def _job(self, attributes: dict[str, Any], data: Batch, generator: torch.Generator) -> FitJob:
        """The fit of rows that have been looked at, of which `attributes` says what they are."""
        data = self._prepare(data, len(attributes.get("environments_", ())))
        # A generator for the first weights alone; code of the user's own knows only torch's, which it has for itself.
        seed = attributes["seed_"]
        knots = cut_columns(self, data.x)
        if knots:
            attributes["piece_columns_"] = columns_of_pieces(knots)
        module = self._build(attributes, None if self._draws_globally else torch.Generator().manual_seed(seed))
        place_pieces(module, knots)
        if self.centre_features:
            for extractor in convolutional_parts(module):
                extractor.centre(data.x)
        if goes_on(self):
            take_weights(self, attributes, module)
        settings = self._settings(len(data.y))
        check_batches(module, len(data.y), settings.batch_size)
        return FitJob(self, attributes, data, module, settings, generator)

    def _complete(self, job: FitJob, history: History) -> None:
        """Take over what a successful fit has learned."""
        # Inference is in float64: no answer then depends on which rows it was asked together with.
        job.module.double()
        for extractor in convolutional_parts(job.module):
            extractor.absorb_centre()
        earlier, steps_before = (self.history_, self.n_steps_) if goes_on(self) else ({}, 0)
        attributes = {
            **job.attributes,
            "module_": job.module,
            "history_": {
                name: [*earlier.get(name, ()), *(epoch[name] for epoch in history)]
                for name in history[0]
                if name != VALIDATION
            },
            "n_steps_": steps_before + steps_in(len(job.data.y), replace(job.settings, epochs=len(history))),
        }
        if job.judge is not None:
            attributes["best_epoch_"] = job.judge.best_epoch
            attributes["validation_history_"] = [epoch[VALIDATION] for epoch in history]
        attributes |= self._finish(job.module, job.data, attributes)
        self._take_over(attributes)
        self._warn()

    def _complete_average(self, members: Sequence[Self]) -> None:
        """Take over what the members of an average have learned; each has warned of its own fit."""
        self._take_over(attributes_of_average(members) | self._finish_average(members))

    def _take_over(self, attributes: dict[str, Any]) -> None:
        # Only now is the estimator changed: a fit that failed has left it as it was, one that succeeded leaves nothing
        # of an earlier fit.
        for name in fitted_attributes(self):
            delattr(self, name)
        self.__dict__.update(attributes, _fit_parameters=self.get_params(deep=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        proba = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[proba.argmax(1)]
        return predicted

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K) with columns as in `classes_`."""

    @abstractmethod
    def transform(self, X: Any) -> NDArray[np.float64]:
        """The learned representation of each row."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a folder: weights as safetensors, the rest as JSON. Nothing is pickled."""
        check_is_fitted(self)
        prepare_inference()
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, featurizer: Callable[..., nn.Module] | None = None) -> Self:
        """Read a classifier that `save` wrote. No code from the folder is run.

        A featurizer that was a callable is not in the folder: pass it again.
        """
        return load_estimator(cls, path, featurizer)

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Number of columns of `transform`, for `get_feature_names_out`."""

    def _validate_X(self, X: Any, *, y: Any = None, reset: bool) -> NDArray[np.float32]:
        given, images = X, self.featurizer not in ("linear", "mlp")
        options: dict[str, Any] = {"dtype": np.float32, "ensure_all_finite": False, "allow_nd": images}
        # A cast of 1e300 to float32 overflows to infinity, which check_finite then reports with its column.
        with np.errstate(over="ignore"):
            check_columns_are_numbers(X)
            if reset:
                X, _ = validate_data(self, X, y, reset=True, y_numeric=False, **options)
            else:
                X = validate_data(self, X, reset=False, **options)
        names = getattr(self, "feature_names_in_", None)
        check_finite(X, names)
        if reset:
            warn_of_lost_digits(given, names)
        if not reset and X.shape[1:] != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {X.shape[1:]}, but {type(self).__name__} was fitted on {self.input_shape_}."
            )
        # A copy of what may only be read, such as the memory of a DataFrame, which torch would not share.
        return np.require(X, requirements=["C_CONTIGUOUS", "WRITEABLE"])

    def _features(self, X: Any) -> torch.Tensor:
        """Validated rows for inference, float64."""
        check_is_fitted(self)
        prepare_inference()
        return torch.from_numpy(self._validate_X(X, reset=False)).double()

    def _check_parameters(self) -> None:
        """Refuse what the declared constraints of the parameters let through."""
        check_widths("hidden_dims", self.hidden_dims)
        check_can_be_cut(self)

    def _settings(self, n_rows: int) -> TrainingSettings:
        return TrainingSettings(
            epochs=self.epochs,
            batch_size=batch_rows(self.batch_size, n_rows),
            learning_rate=scaled_learning_rate(self.learning_rate, self.batch_size, n_rows),
            clip_norm=self.clip_norm,
            average_decay=self.average_decay,
        )

    def _first_judged_epoch(self, n_rows: int) -> int:
        """The first pass whose weights early stopping may keep."""
        return 1

    def _environment_attributes(self, environments: Any, y: NDArray[Any], classes: NDArray[Any]) -> dict[str, Any]:
        """`environments_` and, for training only, `environment_index`."""
        return {}

    def _prepare(self, data: Batch, n_environments: int) -> Batch:
        """What is computed once for all rows before training."""
        return data

    @abstractmethod
    def _build(self, attributes: dict[str, Any], generator: torch.Generator | None = None) -> nn.Module:
        """The module to train, with its first weights from a generator, or from torch's global one."""

    @abstractmethod
    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        """The objective for jobs of this kind that are trained side by side."""

    @property
    def _draws_globally(self) -> bool:
        """Whether modules of the user's own take part in the fit, which may draw from torch's global generator."""
        return callable(self.featurizer)

    @property
    def _stackable(self) -> bool:
        """Whether fits of this kind are trained side by side at a gain."""
        return self.featurizer in ("linear", "mlp") and not self.early_stopping

    def _elements(self, job: FitJob) -> int:
        """Size of the largest array of a training step, for one fit."""
        return int(job.settings.batch_size * max(self.representation_dim, *job.attributes["input_shape_"]))

    @abstractmethod
    def _module(self) -> nn.Module:
        """A module of the fitted shape, to load weights into."""

    def _restore(self, name: str, value: Any) -> Any:
        """A fitted attribute as it was before it was saved as plain data."""
        return value

    def _finish(self, module: nn.Module, data: Batch, attributes: dict[str, Any]) -> dict[str, Any]:
        """Further fitted attributes, from the trained module."""
        return {}

    def _finish_average(self, members: Sequence[Self]) -> dict[str, Any]:
        """Further fitted attributes of an average, from its members."""
        return {}

    def _warn(self) -> None:
        """Say what the fit shows."""
