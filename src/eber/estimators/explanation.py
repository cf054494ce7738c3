"""Everything that EBER says about some rows, from one pass over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from eber.method.adaptation import Adaptation
from eber.method.aggregates import row_chunks
from eber.method.inference import Prediction, split_over_members, split_uncertainty
from eber.method.model import EBERNetworks


@dataclass(frozen=True)
class Explanation:
    """What `EBERClassifier.explain` returns: p(y|x), p(e|x), where the uncertainty comes from, and E[z|x].

    Attributes
    ----------
    classes, environments : (K,), (m,)
        What the columns stand for.
    predictions : tuple of Prediction
        Of each member of the classifier; one where it is a single fit. With pseudo-environments, these are the
        components.
    modules : tuple of EBERNetworks
        The members' networks.
    index : pandas Index or None
        That of the rows, where they came as a frame.
    """

    classes: NDArray[Any]
    environments: NDArray[Any]
    predictions: tuple[Prediction, ...]
    modules: tuple[EBERNetworks, ...]
    index: pd.Index | None = None

    @property
    def p_y_given_x(self) -> NDArray[np.float64]:
        """p(y|x) by the marginal rule, Equation (pred), the mean over members; (n, K)."""
        return _mean([prediction.p_y_given_x for prediction in self.predictions])

    @property
    def p_y_given_xe(self) -> NDArray[np.float64]:
        """p(y|x,e), the prediction if the environment were known, (n, components, K).

        The components are the environments, or the pseudo-environments where the fit has such. Members count as much as
        they hold the component for plausible, so that the mean over p(e|x) is p(y|x).
        """
        if len(self.predictions) == 1:
            return self.predictions[0].p_y_given_xe
        joint = _mean([p.p_e_given_x[:, :, None] * p.p_y_given_xe for p in self.predictions])
        return joint / np.maximum(joint.sum(2, keepdims=True), np.finfo(np.float64).tiny)

    @property
    def mean_z(self) -> NDArray[np.float64]:
        """E[z|x], (n, L); of several members side by side, since each has coordinates of its own."""
        return np.concatenate([prediction.mean_z for prediction in self.predictions], 1)

    @cached_property
    def p_e_given_x(self) -> NDArray[np.float64]:
        """p(e|x), how plausible each training environment is for each row, (n, m)."""
        return _mean(
            [
                observed_environments(module, prediction.log_p_e_given_x)
                for module, prediction in zip(self.modules, self.predictions, strict=True)
            ]
        )

    @cached_property
    def uncertainty(self) -> pd.DataFrame:
        """The entropy of each prediction and its split, in nats; see `EBERClassifier.explain_uncertainty`."""
        return pd.DataFrame(self._split, index=self.index)

    @cached_property
    def _split(self) -> dict[str, NDArray[np.float64]]:
        one, *others = self.predictions
        return split_over_members(self.predictions) if others else split_uncertainty(one)

    def adapted(self, adaptations: Sequence[Adaptation]) -> Explanation:
        """The same rows with each member's p(e|x) reweighted as `EBERClassifier.adapt` found; no network is asked."""
        pairs = zip(self.predictions, adaptations, strict=True)
        return replace(self, predictions=tuple(one.reweighted(adaptation.log_ratio) for one, adaptation in pairs))

    def columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Names and values of the columns of `to_frame`; different labels may have one name."""
        yield from answer_columns(self.classes, self.p_y_given_x)
        yield from self.further_columns()

    def further_columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Those after the probabilities: what only EBER says."""
        for name, values in self._split.items():
            yield f"uncertainty_{name}", values
        for j, values in enumerate(self.mean_z.T):
            yield f"z{j + 1}", values
        for name, values in zip(self.environments, self.p_e_given_x.T, strict=True):
            yield f"p(environment {name})", values

    def to_frame(self) -> pd.DataFrame:
        """A row for each row of X: the predicted label, p(y|x), the split of uncertainty, E[z|x], and p(e|x).

        Columns have the names that `eber predict` gives them; p(y|x,e) is left out.
        """
        names, values = zip(*self.columns(), strict=True)
        frame = pd.DataFrame(dict(enumerate(values)), index=self.index)
        return frame.set_axis(list(names), axis=1)


def _mean(answers: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Over members; that of one is itself, to the bit."""
    mean: NDArray[np.float64] = answers[0] if len(answers) == 1 else np.mean(answers, 0)
    return mean


def answer_columns(classes: NDArray[Any], p_y_given_x: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The predicted label and the probability of each label, (n,) each, with the columns' names."""
    yield "predicted", classes[p_y_given_x.argmax(1)]
    for label, p in zip(classes, p_y_given_x.T, strict=True):
        yield f"p({label})", p


def observed_environments(module: EBERNetworks, log_p_e_given_x: NDArray[np.float64]) -> NDArray[np.float64]:
    """p(e|x) of the environments in the data from log p(e|x) of the components: (n, components) -> (n, m)."""
    log_p = torch.from_numpy(log_p_e_given_x).T
    with torch.no_grad():
        elements = len(log_p) * (1 if module.membership is None else module.membership.shape[1])
        observed = [module.log_p_observed_given_x(log_p[:, rows]) for rows in row_chunks(log_p.shape[1], elements)]
        p: NDArray[np.float64] = torch.cat(observed, 1).exp().T.numpy()
    return p
