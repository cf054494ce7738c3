"""Evidence as a file that outlives the results it came from: small, plain, and refused where it is not whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eber.experiments.claims.evidence import Evidence, Measured
from eber.experiments.registry import find_experiment
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import write_atomically

FORMAT, VERSION = "eber-evidence", 1
ADVICE = (
    "Take the file as it was committed, or remove it and give `eber claims RESULTS --evidence` the results of "
    "`eber reproduce` again."
)
_DESCRIPTION = ("version", "date", "parameters", "data")
_SAME_COMPUTATION = ("version", "parameters", "data")
_PAIR = re.compile(r"(\d{1,9}):(nan|-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf))")


class EvidenceFileError(ValueError):
    """A file of kept evidence that cannot be believed."""


def evidence_file(folder: Path, experiment: str) -> Path:
    """Where the evidence of an experiment is kept."""
    return folder / f"{experiment}.json"


def keep(evidence: Evidence, folder: Path) -> None:
    """Write evidence to its file; settings that are kept already and are not in it stay, and so do the rows of a
    setting that was run again in the same way.
    """
    earlier = read_kept(folder, evidence.experiment)
    settings = dict(earlier.settings) if earlier else {}
    for setting, measured in evidence.settings.items():
        settings[setting] = _joined(settings.get(setting), measured)
    declared = find_experiment(evidence.experiment).settings
    content = {
        "experiment": evidence.experiment,
        "settings": {setting: _as_json(settings[setting]) for setting in declared if setting in settings},
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(evidence_file(folder, evidence.experiment), encode_checksummed(content, FORMAT, VERSION))


def read_kept(folder: Path, experiment: str) -> Evidence | None:
    """The evidence of an experiment; None where none is kept.

    Raises
    ------
    EvidenceFileError
        Where the file is damaged, or says what no run can have said.
    """
    path = evidence_file(folder, experiment)
    if not path.exists():
        return None
    content = read_checksummed(path, FORMAT, VERSION, ADVICE, EvidenceFileError)
    declared = find_experiment(experiment).settings
    try:
        if content["experiment"] != experiment:
            raise ValueError(f"it is of the experiment {content['experiment']!r}")
        for setting in content["settings"]:
            if setting not in declared:
                raise ValueError(f"{experiment} has no setting {setting!r}")
        return Evidence(experiment, {name: _from_json(one) for name, one in content["settings"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvidenceFileError(f"{path} is not evidence as it is kept here: {error}. {ADVICE}") from error


def _joined(earlier: Measured | None, measured: Measured) -> Measured:
    """What a run measured, beside rows of earlier runs of the same version, parameters and data that it has not."""
    if earlier is None or any(getattr(earlier, name) != getattr(measured, name) for name in _SAME_COMPUTATION):
        return measured
    return replace(measured, series={**earlier.series, **measured.series})


def _as_json(measured: Measured) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for (method, variant, quantity), values in measured.series.items():
        text = " ".join(f"{seed}:{value!r}" for seed, value in sorted(values.items()))
        rows.setdefault(method, {}).setdefault(variant, {})[quantity] = text
    return {**{name: getattr(measured, name) for name in _DESCRIPTION}, "rows": rows}


def _from_json(content: Mapping[str, Any]) -> Measured:
    description = {name: content[name] for name in _DESCRIPTION}
    if set(content) != {*_DESCRIPTION, "rows"} or not all(isinstance(text, str) for text in description.values()):
        raise ValueError("a setting is not described as it should be")
    return Measured(
        **description,
        series={
            (method, variant, quantity): _values(text)
            for method, variants in content["rows"].items()
            for variant, quantities in variants.items()
            for quantity, text in quantities.items()
        },
    )


def _values(text: str) -> dict[int, float]:
    """Seed to value, from such as "0:0.25 1:0.26"."""
    pairs = [_PAIR.fullmatch(word) for word in text.split(" ")]
    values = {int(pair[1]): float(pair[2]) for pair in pairs if pair}
    if len(values) < len(pairs):
        raise ValueError(f"{text[:40]!r} is not a value for each of several seeds")
    return values
