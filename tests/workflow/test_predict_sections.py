"""A large file of a folder, predicted in sections: to the last bit what one process writes, and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.tables import folder_prediction, prediction, section_prediction
from eber.tables.prediction import Asked, predict_file
from tests.trust.models import fitted_model

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fitted_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of five sections, and one that is none."""
    for module in (prediction, section_prediction):
        monkeypatch.setattr(module, "SECTION_ROWS", 60)
    for name, rows in (("large.parquet", 250), ("sub/small.parquet", 40)):
        frame = draw_hospitals(rows, random_state=rows).drop(columns=["sepsis", "hospital"])
        frame.loc[:9, "age"] = 4000.0
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pq.write_table(table, tmp_path / "new" / name, row_group_size=30)
    return tmp_path / "new"


def alone(model: Any, new: Path, out: Path) -> dict[str, bytes]:
    names = ("large.parquet", "sub/small.parquet")
    for name in names:
        predict_file(model, new / name, out / name, Asked(keep=("age",)))
    return {name: (out / name).read_bytes() for name in names}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_large_file_in_sections_is_the_file_predicted_alone(jobs: int, model: Any, new: Path, tmp_path: Path) -> None:
    expected = alone(model, new, tmp_path / "alone")
    found = eber.predict_folder(model, new, tmp_path / "out", keep="age", jobs=jobs)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in expected} == expected
    assert (found.report.rows, found.report.files, found.report.files_done_before) == (290, 2, 0)
    assert found.remarks == model.predict_table(new, tmp_path / "one.parquet", keep="age").remarks
    left = sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert left == ["large.parquet", "large.parquet.json", "small.parquet", "small.parquet.json"]
    again = eber.predict_folder(model, new, tmp_path / "out", keep="age")
    assert again.report.files_done_before == 2


def test_sections_that_are_done_are_not_done_again(
    model: Any, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after each task in turn, and given again, it ends with the same files."""
    expected, out = alone(model, new, tmp_path / "alone"), tmp_path / "out"
    predicted: list[int] = []

    def counted(model: Any, section: Any, out: Path, asked: Asked, first_row: int) -> Any:
        predicted.append(first_row)
        return prediction.predict_section(model, section, out, asked, first_row)

    monkeypatch.setattr(section_prediction, "predict_section", counted)

    class Stopped(BaseException):
        """As Ctrl-C is."""

    def one_task(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            before = len(predicted)
            yield task, function(task)
            if len(predicted) > before:
                raise Stopped

    for _ in range(5):
        with pytest.raises(Stopped):
            folder_prediction.predict_folder(model, new, out, Asked(keep=("age",)), each=one_task)
        assert not (out / "large.parquet").exists()
    assert predicted == [0, 60, 120, 180, 240]
    folder_prediction.predict_folder(model, new, out, Asked(keep=("age",)), each=one_task)
    assert len(predicted) == 5
    assert {name: (out / name).read_bytes() for name in expected} == expected


def test_sections_of_other_rows_are_done_again(model: Any, new: Path, tmp_path: Path) -> None:
    """A section that was damaged, or made of a file that is another by now, is not used."""
    expected, out = alone(model, new, tmp_path / "alone"), tmp_path / "out"
    task = folder_prediction.FolderTask(model, new, out, Asked(keep=("age",)))
    sections = task.sections(new / "large.parquet")
    for section in sections:
        task.predict(section)
    done = out / ".done" / "large.parquet.json"
    first, second = (section_prediction.section_paths(done, number)[0] for number in (0, 1))
    first.write_bytes(second.read_bytes())
    eber.predict_folder(model, new, out, keep="age")
    assert {name: (out / name).read_bytes() for name in expected} == expected
    rows = pq.read_table(new / "large.parquet")
    pq.write_table(rows.slice(1), new / "large.parquet", row_group_size=30)
    with pytest.raises(ValueError, match="was changed while it was read"):
        task.predict(sections[0])
