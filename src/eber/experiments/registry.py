"""The experiments there are, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eber.runs.spec import Experiment

EXPERIMENTS: dict[str, str] = {
    "motivating": "eber.experiments.motivating:EXPERIMENT",
    "parametric": "eber.experiments.parametric:EXPERIMENT",
    "colored-mnist": "eber.experiments.colored_mnist:EXPERIMENT",
    "quasar": "eber.experiments.quasar:EXPERIMENT",
    "microbiome": "eber.experiments.microbiome:EXPERIMENT",
    "sepsis": "eber.experiments.sepsis:EXPERIMENT",
}
"""Name to "module:attribute"; a module is imported only when its experiment is asked for."""


def find_experiment(name: str) -> Experiment:
    """The experiment of that name.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`, or "module:attribute" for an experiment of one's own.
    """
    from eber.runs.spec import Experiment  # which takes seconds; help texts need the names alone

    module, colon, attribute = EXPERIMENTS.get(name, name).partition(":")
    if not colon:
        raise ValueError(
            f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS) or 'none'}. One of your own is named "
            f"by module:attribute."
        )
    experiment = getattr(import_module(module), attribute, None)
    if not isinstance(experiment, Experiment):
        raise ValueError(f"{attribute!r} in module {module!r} is not an Experiment.")
    return experiment
