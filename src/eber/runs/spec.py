"""What an experiment is: everything about it declared as data in one place, run cell by cell::

    EXPERIMENT = Experiment(
        name="coin",
        title="A biased coin",
        description="What is tested and how.",
        parameters={"n": 500, "rho": 0.1, "hidden_dims": (16,)},
        settings={"baseline": {}, "rho=0.2": {"rho": 0.2}},
        methods=("EBER", "ERM"),
        oracles=("Bayes-x",),
        metrics=("nll", "accuracy"),
        primary_metric="nll",
        reference_method="EBER",
        run_cell=run_cell,
        paper={"baseline": PaperTable("Table 1", {"ERM": {"nll": (0.652, 0.005)}})},
    )

with ``run_cell(cell: Cell) -> CellResult`` at module level, so that worker processes can find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eber.evaluation.metrics import Quantity, find_metric
from eber.methods import Method, find_method
from eber.runs.cell import MAIN, Cell, CellResult, Part
from eber.runs.groundwork import Groundwork, on_nothing
from eber.runs.parameters import Value, check_default, override

if TYPE_CHECKING:
    from eber.runs.figure import ReportFigure
    from eber.runs.fitting import Steps
    from eber.runs.results import Results

SECONDS = Quantity(name="seconds", label="Time (s)", higher_is_better=None, format_spec=".2f")
"""Wall time, which the ledger keeps apart from the scores."""


@dataclass(frozen=True)
class PaperTable:
    """What the paper printed for one setting.

    Parameters
    ----------
    source : str
        The table, as a reader of the paper finds it.
    rows : mapping
        Row (:func:`row_label`) to metric, or "seconds", to mean and standard deviation.
    p_values : mapping
        Row to p-value as printed.
    """

    source: str
    rows: Mapping[str, Mapping[str, tuple[float, float]]]
    p_values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Holdouts:
    """Settings that hold out one environment of a family each, to be summed up together.

    Parameters
    ----------
    settings : tuple of str
        They differ in nothing but the environment that is held out, and so in what is trained on.
    note : str
        What a reader of their summary must know about these environments.
    """

    settings: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment, declared.

    Parameters
    ----------
    name, title, description : str
        Name on the command line; heading; a paragraph on what is tested and how.
    parameters : mapping
        Every named parameter of data, architecture, schedule and grid, with its default.
    settings : mapping
        Setting to the parameters it changes.
    default_settings : tuple of str
        Those that are run when none are named; empty for all.
    circumstances : str
        What progress and errors call a setting, whose name stands at the braces.
    holdouts : mapping
        Family of environments to the settings that hold out one of them each.
    methods : tuple of str
        Those that are compared and tested.
    fits_any_method : bool
        Whether `run_cell` can fit whatever method `eber.methods.find_method` finds, so that more can be asked for.
    added_methods : tuple of Method
        Those among the methods that were asked for beyond the declared ones; see `with_methods`.
    oracles : tuple of str
        Reference rows that nobody can beat, above the methods; always run with them.
    floor : tuple of str
        Rows that every method has to beat, such as no model at all: run with the methods, never tested.
    tuned : mapping
        Method to the row in which its settings are chosen by leaving training environments out. These rows are shown
        apart, tested among themselves, and run only when asked for.
    ablations : tuple of str
        Methods shown below, never tested, and run only when asked for.
    metrics : tuple of str or Quantity
        Columns of the table: names from `eber.evaluation.metrics.METRICS`, or quantities of the experiment's own.
    primary_metric : str
        The one that is tested.
    reference_method : str
        The one that is tested against the others.
    run_cell : callable
        Cell -> CellResult, at module level; or a generator function that returns one and yields the fits it needs.
    seeds_together : int
        Seeds of one method and setting that a worker computes at once. More than one where their fits are of one shape
        and small, so that they are faster side by side.
    groundwork : mapping
        Name to further settings, whose cells are computed where results are built on them.
    built_on : callable
        Setting and method -> settings and methods of the cells that have to be finished first, and that the cell is
        handed: of the same seed, or of the one that groundwork names.
    weights_chosen_on : str
        Whose validation rows decide on penalty weights, for the words below a table.
    paper : mapping
        Setting to what the paper printed.
    figures : callable, optional
        Results -> sequence of ReportFigure.
    discussion : Path, optional
        A Markdown file, which is read when a report is written; :mod:`eber.runs.discussion` says how it names the rows
        that a paragraph speaks of.
    fingerprint : callable, optional
        Folder of the data files -> text that changes whenever their content does. Given by experiments on data.
    data_travels : bool
        Whether the data files are sent to other machines that compute, as a user's table is. Otherwise they must lie
        there under the same path.
    """

    name: str
    title: str
    description: str
    parameters: Mapping[str, Value]
    settings: Mapping[str, Mapping[str, Value]] = field(default_factory=lambda: {"baseline": {}})
    default_settings: tuple[str, ...] = ()
    circumstances: str = "setting {}"
    holdouts: Mapping[str, Holdouts] = field(default_factory=dict)
    methods: tuple[str, ...]
    fits_any_method: bool = False
    added_methods: tuple[Method, ...] = ()
    oracles: tuple[str, ...] = ()
    floor: tuple[str, ...] = ()
    tuned: Mapping[str, str] = field(default_factory=dict)
    ablations: tuple[str, ...] = ()
    metrics: tuple[str | Quantity, ...]
    primary_metric: str
    reference_method: str
    run_cell: Callable[[Cell], CellResult | Steps[CellResult]]
    seeds_together: int = 1
    groundwork: Mapping[str, Groundwork] = field(default_factory=dict)
    built_on: Callable[[str, str], Sequence[Part]] = on_nothing
    weights_chosen_on: str = "training environments"
    paper: Mapping[str, PaperTable] = field(default_factory=dict)
    figures: Callable[[Results], Sequence[ReportFigure]] | None = None
    discussion: Path | None = None
    fingerprint: Callable[[Path], str] | None = None
    data_travels: bool = False

    def __post_init__(self) -> None:
        where = f"Experiment {self.name!r}"
        for key, value in self.parameters.items():
            check_default(key, value, where)
        for setting in set(self.settings) & set(self.groundwork):
            raise ValueError(f"{where} has two settings {setting!r}; give one of them another name.")
        for setting, changes in self._changes.items():
            override(self.parameters, changes, f"{where}, setting {setting!r}")
        if len(set(self.all_methods)) < len(self.all_methods):
            raise ValueError(f"{where} names a method twice: {', '.join(self.all_methods)}.")
        for method in self.all_methods:
            if "," in method:
                raise ValueError(f"{where}: method {method!r} has a comma in its name, which separates names.")
        _require([self.reference_method], self.methods, f"{where}: reference method")
        _require([self.primary_metric], self.columns, f"{where}: primary metric")
        _require(self.default_settings, self.settings, f"{where}: default setting")
        for family, holdouts in self.holdouts.items():
            _require(holdouts.settings, self.settings, f"{where}: hold-out of {family}")
        _require(self.paper, self.settings, f"{where}: setting of the paper")
        for table in self.paper.values():
            for metrics in table.rows.values():
                _require(metrics, (*self.columns, SECONDS.name), f"{where}: metric of {table.source}")
        if "<" in getattr(self.run_cell, "__qualname__", "<"):
            raise ValueError(f"{where}: run_cell must be a function at module level, so that workers can import it.")

    @property
    def _changes(self) -> dict[str, Mapping[str, Value]]:
        """What each setting changes, those included that results are built on."""
        return {**self.settings, **{name: groundwork.changes for name, groundwork in self.groundwork.items()}}

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Every method there is, in the order of the table."""
        return (*self.oracles, *self.methods, *self.floor, *self.tuned.values(), *self.ablations)

    @property
    def default_methods(self) -> tuple[str, ...]:
        """What is run when no method is named."""
        return (*self.oracles, *self.methods, *self.floor)

    @property
    def fits_alone(self) -> bool:
        """Whether each cell's fits are trained by themselves, so that its time is the method's."""
        return self.seeds_together == 1

    @property
    def columns(self) -> dict[str, Quantity]:
        """Columns of the table by name."""
        quantities = [find_metric(metric) if isinstance(metric, str) else metric for metric in self.metrics]
        return {quantity.name: quantity for quantity in quantities}

    def with_methods(self, names: Iterable[str | Method]) -> tuple[Experiment, list[str]]:
        """The experiment with further methods, which are run as themselves and tested like the others.

        Parameters
        ----------
        names : iterable of str or Method
            In any letter case; of this experiment, or as for `eber.methods.find_method`.

        Returns
        -------
        The experiment, and the names as it spells them.
        """
        spelling = {name.casefold(): name for name in self.all_methods}
        added = {method.name: method for method in self.added_methods}
        chosen: list[str] = []
        for name in names:
            if isinstance(name, str) and name.casefold() in spelling:
                chosen.append(spelling[name.casefold()])
                continue
            method = self._find(name) if isinstance(name, str) else name
            if method.name not in spelling.values() or method.name in added:
                added[method.name] = method
            elif method.code:
                raise ValueError(f"Experiment {self.name!r} has a row {method.name!r}; call {method.source} otherwise.")
            chosen.append(method.name)
        more = tuple(name for name in added if name not in self.methods)
        return replace(self, methods=(*self.methods, *more), added_methods=tuple(added.values())), chosen

    def _find(self, name: str) -> Method:
        """A method that the experiment does not have yet."""
        if not self.fits_any_method:
            _require([name], self.all_methods, f"{self.name}: method")
        try:
            return find_method(name)
        except ValueError as error:
            raise ValueError(f"{error} Rows of experiment {self.name!r}: {', '.join(self.all_methods)}.") from error

    def resolve(self, setting: str, overrides: Mapping[str, Any]) -> dict[str, Value]:
        """Every parameter of a setting, after the user's overrides.

        Raises
        ------
        ValueError
            Where an override would change a parameter that the setting is named after.
        """
        changes = self._changes[setting]
        for key in overrides:
            if key in changes:
                raise ValueError(
                    f"Setting {setting!r} of experiment {self.name!r} fixes {key!r}; leave out either the setting or "
                    f"the override."
                )
        return override(self.resolve_overrides(overrides), changes, f"Setting {setting!r}")

    def resolve_overrides(self, overrides: Mapping[str, Any]) -> dict[str, Value]:
        """Every parameter after the user's overrides, before any setting's."""
        return override(self.parameters, overrides, f"Experiment {self.name!r}")

    def cell(self, setting: str, method: str, seed: int, overrides: Mapping[str, Any], data: str) -> Cell:
        """One cell by name."""
        parameters = self.resolve(setting, overrides)
        return self._cell(setting, method, seed, parameters, data, None)

    def _cell(
        self, setting: str, method: str, seed: int, parameters: Mapping[str, Value], data: str, data_dir: Path | None
    ) -> Cell:
        below = self.groundwork.get(setting)
        words = self.circumstances.format(setting) if below is None else below.circumstances
        return Cell(
            self.name, setting, method, seed, parameters, data, data_dir, self._code(method), circumstances=words
        )

    def plan(
        self,
        *,
        seeds: int | Iterable[int],
        methods: Iterable[str] | None = None,
        settings: Iterable[str] | None = None,
        overrides: Mapping[str, Any] | None = None,
        data_dir: Path | None = None,
    ) -> list[Cell]:
        """The cells of a run, seed by seed, so that the first seed of every method is known early.

        Parameters
        ----------
        seeds : int or iterable of int
            A number of seeds (0, 1, ...), or the seeds.
        methods, settings : iterable of str, optional
            In any letter case; by default `default_methods` and the default settings.
        overrides : mapping, optional
            Parameters to change in every setting.
        data_dir : Path, optional
            Where the data files are.
        """
        numbers = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
        if not numbers or min(numbers) < 0:
            raise ValueError(f"An experiment needs at least one seed, and none below zero; got {seeds!r}.")
        data = self._data_fingerprint(data_dir)
        chosen_methods = choose(
            self.default_methods if methods is None else methods, self.all_methods, f"{self.name}: method"
        )
        chosen_settings = choose(
            (self.default_settings or self.settings) if settings is None else settings,
            tuple(self.settings),
            f"{self.name}: setting",
        )
        if not chosen_methods or not chosen_settings:
            raise ValueError(f"Experiment {self.name!r}: there is nothing to run without a method and a setting.")
        parameters = {setting: self.resolve(setting, overrides or {}) for setting in chosen_settings}
        return [
            self._cell(setting, method, seed, parameters[setting], data, data_dir)
            for seed in numbers
            for setting in chosen_settings
            for method in chosen_methods
        ]

    def check_result(self, cell: Cell, result: CellResult) -> None:
        """Refuse a result that the tables could not use."""
        if cell.setting in self.groundwork:
            return
        if cell.method in self.methods and self.primary_metric not in result.scores.get(MAIN, {}):
            raise ValueError(f"The cell gave no {self.primary_metric!r} for the variant {MAIN!r}.")
        unknown = set(result.seconds) - set(result.scores)
        if unknown:
            raise ValueError(f"The cell gave a time, but no score, for variants {sorted(unknown)}.")

    def method(self, name: str) -> Method:
        """What is declared of a method that the experiment runs by that name."""
        return next((method for method in self.added_methods if method.name == name), None) or find_method(name)

    def _code(self, method: str) -> str:
        return next((added.code for added in self.added_methods if added.name == method), "")

    def _data_fingerprint(self, data_dir: Path | None) -> str:
        if self.fingerprint is None:
            return ""
        if data_dir is None:
            raise ValueError(f"Experiment {self.name!r} reads data files: say in which folder they are.")
        return self.fingerprint(data_dir)


def choose(names: Iterable[str], valid: Sequence[str], what: str) -> list[str]:
    """The valid spelling of each name, whatever its letter case, in the order of `valid`."""
    spelling = {name.casefold(): name for name in valid}
    wanted = [spelling.get(name.casefold(), name) for name in names]
    _require(wanted, valid, what)
    return [name for name in valid if name in wanted]


def _require(names: Iterable[str], valid: Iterable[str], what: str) -> None:
    for name in names:
        if name not in valid:
            raise ValueError(f"{what} {name!r} is unknown; there are {', '.join(valid) or 'none'}.")
