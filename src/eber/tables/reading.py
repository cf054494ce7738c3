"""What a user says about how a source is to be read, where the source alone does not say it."""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Reading:
    """How to read a source; what is None is found out.

    Parameters
    ----------
    sheet : str, optional
        Of an Excel workbook.
    query : str, optional
        SQL whose answer is the table.
    encoding : str, optional
        Of CSV; UTF-8 when not given.
    """

    sheet: str | None = None
    query: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        """Refuse an encoding that Python does not know."""
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError as error:
            raise ValueError(
                f"There is no encoding {self.encoding!r}; utf-8, latin-1, cp1252 and utf-16 are usual ones."
            ) from error

    @property
    def given(self) -> dict[str, str]:
        """What was said, by its name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


NOTHING_SAID = Reading()
