"""The discussion of an experiment: Markdown beside it, of which a report prints what its own rows are spoken of in.

A paragraph may begin with lines that name what it speaks of::

    <!-- needs: method "EBER"; method "IRM" or "Fishr"; setting "m=36" -->
    EBER comes out ahead with 36 environments ...

It is printed where every clause is met by the rows that were run; a paragraph without such a line always is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from eber.runs.spec import Experiment

_HEADER = re.compile(r"<!-- needs: (.+) -->")
_CLAUSE = re.compile(r'(method|setting) ("[^"]+"(?: or "[^"]+")*)')


@dataclass(frozen=True)
class Paragraph:
    """A paragraph and what it speaks of.

    Parameters
    ----------
    text : str
        Markdown, in one line.
    methods, settings : tuple of tuples of str
        Of each inner tuple one must have been run.
    """

    text: str
    methods: tuple[tuple[str, ...], ...] = ()
    settings: tuple[tuple[str, ...], ...] = ()

    def fits(self, methods: Collection[str], settings: Collection[str]) -> bool:
        """Whether everything that it speaks of is among these."""
        needs = [(any_of, methods) for any_of in self.methods] + [(any_of, settings) for any_of in self.settings]
        return all(any(name in there for name in any_of) for any_of, there in needs)


def read_discussion(experiment: Experiment) -> list[Paragraph]:
    """Every paragraph of an experiment's discussion; none where it has no discussion.

    Raises
    ------
    ValueError
        Where a paragraph speaks of a method or a setting that the experiment does not have.
    """
    if experiment.discussion is None:
        return []
    blocks = experiment.discussion.read_text(encoding="utf-8").split("\n\n")
    paragraphs = [_parse(block.strip(), experiment.discussion) for block in blocks if block.strip()]
    for paragraph in paragraphs:
        for what, needs, there in (
            ("method", paragraph.methods, experiment.all_methods),
            ("setting", paragraph.settings, tuple(experiment.settings)),
        ):
            for name in (name for any_of in needs for name in any_of):
                if name not in there:
                    raise ValueError(
                        f"{experiment.discussion} speaks of the {what} {name!r}, which experiment {experiment.name!r} "
                        f"does not have; there are {', '.join(there)}."
                    )
    return paragraphs


def _parse(block: str, path: Path) -> Paragraph:
    lines = block.splitlines()
    needs: dict[str, list[tuple[str, ...]]] = {"method": [], "setting": []}
    while lines and lines[0].startswith("<!--"):
        line = lines.pop(0)
        header = _HEADER.fullmatch(line)
        for clause in header[1].split(";") if header else [""]:
            names = _CLAUSE.fullmatch(clause.strip())
            if names is None:
                raise ValueError(
                    f'{path} has a line that is not understood: {line}. Write it as: <!-- needs: method "NAME"; '
                    f'setting "NAME" or "NAME" -->'
                )
            needs[names[1]].append(tuple(re.findall(r'"([^"]+)"', names[2])))
    return Paragraph(" ".join(lines), tuple(needs["method"]), tuple(needs["setting"]))
