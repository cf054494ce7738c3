"""Names, links and permissions that others chose, and signals: nothing leaks, nothing is left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eber import EnvironmentSearch, ERMClassifier, predict_folder
from eber.datasets.hospitals import draw_hospitals
from eber.io.files import lock, replacing, write_atomically
from eber.tables import prediction, section_prediction
from eber.tables.model_folder import card_page
from tests.command_line import eber
from tests.one_process import one_process  # noqa: F401
from tests.trust.models import NAMES, fitted_model, hospitals, rows
from tests.trust.processes import command, finish, start

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

LOGISTIC = ["--quick", "--methods", "logistic regression", "--jobs", 1]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("old", [0o600, 0o640, 0o400, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(old: int, tmp_path: Path) -> None:
    """From the first byte on: what is written may be read by nobody who might not read the old file."""
    path = tmp_path / "predictions.csv"
    path.write_text("old")
    path.chmod(old)
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert mode(temporary) & ~0o600 & ~old == 0
    assert path.read_text() == "new"
    assert mode(path) == old


@pytest.mark.parametrize("kind", ["classifier", "search", "table model"])
@pytest.mark.parametrize("old", [0o600, 0o640])
def test_a_model_that_is_replaced_keeps_its_permissions(kind: str, old: int, tmp_path: Path) -> None:
    """Its parts have new names; seen to lie open to everybody, the card among them."""

    def save(seed: int) -> None:
        if kind == "table model":
            fitted_model(tmp_path, "ERM", seed).save(tmp_path / "model")
            return
        classifier: Any = ERMClassifier(epochs=1, random_state=seed)
        classifier = EnvironmentSearch(classifier, [{}]) if kind == "search" else classifier
        classifier.fit(rows.X, rows.y, environments=rows.environments).save(tmp_path / "model")

    save(0)
    for path in (tmp_path / "model").rglob("*"):
        path.chmod(0o700 if path.is_dir() else old)
    save(1)
    found = sorted((tmp_path / "model").rglob("*"))
    assert len([path for path in found if path.is_file()]) == {"table model": 4}.get(kind, 2)
    assert all(mode(path) == (old if path.is_file() else old | 0o700 | (old >> 2 & 0o011)) for path in found)


def test_what_predictions_of_a_folder_are_made_of_lies_open_to_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections of a large file before it is whole, and what is noted beside it, which quotes its values."""
    for module in (prediction, section_prediction):
        monkeypatch.setattr(module, "SECTION_ROWS", 60)
    (tmp_path / "new").mkdir()
    table = draw_hospitals(150).drop(columns=["sepsis", "hospital"])
    table.to_parquet(tmp_path / "new" / "a.parquet", index=False, row_group_size=30)
    out, model = tmp_path / "out", fitted_model(tmp_path)
    predict_folder(model, tmp_path / "new", out)
    for path in out.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (out / ".done" / "a.parquet.json").unlink()
    seen: list[int] = []
    digest_of = section_prediction.digest_of

    def looked_at(path: Path) -> str:
        seen.append(mode(path.parent))
        return digest_of(path)

    monkeypatch.setattr(section_prediction, "digest_of", looked_at)
    predict_folder(model, tmp_path / "new", out)
    assert seen
    assert set(seen) == {0o700}
    assert mode(out / "a.parquet") == mode(out / ".done" / "a.parquet.json") == 0o600


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path) -> None:
    write_atomically(tmp_path / "ours", "x")
    (tmp_path / "usual").write_text("x")
    assert mode(tmp_path / "ours") == mode(tmp_path / "usual")


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    """As `rename` does; a link into somebody's files cannot be used to have them written over."""
    (tmp_path / "target").write_text("mine")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "out").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "out", "new")
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "out").is_symlink()
    assert (tmp_path / "out").read_text() == "new"
    assert mode(tmp_path / "out") == 0o600


def test_a_lock_is_not_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"\.lock") as caught, lock(tmp_path / ".lock", wait=False):
        pass
    assert caught.value.errno == errno.ELOOP
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=tmp_path.name) as caught, lock(tmp_path / ".lock", wait=True):
        pass
    assert caught.value.filename == str(tmp_path)


@pytest.mark.usefixtures("one_process")
def test_names_are_shown_as_they_are_and_do_nothing_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Brackets of a folder are no markup of rich; control characters of an environment reach nobody, nor its lines."""
    rows = draw_hospitals(240)
    rows["hospital"] = rows["hospital"].replace("Ashford", "\x1b[31mAsh\x07ford\u202e[/b]\nAll is well.")
    rows.to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "o[" / "x]"
    assert eber(monkeypatch, "compare", tmp_path / "table.csv", *NAMES, *LOGISTIC, "--out", out) == 0
    assert eber(monkeypatch, "fit", tmp_path / "table.csv", *NAMES, "--quick", "--out", tmp_path / "model") == 0
    said = capfd.readouterr()
    assert "".join(str(out / "report.html").split()) in "".join(said.out.split())
    assert "\\x1b[31mAsh\\x07ford\\u202e[/b]\\nAll is well." in said.err
    assert "\nAll is well." not in said.err + said.out
    assert not set("\x1b\x07\u202e") & set(said.err + said.out)


def test_the_card_makes_no_tag_link_or_picture_of_what_a_table_holds(tmp_path: Path) -> None:
    model = fitted_model(tmp_path)
    hostile = "<img src=x onerror=alert(1)> [a](javascript:b) ![c](d) `e` \x1b[1m | f"
    data = {**model.card["data"], "label": hostile, "file": hostile, "environment": hostile, "classes": [hostile]}
    data["environments"] = [{"name": hostile, "rows": 1, "classes": {hostile: 1}}]
    data["notes"] = [hostile]
    scores = [{"held_out": hostile, "rows": 1, "nll": 0.5}]
    page = card_page(
        {**model.card, "data": data, "remarks": [hostile], "held_out_scores": scores, "settings": {"a": hostile}},
        model.preprocessing,
    )
    assert page.count("&lt;img") == 10
    assert "<img" not in page
    assert " [a](" not in page
    assert "![c](" not in page
    assert "\x1b" not in page
    assert " `e`" not in page


def test_a_command_that_is_asked_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    """SIGTERM while a worker is at a cell: no temporary file, no lock, and the status that shells expect."""
    out = tmp_path / "out"
    arguments = ["compare", hospitals(tmp_path, 330), *NAMES, "--methods", "eber,erm", "--jobs", 2, "--out", out]
    process = start(command, arguments, tmp_path / "log")
    deadline = time.monotonic() + 200
    while process.is_alive() and not list(out.glob("cells/.*.lock")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    assert finish(process) == 128 + 15, (tmp_path / "log").read_text()
    assert [path.name for path in out.rglob(".*")] == []


def test_a_working_directory_that_was_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    program = (
        "import os, sys; os.rmdir(os.getcwd()); sys.argv = ['eber', 'data', 'list']; "
        "from eber.cli.main import main; main()"
    )
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path / "gone", env=surroundings, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("eber: The working directory has been removed")
    assert "Traceback" not in ended.stderr
