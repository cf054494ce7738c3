"""Settings that hold out one environment each, so that nobody can say the split was lucky."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eber.runs.parameters import Value
from eber.runs.spec import Experiment

_PREFIX = "hold out "


def hold_out(environment: str) -> str:
    """What the setting that holds out an environment is called."""
    return f"{_PREFIX}{environment}"


def held_out(setting: str) -> str:
    """The environment that a setting holds out, by the setting's name."""
    return setting.removeprefix(_PREFIX)


def hold_out_each(environments: Iterable[str], **changes: Value) -> dict[str, Mapping[str, Value]]:
    """One setting for each environment, by the parameter ``held_out``, with the changes that all of them share."""
    return {hold_out(environment): {"held_out": environment, **changes} for environment in environments}


def hold_out_settings(experiment: Experiment) -> list[str]:
    """The settings of an experiment that hold out one environment each; empty where it has none."""
    return [setting for holdouts in experiment.holdouts.values() for setting in holdouts.settings]
