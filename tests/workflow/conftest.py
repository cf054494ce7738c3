"""A small table that all tests of the workflow share."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from eber.datasets.hospitals import draw_hospitals


@pytest.fixture(scope="session")
def hospitals() -> pd.DataFrame:
    """Three hospitals of the example, one of them with a name that HTML must not run."""
    table = draw_hospitals(400)
    table = table[table["hospital"].isin(["Ashford", "Birchwood", "Dunmore"])].reset_index(drop=True)
    return table.assign(hospital=table["hospital"].replace("Ashford", "<script>alert(1)</script>"))


@pytest.fixture(scope="session")
def parquet(hospitals: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file."""
    path = tmp_path_factory.mktemp("workflow") / "hospitals.parquet"
    hospitals.to_parquet(path, index=False)
    return path
