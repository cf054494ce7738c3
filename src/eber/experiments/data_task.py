"""What the four data experiments share: split, prepare on training environments, fit, score on the held-out one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier
from eber.evaluation.metrics import score
from eber.experiments.data_files import SINCE_THE_RUN, DataFiles
from eber.experiments.data_rows import ABLATIONS, build_classifier, penalty_parameter
from eber.experiments.penalty_grids import penalty_grid
from eber.experiments.tuned_rows import TUNED, Chosen, choose_settings, fit_chosen, is_search, tuned_candidates
from eber.leaks.audit import LeakAudit, leak_audit
from eber.methods import find_method
from eber.model_selection import find_rule
from eber.runs.cell import ADAPTED, LEAKED_ROWS, MAIN, PENALTY_WEIGHT, Cell, CellResult
from eber.runs.fitting import FittedMethod, Preparation, Steps, WeightSearch, fit, unchanged
from eber.runs.results import Results

_SHARED_PARAMETERS = ("hidden_dims", "representation_dim", "epochs", "batch_size", "learning_rate", "clip_norm")

Split = tuple[MultiEnvironmentData, MultiEnvironmentData]


class Transformer(Protocol):
    """What of scikit-learn's transformers is used here."""

    def fit(self, X: NDArray[Any]) -> Self: ...

    def transform(self, X: NDArray[Any]) -> NDArray[Any]: ...


def learned_on_training(make: Callable[[], Transformer]) -> Preparation:
    """Fit a transformer to the training rows, apply it to both."""

    def prepare(train: MultiEnvironmentData, other: MultiEnvironmentData) -> Split:
        transformer = make().fit(train.X)
        # Columns may have been dropped; nothing downstream needs their names.
        first, second = (replace(data, X=transformer.transform(data.X), feature_names=()) for data in (train, other))
        return first, second

    return prepare


@dataclass(frozen=True)
class Analysis:
    """What an experiment has to say about a fitted EBER: further scores and arrays of its main variant."""

    scores: Mapping[str, float]
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class DataTask:
    """What each data experiment has of its own.

    Parameters
    ----------
    split : callable
        Parameters, data folder and seed -> training and held-out data, not yet prepared.
    files : DataFiles
        What `split` reads.
    featurizer : str
    metrics : tuple of str
    prepare : Preparation
        Learned from training rows.
    oracles : mapping
        Name to callable: held-out data -> p(y|x), shape (n, 2).
    analyse : callable, optional
        (EBER, training data, held-out data), both prepared -> Analysis.
    audit : callable, optional
        (training data, held-out data), neither prepared -> LeakAudit. What it finds is kept, and warned of, once a
        seed, by EBER, whose score `LEAKED_ROWS` also says that nothing was found. None where rows are not to be
        compared.
    """

    split: Callable[[Mapping[str, Any], Path, int], Split]
    files: DataFiles
    featurizer: str
    metrics: tuple[str, ...]
    prepare: Preparation = unchanged
    oracles: Mapping[str, Callable[[MultiEnvironmentData], NDArray[np.float64]]] | None = None
    analyse: Callable[[EBERClassifier, MultiEnvironmentData, MultiEnvironmentData], Analysis] | None = None
    audit: Callable[[MultiEnvironmentData, MultiEnvironmentData], LeakAudit] | None = leak_audit

    def run(self, cell: Cell) -> Steps[CellResult]:
        """Fit one method on the training environments, score it on the held-out one."""
        if cell.data_dir is None:
            raise ValueError(f"Experiment {cell.experiment!r} reads data files: say in which folder they are.")
        self.files.require_unchanged(cell.data_dir, cell.data)
        result = yield from self._compute(cell, cell.data_dir)
        self.files.require_unchanged(cell.data_dir, cell.data)
        return result

    def read_again(self, results: Results, setting: str) -> Split:
        """The split of the first seed, not prepared, for a figure; other data than the results are of are refused."""
        data_dir, data = Path(results.run["data_dir"]), results.run["data"]
        self.files.require_unchanged(data_dir, data, SINCE_THE_RUN)
        found = self.split(results.experiment.resolve(setting, results.run["overrides"]), data_dir, 0)
        self.files.require_unchanged(data_dir, data, SINCE_THE_RUN)
        return found

    def _compute(self, cell: Cell, data_dir: Path) -> Steps[CellResult]:
        raw_train, raw_test = self.split(cell.parameters, data_dir, cell.seed)
        if self.oracles and cell.method in self.oracles:
            return self._run_oracle(cell.method, raw_test)
        if cell.method in TUNED.values():
            return (yield from self._run_tuned(cell, raw_train, raw_test))
        rows = self if cell.method in ABLATIONS or find_method(cell.method).is_network else self._on_flat_rows()
        train, test = rows.prepare(raw_train, raw_test)
        shared = self._shared_parameters(cell)
        extra: dict[str, float] = {}
        if weight := penalty_parameter(cell.method):
            search = rows._search(cell.method, cell.parameters)
            choice = yield from search.run(
                lambda value: build_classifier(cell.method, {**shared, weight: value}, cell.parameters),
                raw_train,
                cell.seed,
            )
            extra = {PENALTY_WEIGHT: choice.weight}
            shared |= {weight: choice.weight}
        fitted = yield from fit(build_classifier(cell.method, shared, cell.parameters), train)
        scores, seconds, right = self._score(fitted, test)
        result = CellResult({MAIN: {**scores, **extra}}, {MAIN: seconds}, {"correct": right})
        classifier = fitted.classifier
        if isinstance(classifier, EBERClassifier):
            result = replace(result, arrays={**result.arrays, **_assigned(classifier, test)})
        if cell.method == "EBER":
            assert isinstance(classifier, EBERClassifier)
            result = self._with_eber_extras(result, FittedMethod(classifier, fitted.seconds), classifier, train, test)
            if self.audit:
                audit = self.audit(raw_train, raw_test)
                audit.warn()
                leaked = np.isin(np.arange(len(test)), audit.leaked_rows).astype(np.uint8)
                main = {**result.scores[MAIN], LEAKED_ROWS: float(leaked.sum())}
                result = replace(
                    result,
                    scores={**result.scores, MAIN: main},
                    arrays={**result.arrays, "leaked": leaked},
                    findings=audit.findings,
                )
        return result

    def _run_tuned(
        self, cell: Cell, raw_train: MultiEnvironmentData, raw_test: MultiEnvironmentData
    ) -> Steps[CellResult]:
        """A method of the paper with settings that are chosen by leaving training environments out, or that search."""
        method = next(name for name, row in TUNED.items() if row == cell.method)
        shared = self._shared_parameters(cell)

        def make(candidate: Mapping[str, Any]) -> Any:
            return build_classifier(method, {**shared, **candidate}, cell.parameters)

        if is_search(cell.setting):
            candidates = tuned_candidates(method, make({}), penalty_grid(find_method(method), cell.parameters))
            rows = cell.parameters.get("selection_rows", 0)
            chosen = yield from choose_settings(make, candidates, raw_train, self.prepare, rows, cell.seed)
            return CellResult({}, {}, chosen.arrays)
        (search,) = cell.parts.values()
        chosen = Chosen.from_arrays(search.arrays)
        train, test = self.prepare(raw_train, raw_test)
        fitted = yield from fit_chosen(make, chosen.settings, train)
        scores, seconds, right = self._score(fitted, test)
        return CellResult({MAIN: scores}, {MAIN: seconds}, {"correct": right, **chosen.arrays})

    def _on_flat_rows(self) -> DataTask:
        """The same task for a classifier of any kind, which knows no images: a row is a vector of numbers."""

        def prepare(train: MultiEnvironmentData, other: MultiEnvironmentData) -> Split:
            first, second = (
                replace(data, X=data.X.reshape(len(data), -1), feature_names=()) for data in self.prepare(train, other)
            )
            return first, second

        return replace(self, prepare=prepare)

    def _run_oracle(self, name: str, test: MultiEnvironmentData) -> CellResult:
        assert self.oracles is not None
        start = time.perf_counter()
        proba = self.oracles[name](test)
        classes = np.unique(test.y)
        return CellResult(
            {MAIN: score(test.y, proba, classes, self.metrics)},
            {MAIN: time.perf_counter() - start},
            {"correct": (classes[proba.argmax(axis=1)] == test.y).astype(np.uint8)},
        )

    def _with_eber_extras(
        self,
        result: CellResult,
        fitted: FittedMethod,
        classifier: EBERClassifier,
        train: MultiEnvironmentData,
        test: MultiEnvironmentData,
    ) -> CellResult:
        """The same fit after adaptation, and the experiment's own analysis."""
        start = time.perf_counter()
        adapted = classifier.adapt(test.X)
        adaptation_seconds = time.perf_counter() - start
        scores, seconds, _ = self._score(FittedMethod(adapted, fitted.seconds + adaptation_seconds), test)
        analysis = self.analyse(classifier, train, test) if self.analyse else Analysis({}, {})
        return CellResult(
            {MAIN: {**result.scores[MAIN], **analysis.scores}, ADAPTED: scores},
            {**result.seconds, ADAPTED: seconds},
            {
                **result.arrays,
                "adapted_mixture": adapted.adaptation_.mixture,
                **analysis.arrays,
            },
        )

    def _search(self, method: str, parameters: Mapping[str, Any]) -> WeightSearch:
        return WeightSearch(
            penalty_grid(find_method(method), parameters),
            find_rule(parameters["selection"]),
            parameters.get("selection_rows", 0),
            self.prepare,
        )

    def _shared_parameters(self, cell: Cell) -> dict[str, Any]:
        named = {name: cell.parameters[name] for name in _SHARED_PARAMETERS if name in cell.parameters}
        return {"featurizer": self.featurizer, "random_state": cell.seed, **named}

    def _score(
        self, fitted: FittedMethod, test: MultiEnvironmentData
    ) -> tuple[dict[str, float], float, NDArray[np.uint8]]:
        """Scores, seconds of fit and prediction together, as the paper counts them, and which rows are right."""
        start = time.perf_counter()
        proba = fitted.classifier.predict_proba(test.X)
        seconds = fitted.seconds + time.perf_counter() - start
        classes = fitted.classifier.classes_
        right = (classes[proba.argmax(axis=1)] == test.y).astype(np.uint8)
        return score(test.y, proba, classes, self.metrics), seconds, right


def _assigned(classifier: EBERClassifier, test: MultiEnvironmentData) -> dict[str, NDArray[Any]]:
    """The training environment that each held-out row is taken for."""
    return {
        "assigned": classifier.predict_environment_proba(test.X).argmax(axis=1).astype(np.uint8),
        "environments": np.asarray(classifier.environments_, dtype=np.str_),
    }
