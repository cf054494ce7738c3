"""EBER as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from eber.estimators.eber_adapting import EBERAdapting
from eber.estimators.explanation import Explanation, observed_environments
from eber.estimators.members import averaged, fitted_members, side_by_side
from eber.estimators.rows import ClassWeight
from eber.estimators.supplied import EnvironmentWeights, checked_posteriors, supplied_weights
from eber.estimators.validation import index_of
from eber.method import inference
from eber.method.aggregates import Rule
from eber.method.integration import Expansion, automatic_method, integration_rule
from eber.method.posteriors import SuppliedPosteriors
from eber.method.theorem import decomposition_table, theorem_rows
from eber.nn.networks import Plans
from eber.objectives.eber import READINGS

PAPER_FORM: dict[str, Any] = {
    "tie_weight": 0.0,
    "input_scale": 1.0,
    "centre_features": False,
    "environment_gain": 1.0,
    "zero_environment_head": False,
    "latent_bounds": None,
    "average_decay": None,
}
"""What to pass for the paper's plain form: no tie, PyTorch's initialisation, no bounds, the last weights."""
DECOMPOSITION_SAMPLES = 64
"""Samples from each component for `decompose`, where no quadrature is: each is compared with every component, and the
table averages over rows besides."""


class EBERClassifier(EBERAdapting):
    """Empirical-Bayes Environment-Robust classification.

    Environments change the distribution of a latent z, while p(x|z) and p(y|z) stay. Four networks are learned:
    g(x,y,e), a diagonal Gaussian q(z;x,y,e); f0(x,e), which gives p(y|x,e); h(x), which gives p(e|x); and f1(z), which
    gives p(y|z). A new row, whatever environment it comes from, is predicted by the marginal rule

        p(y|x) = sum_e p(e|x) ∫ p(y|z) q(z;x,e) dz,      q(z;x,e) = sum_k p(k|x,e) q(z;x,k,e).

    Features should be standardised (`sklearn.preprocessing.StandardScaler` in a `Pipeline`).

    Parameters
    ----------
    featurizer : {"linear", "mlp", "cnn"} or callable, default="mlp"
        Feature extractor of g, f0 and h. A callable is called as ``featurizer(input_shape, representation_dim)`` and
        returns an `nn.Module` that maps rows to (rows, representation_dim); each network trains a copy of its own, as
        far as the module's parameters ask for gradients.
    hidden_dims : sequence of int, default=(16,)
        Widths of the hidden layers of ``"mlp"``.
    representation_dim : int, default=32
        Width of the representation.
    column_pieces : int or None, default=None
        Let the networks see, beside each column of more than two values, at most so many pieces of it between its
        quantiles in the training rows, in which a linear layer can bend (`eber.nn.column_pieces`): small networks
        then follow steps and thresholds as trees do. Of all columns together there are no more than 384 pieces, or
        two for each, and none with more than 384 columns. Not for images and extractors of one's own.
    latent_dim : int or "auto", default="auto"
        Dimension of z. ``"auto"`` is the number of classes minus one (1 for two classes, as in the paper): what a
        linear f1 needs to express any p(y|z).
    objective : {"stratified", "algorithm", "decomposed", "collapsed"}, default="stratified"
        Reading of the paper's objective; see `eber.objectives.eber`.
    env_loss_weight : float, default=1.0
        The paper's lambda_env, weight of the environment loss.
    tie_weight : float, default=0.5
        Weight of the tie, L_e of the observed environment, under ``"stratified"`` and ``"algorithm"`` (the other two
        contain it). It binds components to their environments, which `adapt` needs. Not in the paper: 0 there.
    expectation : {"sample", "quadrature"}, default="sample"
        Expectations over z while training: reparametrised samples, or Gauss-Hermite quadrature (latent_dim <= 2).
    expectation_points : int or None, default=None
        Samples from each component (None: 1), or quadrature nodes for each latent axis (None: 8).
    coupling : {"auto", "exact", "sampled"}, default="auto"
        Environments whose draws of z enter the couplings while training, under the default objective: all of them,
        exact in e at a cost that grows with m², or two drawn from p(e|x,y) for each row, an unbiased estimate with an
        unbiased gradient at a cost that grows with m. ``"auto"`` is exact up to 32 environments, and for more
        `pseudo_environments` in batches below 1,024. Other objectives, more samples and quadrature use all always.
    prediction : {"auto", "expansion", "quadrature", "monte_carlo"}, default="auto"
        Integration over z for prediction. ``"auto"`` is the closed form for two classes and a linear f1, else
        Gauss-Hermite quadrature up to two latent dimensions; above, for a linear f1, a second-order expansion with
        quasi-random points for the components that need them (docs/method.md), and otherwise Monte Carlo.
    prediction_points : int or None, default=None
        Nodes for each latent axis (None: 32, or 16 in two dimensions), samples from each component (None: 1000, as in
        the paper; 64 for `decompose`), or points for each component that the expansion is too coarse for (None: 256;
        at least four for each latent dimension).
    decoder_hidden_dims : sequence of int, default=()
        Hidden layers of f1; a linear map when empty.
    input_scale : float, default=0.3
        Factor on the initial first-layer weights that see x, so that y and e are heard from the start. PyTorch's
        plain initialisation: 1. Extractors of images and of one's own start as they are.
    centre_features : bool, default=True
        Train the last layer of the ``"cnn"`` extractor on centred features, without which its ReLU units die in the
        first passes. What is fitted is the same kind of network. The paper's plain form: False. Other extractors take
        no part.
    environment_gain : float or "auto", default="auto"
        Factor on h's output, a larger step for the environment classifier. ``"auto"`` is 8 with an environment loss
        and 1 without. The paper's plain form: 1.
    zero_environment_head : bool, default=True
        Start h at the uniform distribution. The paper's plain form: False.
    latent_bounds : pair of float or None, default=(5.0, 3.0)
        Soft bounds of the components' means and log standard deviations, b·tanh(·/b). The paper's plain form: None.
    average_decay : float or None, default=0.98
        Prediction uses an exponential moving average of the weights with this decay. The paper's plain form: None.
    pseudo_environments : int or None, default=None
        Number of learned components that the environments share, in place of one component for each: p(e|x), p(y|x,e)
        and q(z;x,y,e) are then of pseudo-environments, and each environment of the data is a mixture of them. Thousands
        of environments cost what so many components cost. The paper's Discussion proposes such a mixture (VampPrior).
    training_weights, prediction_weights : "learned", "uniform" or callable, default="learned"
        Environment weights p(e|x) while training and at prediction. A callable maps X (n, d) to (n, m), columns as in
        `environments_`. `prediction_weights` is read at prediction and may be changed after `fit`.
    posteriors : "learned" or callable, default="learned"
        Posteriors q(z;x,y,e). A callable maps X to an `eber.method.posteriors.GridPosterior`; there is no g then, and
        the objective must be ``"stratified"``.
    epochs : int, default=50
    batch_size : int or "auto", default=64
        Rows of a step. ``"auto"`` is 64 below 100,000 rows and twice as many with each doubling of the rows from there
        on, up to 1024, with a learning rate that grows with its square root (docs/scale.md).
    learning_rate : float, default=1e-3
        Adam's; under ``batch_size="auto"``, that of batches of 64.
    clip_norm : float or None, default=None
        Largest norm of the gradient.
    weight_decay : float, default=0.0
        Decoupled weight decay, as in AdamW: each step first multiplies all weights, but not biases, by
        1 - learning_rate · weight_decay. With Adam's 1e-3 and some thousand steps, values from 1 to 10 are felt.
    n_members : int, default=1
        Fits with seeds of their own that are trained side by side and answer together: probabilities are averages over
        members, `transform` has the columns of all. The first member is the fit that a single one would be.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of rows by class (1 for classes that are not named); ``"balanced"`` gives every class the
        same total weight. Probabilities are then those of a population with such shares (docs/weights.md).
    early_stopping : bool, "rows" or "environments", default=False
        Hold out rows of every class and environment (``"rows"``, or True), or whole environments, and end the training
        when their NLL has not improved for `n_iter_no_change` passes; the weights of the best pass are kept. What is
        held out is not learned from: an environment that was is not in `environments_`. Epochs before a penalty has its
        full weight do not count. ``"environments"`` needs three of them. Such fits are trained one by one.
    validation_fraction : float, default=0.1
        Share of the rows, or of the environments, that is held out; one environment at least.
    n_iter_no_change : int, default=10
        Passes without a better held-out NLL after which training ends.
    warm_start : bool, default=False
        Whether a further `fit` goes on from the weights of the last, `epochs` passes more, on rows of the same classes,
        columns and environments; `history_` and `n_steps_` are of all of them. Adam and annealing start anew, and an
        integer `random_state` draws what it drew before.
    n_threads : int, default=1
        Torch threads for the fit. Small fits are faster with one.
    random_state : int, RandomState or None, default=None
        The same integer gives the same fit to the bit on the same machine.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_, environments_ : arrays
        Labels and environments seen, sorted.
    history_ : dict of lists
        Mean of each loss term in each epoch: loss, likelihood, kl, posterior_coupling, prior_coupling,
        environment_loss, tie.
    diagnostics_ : list of `eber.method.diagnostics.Diagnostic`
        Signs of a bad fit; those that are alarming were warned of.
    best_epoch_, validation_history_, validation_environments_
        With `early_stopping`: the pass whose weights were kept, from 1, the held-out NLL after each pass, and the
        environments that were held out.
    latent_dim_ : int
        Dimension of z.
    auto_prediction_ : {"closed_form", "quadrature", "expansion", "expansion_float32", "monte_carlo"}
        What ``prediction="auto"`` stands for in this fit; it is saved, so that a model goes on answering as it did.
    n_steps_, seed_, input_shape_
        Steps that the fit took, the seed that it drew from `random_state`, and the shape of a row.
    environment_prior_ : array of shape (m,)
        Mean of p(e|x) over the training rows; of pseudo-environments, where there are such.
    adaptation_ : `eber.method.adaptation.Adaptation`
        On the copies that `adapt` returns.
    adaptation_record_ : `eber.method.adaptation.AdaptationRecord`
        Where settings were chosen by leaving environments out (`eber.EnvironmentSearch`): what adapting did there.
    module_ : the fitted networks
    members_ : list of `EBERClassifier`
        In place of `module_`, where there are several members; `history_` and `environment_prior_` are then means.

    Examples
    --------
    >>> from eber import EBERClassifier
    >>> from eber.datasets.parametric import draw
    >>> data = draw(random_state=0)
    >>> clf = EBERClassifier(epochs=10, random_state=0)
    >>> clf = clf.fit(data.train.X, data.train.y, environments=data.train.environments)
    >>> bool(clf.score(data.test.X, data.test.y) > 0.9)  # environments that were not in the training data
    True
    """

    _answer_parameters = ("prediction", "prediction_points", "prediction_weights", "posteriors")
    _parameter_constraints: dict[str, list[Any]] = {
        **EBERAdapting._parameter_constraints,
        "latent_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "objective": [StrOptions(set(READINGS))],
        "env_loss_weight": [Interval(Real, 0, None, closed="left")],
        "tie_weight": [Interval(Real, 0, None, closed="left")],
        "expectation": [StrOptions({"sample", "quadrature"})],
        "expectation_points": [Interval(Integral, 1, None, closed="left"), None],
        "coupling": [StrOptions({"auto", "exact", "sampled"})],
        "prediction": [StrOptions({"auto", "expansion", "quadrature", "monte_carlo"})],
        "prediction_points": [Interval(Integral, 1, None, closed="left"), None],
        "decoder_hidden_dims": ["array-like"],
        "environment_gain": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "zero_environment_head": ["boolean"],
        "latent_bounds": ["array-like", None],
        "pseudo_environments": [Interval(Integral, 1, None, closed="left"), None],
        "training_weights": [StrOptions({"learned", "uniform"}), callable],
        "prediction_weights": [StrOptions({"learned", "uniform"}), callable],
        "posteriors": [StrOptions({"learned"}), callable],
    }

    def __init__(
        self,
        *,
        featurizer: str | Callable[..., nn.Module] = "mlp",
        hidden_dims: Sequence[int] = (16,),
        representation_dim: int = 32,
        column_pieces: int | None = None,
        latent_dim: int | str = "auto",
        objective: str = "stratified",
        env_loss_weight: float = 1.0,
        tie_weight: float = 0.5,
        expectation: str = "sample",
        expectation_points: int | None = None,
        coupling: str = "auto",
        prediction: str = "auto",
        prediction_points: int | None = None,
        decoder_hidden_dims: Sequence[int] = (),
        input_scale: float = 0.3,
        centre_features: bool = True,
        environment_gain: float | str = "auto",
        zero_environment_head: bool = True,
        latent_bounds: tuple[float, float] | None = (5.0, 3.0),
        average_decay: float | None = 0.98,
        pseudo_environments: int | None = None,
        training_weights: str | EnvironmentWeights = "learned",
        prediction_weights: str | EnvironmentWeights = "learned",
        posteriors: str | SuppliedPosteriors = "learned",
        epochs: int = 50,
        batch_size: int | str = 64,
        learning_rate: float = 1e-3,
        clip_norm: float | None = None,
        weight_decay: float = 0.0,
        n_members: int = 1,
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
        self.latent_dim = latent_dim
        self.objective = objective
        self.env_loss_weight = env_loss_weight
        self.tie_weight = tie_weight
        self.expectation = expectation
        self.expectation_points = expectation_points
        self.coupling = coupling
        self.prediction = prediction
        self.prediction_points = prediction_points
        self.decoder_hidden_dims = decoder_hidden_dims
        self.input_scale = input_scale
        self.centre_features = centre_features
        self.environment_gain = environment_gain
        self.zero_environment_head = zero_environment_head
        self.latent_bounds = latent_bounds
        self.average_decay = average_decay
        self.pseudo_environments = pseudo_environments
        self.training_weights = training_weights
        self.prediction_weights = prediction_weights
        self.posteriors = posteriors
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.weight_decay = weight_decay
        self.n_members = n_members
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper_form(cls, **parameters: Any) -> Self:
        """A classifier in the paper's plain form, without what the default recipe adds; see `PAPER_FORM`."""
        return cls(**{**PAPER_FORM, **parameters})

    def explain(self, X: Any) -> Explanation:
        """Everything that the model says about rows, from one pass over them.

        Returns
        -------
        Explanation with `p_y_given_x` (n, K), `p_y_given_xe` (n, m, K), `p_e_given_x` (n, m), `uncertainty`, `mean_z`
        (n, latent_dim), and `to_frame()`. `predict_proba`, `predict_environment_proba`, `explain_uncertainty` and
        `transform` are its parts. Other classifiers have `predict_proba` alone.
        """
        members = fitted_members(self) or [self]
        predictions = tuple(member._predict_single(X) for member in members)
        index = X.index if isinstance(X, pd.DataFrame) else None
        modules = tuple(member.module_ for member in members)
        return Explanation(self.classes_, self.environments_, predictions, modules, index)

    def _predict_single(self, X: Any) -> inference.Prediction:
        x, posteriors = self._features(X), self._posteriors()
        with torch.no_grad():
            weights = self._log_p_e_given_x(x)
            return inference.predict(self.module_, x, self._integral(), weights, posteriors)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x) by the marginal rule, Equation (pred); (n, K) with columns as in `classes_`."""
        return self.explain(X).p_y_given_x

    @averaged
    def predict_environment_proba(self, X: Any) -> NDArray[np.float64]:
        """p(e|x): how plausible each training environment is for each row; (n, m), columns as in `environments_`."""
        x = self._features(X)  # h alone answers this: the other networks are not asked
        with torch.no_grad():
            log_p = self._log_p_e_given_x(x)
        return observed_environments(self.module_, log_p.T.numpy())

    @side_by_side
    def transform(self, X: Any) -> NDArray[np.float64]:
        """E[z|x], the learned representation; (n, latent_dim)."""
        x, posteriors = self._features(X), self._posteriors()  # no integral over z is needed for its mean
        with torch.no_grad():
            return inference.mean_latent(self.module_, x, self._log_p_e_given_x(x), posteriors)

    def explain_uncertainty(self, X: Any) -> pd.DataFrame:
        """Where the uncertainty of each row's prediction comes from, in nats.

        Returns
        -------
        DataFrame with columns ``total``, the entropy of p(y|x); ``within_environments``, the mean entropy of p(y|x,e)
        over p(e|x); and ``between_environments``, the mutual information of y and e given x. The last two add up to
        the first. A large last one says: the answer depends on the environment, and x does not tell which it is.
        With several members these two are means over members, and a further column ``between_members``, the mutual
        information of y and the member, is what remains to the total: what more rows or other seeds would change.
        """
        return self.explain(X).uncertainty

    def decompose(self, X: Any, y: Any, *, environments: Any) -> pd.DataFrame:
        """Theorem 1 as a table: L = E[L_e] + R(q).

        Returns
        -------
        DataFrame with a row for L_e of each environment, then for their mean, the posterior and prior discrepancies,
        R(q), their sum, the lower bound L computed on its own, and the residual between the two. Column ``model``
        takes all expectations under the model's own p(e|x) and p(y|x,e) at the rows X, where the theorem is an
        identity and the residual is rounding. Column ``observed`` takes y and e as observed; its residual says how far
        the model's conditionals are from those of the data.
        """
        x = self._features(X)
        if hasattr(self, "members_"):
            raise ValueError("decompose is about one fit: ask a member for its own, as in members_[0].decompose(...).")
        if self.posteriors != "learned":
            raise ValueError("decompose needs learned posteriors; these were supplied on a grid.")
        if self.module_.membership is not None:
            raise ValueError("decompose needs a component for each environment; fit with pseudo_environments=None.")
        labels = index_of(y, self.classes_, len(x), "y", "class")
        index = index_of(environments, self.environments_, len(x), "environments", "environment")
        with torch.no_grad():
            rule = integration_rule(
                self.latent_dim_, self.prediction, self.prediction_points, self.seed_, samples=DECOMPOSITION_SAMPLES
            )
            rows = theorem_rows(self.module_, x, rule, self._log_p_e_given_x(x))
        return decomposition_table(rows, labels, index, self.environments_)

    @property
    def _n_features_out(self) -> int:
        return int(self.latent_dim_) * len(getattr(self, "members_", [self]))

    def _check_answers(self) -> None:
        """Refuse parameters that were changed after the fit to what cannot be answered."""
        self._validate_params()
        if callable(self.posteriors) == (self.module_.g is not None):
            fitted = "learned" if self.module_.g is not None else "supplied"
            raise ValueError(f"posteriors is {self.posteriors!r}, but this fit's posteriors were {fitted}: fit again.")

    def _integral(self) -> Rule | Expansion | None:
        """How p(y|z) is integrated over a component for prediction; None stands for the closed form."""
        method = self.prediction
        if method == "auto":
            # A model of an earlier version has not kept what "auto" stands for, and did not know the expansion.
            linear = len(self.module_.f1) == 1
            earlier = automatic_method(len(self.classes_), self.latent_dim_, linear, expand=False)
            method = getattr(self, "auto_prediction_", earlier)
        if method == "closed_form":
            return None
        if method in ("expansion", "expansion_float32"):
            dtype = torch.float64 if method == "expansion" else torch.float32
            return Expansion.with_points(self.latent_dim_, self.prediction_points, self.seed_, dtype)
        return integration_rule(self.latent_dim_, method, self.prediction_points, self.seed_)

    def _log_p_e_given_x(self, x: Tensor) -> Tensor:
        """The weights that prediction uses, (m, n)."""
        self._check_answers()
        log_p = supplied_weights(self.prediction_weights, x, len(self.environments_))
        if log_p is not None:
            return log_p
        plans = Plans()
        log_p = inference.in_chunks(lambda rows: self.module_.log_p_e_given_x(rows, plans), x, self.module_.h)
        if hasattr(self, "adaptation_"):
            log_p = torch.log_softmax(log_p + torch.from_numpy(self.adaptation_.log_ratio)[:, None], 0)
        return log_p

    def _posteriors(self) -> SuppliedPosteriors | None:
        """The supplied posteriors, if they are."""
        if not callable(self.posteriors):
            return None
        return checked_posteriors(self.posteriors, len(self.classes_), len(self.environments_), self.latent_dim_)
