"""A discussion names the rows that it speaks of, and only what is there is spoken of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.runs.discussion import Paragraph, read_discussion
from tests.toy_experiment import TOY


def read(text: str, folder: Path) -> list[Paragraph]:
    """A discussion of the toy."""
    path = folder / "toy.md"
    path.write_text(text)
    return read_discussion(replace(TOY, discussion=path))


def test_a_paragraph_names_what_it_needs(tmp_path: Path) -> None:
    text = """One
line.

<!-- needs: method "EBER"; setting "shift=0.1" -->
<!-- needs: method "ERM" or "V-REx" -->
Another one.
"""
    assert read(text, tmp_path) == [
        Paragraph("One line."),
        Paragraph("Another one.", (("EBER",), ("ERM", "V-REx")), (("shift=0.1",),)),
    ]


@pytest.mark.parametrize(
    ("methods", "settings", "fits"),
    [
        ({"EBER", "ERM"}, {"a"}, True),
        ({"EBER", "IRM"}, {"a", "b"}, True),
        ({"ERM", "IRM"}, {"a"}, False),
        ({"EBER"}, {"a"}, False),
        ({"EBER", "ERM"}, {"b"}, False),
    ],
)
def test_every_need_must_be_met_and_one_of_those_that_or_joins(
    methods: set[str], settings: set[str], fits: bool
) -> None:
    assert Paragraph("", (("EBER",), ("ERM", "IRM")), (("a",),)).fits(methods, settings) == fits
    assert Paragraph("").fits(methods, settings)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('<!-- needs: method "EBRE" -->', "speaks of the method 'EBRE', which experiment 'toy' does not have"),
        ('<!-- needs: method "EBER" or "EBRE" -->', "speaks of the method 'EBRE'"),
        ('<!-- needs: setting "shift" -->', "speaks of the setting 'shift'"),
        ("<!-- needs: EBER -->", "a line that is not understood: <!-- needs: EBER -->"),
        ('<!-- needs: method "EBER"; -->', "not understood"),
        ("<!-- a remark -->", "not understood"),
    ],
)
def test_what_the_experiment_does_not_have_is_refused(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read(f"{line}\nA paragraph.\n", tmp_path)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_discussion_speaks_of_methods_and_settings_that_there_are(name: str) -> None:
    experiment = find_experiment(name)
    paragraphs = read_discussion(experiment)
    assert bool(paragraphs) == (experiment.discussion is not None)
    assert all(paragraph.text for paragraph in paragraphs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_paragraph_that_names_an_ablation_needs_it(name: str) -> None:
    """By name, in quotation marks, as a reader finds it in the table."""
    experiment = find_experiment(name)
    for paragraph in read_discussion(experiment):
        for method in experiment.ablations:
            if f'"{method}"' in paragraph.text:
                assert (method,) in paragraph.methods, paragraph.text
