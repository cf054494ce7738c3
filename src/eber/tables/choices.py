"""What a user says about columns and classes: it goes before every guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnChoices:
    """What was said.

    Parameters
    ----------
    categorical : tuple of str
        Columns to be taken as categories, whatever they look like.
    numeric : tuple of str
        Columns to be taken as numbers, every number in them believed; other texts in them count as missing.
    missing : tuple of str
        Values that count as missing in every column, as they are written or as the same number.
    positive : str, optional
        Of two classes, the one that AUROC, AUPRC and calibration curves speak of.
    """

    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    positive: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose kind was said."""
        return (*self.categorical, *self.numeric)

    def require_sense(self, label: str, environment: str, drop: Sequence[str], features: Sequence[str] | None) -> None:
        """Refuse what contradicts itself."""
        for name in self.categorical:
            if name in self.numeric:
                raise ValueError(f"Column {name!r} is said to be both categorical and numeric; it can be one of them.")
        for name in self.columns:
            if name in (label, environment):
                raise ValueError(
                    f"Column {name!r} is the label or the environment, whose values are names in any case; "
                    "categorical and numeric are about features."
                )
            if name in drop or (features is not None and name not in features):
                raise ValueError(f"Column {name!r} is said to be of a kind, but is not to be used: decide for one.")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "categorical": list(self.categorical),
            "numeric": list(self.numeric),
            "missing": list(self.missing),
            "positive": self.positive,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ColumnChoices:
        """From plain data."""
        lists = {key: tuple(content[key]) for key in ("categorical", "numeric", "missing")}
        return cls(**lists, positive=content["positive"])


NO_CHOICES = ColumnChoices()
