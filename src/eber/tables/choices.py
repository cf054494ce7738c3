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
    weight : str, optional
        The column that says how much each row counts; it is no feature.
    """

    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    positive: str | None = None
    weight: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose kind was said."""
        return (*self.categorical, *self.numeric)

    @property
    def no_features(self) -> tuple[str, ...]:
        """Columns that are there for something else than to predict from."""
        return () if self.weight is None else (self.weight,)

    def require_sense(self, label: str, environment: str, drop: Sequence[str], features: Sequence[str] | None) -> None:
        """Refuse what contradicts itself."""
        if self.weight in (label, environment):
            raise ValueError(f"The weight {self.weight!r} is the label or the environment; give a column of its own.")
        if self.weight is not None and self.weight in (*self.columns, *drop, *(features or ())):
            raise ValueError(
                f"Column {self.weight!r} is the weight of the rows and no feature: name it nowhere else, neither to be "
                "used nor to be dropped."
            )
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
        """As plain data; without weights as it was before there were any."""
        return {
            "categorical": list(self.categorical),
            "numeric": list(self.numeric),
            "missing": list(self.missing),
            "positive": self.positive,
            **({} if self.weight is None else {"weight": self.weight}),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ColumnChoices:
        """From plain data."""
        lists = {key: tuple(content[key]) for key in ("categorical", "numeric", "missing")}
        return cls(**lists, positive=content["positive"], weight=content.get("weight"))


NO_CHOICES = ColumnChoices()
