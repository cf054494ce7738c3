"""How EBER is fitted: the networks and the objective that its parameters ask for, and what is looked at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from eber.estimators.base import EnvironmentClassifier, FitJob
from eber.estimators.pieces import pieces_of
from eber.estimators.supplied import checked_posteriors, supplied_weights
from eber.estimators.validation import check_widths, encode_environments
from eber.exceptions import FitWarning, warn_user
from eber.method import inference
from eber.method.adaptation import Adaptation, AdaptationRecord
from eber.method.diagnostics import Diagnostic, diagnose
from eber.method.distributions import MAX_QUADRATURE_DIM
from eber.method.integration import automatic_method, integration_rule
from eber.method.model import EBERNetworks
from eber.nn.column_pieces import ColumnPieces
from eber.objectives.base import Batch, ModelByModel, Objective
from eber.objectives.eber import EBERObjective, ExpectationRule
from eber.objectives.eber_supplied import SuppliedEBERObjective
from eber.objectives.fused.objective import FusedEBERObjective
from eber.objectives.fused.sampled_mixture import N_SAMPLED

MAX_EXACT_ENVIRONMENTS = 32
"""Up to here ``coupling="auto"`` uses all environments for every row; above, that costs clearly more and gains nothing
(docs/speed.md)."""
LARGE_BATCH = 1_024
"""Batches from which on that holds for pseudo-environments, too. Below, a fit costs little, and keeps exact ones."""
TRAINING_NODES, MIN_TRAINING_NODES = 8, 4
"""Quadrature nodes for each latent axis while training, by default and at least."""


class EBERFitting(EnvironmentClassifier):
    """The part of `EBERClassifier` that the training loop deals with; its parameters are declared there."""

    def _environment_attributes(self, environments: Any, y: NDArray[Any], classes: NDArray[Any]) -> dict[str, Any]:
        names, index = encode_environments(environments, y, classes, type(self).__name__)
        return {"environments_": names, "environment_index": index}

    def _prepare(self, data: Batch, n_environments: int) -> Batch:
        self._check_fit()
        log_weights = supplied_weights(self.training_weights, data.x, n_environments)
        return data if log_weights is None else replace(data, log_p_e_given_x=log_weights.float())

    def _build(self, attributes: dict[str, Any], generator: torch.Generator | None = None) -> nn.Module:
        K, m = len(attributes["classes_"]), len(attributes["environments_"])
        latent_dim = attributes["latent_dim_"] = K - 1 if self.latent_dim == "auto" else int(self.latent_dim)
        if self.expectation == "quadrature" and latent_dim > MAX_QUADRATURE_DIM:
            raise ValueError(
                f"expectation='quadrature' needs latent_dim <= {MAX_QUADRATURE_DIM}, got {latent_dim}; use 'sample'."
            )
        linear_decoder = len(self.decoder_hidden_dims) == 0
        method = attributes["auto_prediction_"] = automatic_method(K, latent_dim, linear_decoder)
        # Refuses, before the fit, what prediction could not use after it.
        if self.prediction == "expansion" and not linear_decoder:
            raise ValueError("prediction='expansion' needs a linear decoder: leave decoder_hidden_dims empty.")
        if self.prediction != "auto" or method == "quadrature":
            integration_rule(latent_dim, self.prediction, self.prediction_points, seed=0)
        return self._networks(attributes["input_shape_"], K, m, latent_dim, generator, pieces_of(attributes))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_widths("decoder_hidden_dims", self.decoder_hidden_dims)
        bounds = self.latent_bounds
        if bounds is not None and not (len(bounds) == 2 and all(bound > 0 for bound in bounds)):
            raise ValueError(
                f"latent_bounds is {bounds!r}; give two positive numbers, for the means and for the log standard "
                "deviations, or None."
            )
        if self.pseudo_environments is not None:
            for name in ("training_weights", "prediction_weights", "posteriors"):
                if getattr(self, name) != "learned":
                    raise ValueError(f"pseudo_environments are learned: {name} must be 'learned', too.")
        if callable(self.posteriors) and self.objective != "stratified":
            raise ValueError(f"Supplied posteriors need objective='stratified', got {self.objective!r}.")

    def _check_fit(self) -> None:
        """Refuse parameters that would do harm or nothing in this fit; warn where h would not learn.

        Not looked at when a model is loaded: what an earlier version fitted stays readable.
        """
        if callable(self.posteriors) and (self.expectation != "sample" or self.expectation_points is not None):
            raise ValueError("Supplied posteriors are summed on their grid: leave expectation and its points alone.")
        if self.expectation == "quadrature" and self._expectation_points < MIN_TRAINING_NODES:
            raise ValueError(
                f"expectation_points={self.expectation_points}: so few quadrature nodes do not see how wide a "
                f"component is, which then runs to its bounds. Give at least {MIN_TRAINING_NODES}, or None."
            )
        if self.coupling == "sampled" and not self._fused:
            raise ValueError(
                "coupling='sampled' needs objective='stratified' with learned posteriors and one sample from each "
                "component; use 'auto' or 'exact'."
            )
        untouched = self.objective == "collapsed" or self.training_weights != "learned"
        if untouched and self.env_loss_weight == 0 and self.prediction_weights == "learned":
            warn_user(
                "p(e|x) is not learned: neither the objective nor an environment loss trains it, and prediction weighs "
                "the environments by what it was at the start. Use env_loss_weight > 0, or say "
                "prediction_weights='uniform'.",
                FitWarning,
            )

    @property
    def _expectation_points(self) -> int:
        """Samples from each component while training, or nodes for each latent axis."""
        if self.expectation_points is not None:
            return int(self.expectation_points)
        return TRAINING_NODES if self.expectation == "quadrature" else 1

    @property
    def _fused(self) -> bool:
        """Whether the objective is the one whose gradient is written by hand."""
        single_sample = self.expectation == "sample" and self._expectation_points == 1
        return self.objective == "stratified" and single_sample and not callable(self.posteriors)

    @property
    def _stackable(self) -> bool:
        return super()._stackable and self._fused

    def _elements(self, job: FitJob) -> int:
        K, L = len(job.attributes["classes_"]), job.attributes["latent_dim_"]
        m = self.pseudo_environments or len(job.attributes["environments_"])
        draws = N_SAMPLED if self._sampled(m, job.settings.batch_size) else m
        return int(job.settings.batch_size * K * m * max(L * draws, self.representation_dim, *self.hidden_dims))

    def _sampled(self, n_environments: int, batch_size: int) -> bool:
        """Whether the couplings use environments drawn from p(e|x,y) instead of all."""
        if self.coupling != "auto":
            return self.coupling == "sampled"
        if self.pseudo_environments is not None:
            return self.pseudo_environments > MAX_EXACT_ENVIRONMENTS and batch_size >= LARGE_BATCH
        return n_environments > MAX_EXACT_ENVIRONMENTS

    def _objective(self, jobs: Sequence[FitJob]) -> Objective:
        attributes = jobs[0].attributes
        n_classes, n_environments = len(attributes["classes_"]), len(attributes["environments_"])
        latent_dim = attributes["latent_dim_"]
        weights = {"env_loss_weight": self.env_loss_weight, "tie_weight": self.tie_weight}
        if self._fused:
            return FusedEBERObjective(**weights, sampled=self._sampled(n_environments, jobs[0].settings.batch_size))
        if callable(self.posteriors):
            posteriors = checked_posteriors(self.posteriors, n_classes, n_environments, latent_dim)
            return ModelByModel(SuppliedEBERObjective(posteriors, **weights))
        rule = ExpectationRule(latent_dim, self._expectation_points, self.expectation == "quadrature")
        return ModelByModel(EBERObjective(self.objective, rule, **weights))

    def _networks(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        n_environments: int,
        latent_dim: int,
        generator: torch.Generator | None,
        pieces: ColumnPieces | None,
    ) -> EBERNetworks:
        gain = self.environment_gain
        if gain == "auto":
            gain = 8.0 if self.env_loss_weight > 0 else 1.0
        return EBERNetworks(
            input_shape,
            n_classes,
            self.pseudo_environments or n_environments,
            latent_dim,
            featurizer=self.featurizer,
            hidden_dims=self.hidden_dims,
            representation_dim=self.representation_dim,
            decoder_hidden_dims=self.decoder_hidden_dims,
            input_scale=self.input_scale,
            environment_gain=float(gain),
            zero_environment_head=self.zero_environment_head,
            latent_bounds=None if self.latent_bounds is None else (self.latent_bounds[0], self.latent_bounds[1]),
            learn_posterior=not callable(self.posteriors),
            n_observed=n_environments if self.pseudo_environments else None,
            generator=generator,
            pieces=pieces,
        )

    def _module(self) -> nn.Module:
        sizes = len(self.classes_), len(self.environments_), self.latent_dim_
        return self._networks(self.input_shape_, *sizes, torch.Generator(), pieces_of(vars(self)))

    def _finish(self, module: nn.Module, data: Batch, attributes: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(module, EBERNetworks)
        prior = inference.mean_p_e_given_x(module, data.x, data.weight)
        found = diagnose(module, data.x, data.y, data.e, self.training_weights == "learned", data.weight)
        return {"environment_prior_": prior / prior.sum(), "diagnostics_": found}

    def _finish_average(self, members: Sequence[Self]) -> dict[str, Any]:
        return {
            "environment_prior_": np.mean([member.environment_prior_ for member in members], 0),
            "diagnostics_": [diagnostic for member in members for diagnostic in member.diagnostics_],
        }

    def _warn(self) -> None:
        for diagnostic in self.diagnostics_:
            if diagnostic.alarming:
                warn_user(str(diagnostic), FitWarning)

    def _restore(self, name: str, value: Any) -> Any:
        if name == "diagnostics_":
            return [Diagnostic.from_saved(**entry) for entry in value]
        if name == "adaptation_":
            return Adaptation(**value)
        if name == "adaptation_record_":
            return AdaptationRecord(**value)
        return super()._restore(name, value)
