"""What a sabotage is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sabotage:
    """One mistake in one file.

    Parameters
    ----------
    broken : str
        What is wrong then, in a sentence.
    test : str
        The test that must fail, as path::name; with [a parameter] where the mistake concerns only that one.
    file : str
        The file with the mistake, relative to src/eber.
    before, after : str
        The text that is replaced, which the file has exactly once, and what takes its place.
    """

    broken: str
    test: str
    file: str
    before: str
    after: str

    @property
    def promise(self) -> str:
        """The test as the page names it."""
        return self.test.split("[")[0]

    def path(self, root: Path) -> Path:
        """The file in a tree."""
        return root / "src" / "eber" / self.file

    def content(self, root: Path) -> str:
        """What the file holds with the mistake in it.

        Raises
        ------
        ValueError
            Where the text to be replaced does not stand in it exactly once.
        """
        good = self.path(root).read_text()
        if good.count(self.before) != 1:
            raise ValueError(f"{self.file} has {good.count(self.before)} times, not once:\n{self.before}")
        return good.replace(self.before, self.after)
