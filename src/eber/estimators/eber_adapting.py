"""How EBER follows a new environment without labels: the mixture of training environments is estimated anew."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eber.estimators.eber_fitting import EBERFitting
from eber.estimators.explanation import Explanation
from eber.estimators.members import fitted_members
from eber.exceptions import AdaptationWarning, warn_user
from eber.method import inference
from eber.method.adaptation import Adaptation, adapt_mixture, mean_adaptation


class EBERAdapting(EBERFitting):
    """The part of `EBERClassifier` that adapts; its parameters are declared there."""

    adaptation_: Adaptation

    def adapt(self, X: Any, *, force: bool = False) -> Self:
        """A copy whose mixture of environments is re-estimated from unlabelled rows of a new environment.

        The copy predicts with p(e|x) pi_e / pi0_e, renormalised; the original is untouched. The estimate and the
        reasons not to trust it, if any, are in the copy's `adaptation_`; each reason is also warned of. Each of several
        members has its own estimate; `adaptation_` is then their mean.

        Where the fit knows what adapting did in training environments that were left out (`adaptation_record_`), the
        estimate is shrunk to the training mixture as was best there; and where it did not help there, the copy predicts
        as the original does, unless it is told to adapt by `force`.

        Parameters
        ----------
        X : rows, or what `explain` said about them, so that p(e|x) is not computed again
        force : bool, default=False
        """
        check_is_fitted(self)
        if self.prediction_weights != "learned":
            raise ValueError("adapt reweights the learned p(e|x); set prediction_weights='learned' first.")
        if isinstance(X, Explanation) and hasattr(self, "adaptation_"):
            raise ValueError("These rows were explained by an adapted classifier; give the rows themselves.")
        adapted = copy.copy(self)
        if members := fitted_members(self):
            adapted.members_ = [copy.copy(member) for member in members]
            for j, member in enumerate(adapted.members_):
                member.adaptation_ = member._adaptation_to(X, j)
            adapted.adaptation_ = mean_adaptation(adapted.member_adaptations())
        else:
            adapted.adaptation_ = self._adaptation_to(X)
        record = getattr(self, "adaptation_record_", None)
        if record is not None and not record.helped and not force:
            adapted._shrink_mixture(
                0.0, f"{record}; adapt(X, force=True), or predict --force-adapt, adapts all the same"
            )
        elif record is not None:
            adapted._shrink_mixture(record.strength)
        for reason in adapted.adaptation_.reasons:
            warn_user(f"Do not trust this adaptation: {reason}.", AdaptationWarning)
        return adapted

    def member_adaptations(self) -> list[Adaptation]:
        """What `adapt` found for each member, on the copy that it returned; one for a single fit."""
        return [member.adaptation_ for member in getattr(self, "members_", [self])]

    def _shrink_mixture(self, strength: float, *reasons: str) -> None:
        """Take an adaptation back, in part or wholly, and say why not to trust it."""
        for single in getattr(self, "members_", []):
            single._shrink_mixture(strength, *reasons)
        shrunk = self.adaptation_.shrunk(strength)
        self.adaptation_ = replace(shrunk, reasons=(*shrunk.reasons, *reasons))

    def _adaptation_to(self, X: Any, member: int = 0) -> Adaptation:
        """The mixture that explains rows best, before any earlier adaptation; `member` counts in an explanation."""
        if isinstance(X, Explanation):
            log_p_e = X.predictions[member].log_p_e_given_x
        else:
            x = self._features(X)
            with torch.no_grad():
                log_p_e = inference.in_chunks(self.module_.log_p_e_given_x, x, self.module_.h).T.numpy()  # (n, m)
        return adapt_mixture(log_p_e, self.environment_prior_, self._doubts_about_adaptation())

    def environment_mixture(self, *, before_adapting: bool = False) -> NDArray[np.float64]:
        """How much each training environment counts: the mixture that `adapt` estimated, else that of the fit.

        Parameters
        ----------
        before_adapting : bool, default=False
            That of the fit in any case.

        Returns
        -------
        array of shape (m,), entries as in `environments_`; with pseudo-environments, what they say of the environments
        that share them.
        """
        check_is_fitted(self)
        if hasattr(self, "members_"):
            each = [member.environment_mixture(before_adapting=before_adapting) for member in self.members_]
            mean: NDArray[np.float64] = np.mean(each, 0)
            return mean
        adapted = hasattr(self, "adaptation_") and not before_adapting
        mixture = self.adaptation_.mixture if adapted else self.environment_prior_
        with torch.no_grad():
            log_p = self.module_.log_p_observed_given_x(torch.from_numpy(np.log(np.maximum(mixture, 1e-300)))[:, None])
        p: NDArray[np.float64] = log_p[:, 0].exp().numpy()
        return p

    def _doubts_about_adaptation(self) -> tuple[str, ...]:
        doubts, fitted = [], self._fit_parameters
        if fitted["objective"] in ("stratified", "algorithm") and fitted["tie_weight"] == 0:
            doubts.append(
                f"the {fitted['objective']!r} objective with tie_weight=0 does not bind components to environments, so "
                "reweighting environments need not reweight what they stand for; fit with tie_weight > 0"
            )
        if fitted["env_loss_weight"] == 0:
            doubts.append("p(e|x) was learned without an environment loss; fit with env_loss_weight > 0")
        elif any(d.alarming and d.key == "environment_cross_entropy" for d in self.diagnostics_):
            doubts.append("p(e|x) does not find the training environments; see diagnostics_")
        return tuple(doubts)
