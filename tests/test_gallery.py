"""The examples run as they stand: each ends in a picture, and warns of nothing that it does not show."""

from __future__ import annotations

import importlib
import runpy
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import matplotlib as mpl
import pytest
from matplotlib import pyplot

EXAMPLES = Path(__file__).parents[1] / "examples"
GALLERY = sorted((EXAMPLES / "gallery").glob("plot_*.py"))
ELSEWHERE = {
    "plot_02_hospital_table": "starts the commands of the README, which are tested there",
    "plot_15_penalties": "fits about two hundred models",
}
"""Examples that only the build of the site runs, and why."""
NEEDS = {"plot_08_conformal_sets": "mapie", "plot_09_shap": "shap"}


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


def require(package: str) -> None:
    """Import a package that not everybody has, whatever it warns of; or skip."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package, reason=f"the example needs {package}")


@pytest.mark.parametrize("path", [path for path in GALLERY if path.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_an_example_runs_and_ends_in_a_figure(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if path.stem in NEEDS:
        require(NEEDS[path.stem])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    runpy.run_path(str(path), run_name="__main__")
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    assert all(axes.has_data() for axes in figures[-1].axes)
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


def test_every_example_has_a_title_and_none_is_forgotten() -> None:
    assert len(GALLERY) >= 12
    assert set(ELSEWHERE) | set(NEEDS) <= {path.stem for path in GALLERY}
    for path in GALLERY:
        title, line = path.read_text().removeprefix('"""').lstrip("\n").splitlines()[:2]
        assert set(line) == {"="}, path
        assert len(line) >= len(title), path


class Writer:
    """Stands in for TensorBoard's, which not everybody has installed."""

    written: list[tuple[str, float, int]] = []

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Keep what is logged."""
        self.written.append((name, value, step))


def test_the_tensorboard_example_logs_every_term_of_every_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in: Any = types.ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    monkeypatch.setattr(Writer, "written", [])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("tensorboard_logging")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two passes are too few
        example.main(rows=300, epochs=2)
    assert {step for _, _, step in Writer.written} == {1, 2}
    names = [name for name, _, step in Writer.written if step == 1]
    assert "loss" in names
    assert "environment_loss" in names
    assert capsys.readouterr().out.startswith("2 passes, last loss ")
