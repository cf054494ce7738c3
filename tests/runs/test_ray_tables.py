"""A Ray of this machine prepares a table, and predicts a large file, to the bytes that this process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.tables import section_prediction
from eber.tables.files import open_table
from eber.tables.prediction import predict_file
from eber.tables.prepared import looking, preparing
from tests.tables.test_prepared import COLUMNS, frame
from tests.trust.models import fitted_model

pytest.importorskip("ray", reason="Ray is not installed: the extra eber[ray]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_ray_prepares_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(looking, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(preparing, "SECTION_ROWS", 150)
    frame().to_parquet(tmp_path / "table.parquet", index=False, row_group_size=100)
    here = eber.prepare_table(tmp_path / "table.parquet", tmp_path / "here", **COLUMNS)
    there = eber.prepare_table(tmp_path / "table.parquet", tmp_path / "there", **COLUMNS, backend="ray", jobs=2)
    assert there.digests == here.digests
    assert there.preprocessing == here.preprocessing
    for name in ("features.float32", "labels.uint8", "environments.int32"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_ray_predicts_sections_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections of about 30 rows, which are those of one process as well: they are row groups."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    model: Any = fitted_model(tmp_path)
    (tmp_path / "new").mkdir()
    new = draw_hospitals(240, random_state=5).drop(columns=["sepsis", "hospital"])
    new.to_parquet(tmp_path / "new" / "large.parquet", index=False, row_group_size=30)
    assert pq.read_metadata(tmp_path / "new" / "large.parquet").num_row_groups > 5
    with monkeypatch.context() as patch:
        for module in ("prediction", "section_prediction"):
            patch.setattr(f"eber.tables.{module}.SECTION_ROWS", 30)
        predict_file(model, tmp_path / "new" / "large.parquet", tmp_path / "alone.parquet")
        assert len(section_prediction.sections_of(open_table(tmp_path / "new" / "large.parquet"))) > 5
        eber.predict_folder(model, tmp_path / "new", tmp_path / "out", backend="ray", jobs=2)
    assert (tmp_path / "out" / "large.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
