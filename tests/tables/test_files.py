"""Tables are read as they were written, whatever their format; what cannot be read ends in one sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from eber.tables.files import open_table, unique_names

ROWS = 'name;dose;name\n"a;b";1,5;x\n"two\nlines";NA;"say ""hi"""\n'
EXPECTED = {"name": ["a;b", "two\nlines"], "dose": ["1,5", None], "name.2": ["x", 'say "hi"']}


def test_semicolons_quotes_a_mark_of_order_and_doubled_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + ROWS.encode())
    file = open_table(path)
    assert file.read().to_pydict() == EXPECTED
    assert file.decimal_comma
    assert "name.2" in file.notes[0]


def test_gzip_is_found_by_content_and_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(ROWS.encode()))
    assert open_table(path).read().to_pydict() == EXPECTED


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a{delimiter}b\n1{delimiter}2\n")
    assert open_table(path).names == ("a", "b")


def test_a_folder_of_parquet_files_is_one_table_in_the_order_of_names(tmp_path: Path) -> None:
    for name, values in (("b", [3]), ("a", [1, 2])):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    assert open_table(tmp_path).read().to_pydict() == {"x": [1, 2, 3]}


def test_batches_are_bounded_and_together_are_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": range(1000), "y": range(1000)}).to_parquet(path)
    batches = list(open_table(path).batches(["y"], rows=300))
    assert max(batch.num_rows for batch in batches) <= 300
    assert [value for batch in batches for value in batch["y"].to_pylist()] == list(range(1000))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n3\n", "Row #3"),
        (b"a,b\n\xff\xfe,2\n", "UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04rest", "export it"),
        (b"PAR1 and nothing else", "not a whole Parquet file"),
        (bytes(range(256)), "no text"),
    ],
)
def test_what_cannot_be_read_ends_in_a_sentence_with_the_file(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.csv") as error:
        open_table(path).read()
    assert says in str(error.value)


def test_parts_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"z": [1]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has other columns"):
        open_table(tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.feather"])
def test_columns_asked_for_in_another_order_keep_their_values(tmp_path: Path, name: str) -> None:
    """All of them, too: names must not be put on columns by their place in the file."""
    table = pa.table({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    path = tmp_path / name
    writers = {".parquet": pq.write_table, ".csv": pacsv.write_csv, ".feather": feather.write_feather}
    writers[path.suffix](table, path)
    for order in (["c", "a", "b"], ["b", "a"]):
        (found,) = open_table(path).batches(order)
        assert {key: [int(value) for value in column] for key, column in found.to_pydict().items()} == {
            key: table[key].to_pylist() for key in order
        }


@given(st.lists(st.sampled_from(["a", "a.2", "b", "", " a "]), max_size=8))
def test_every_column_has_a_name_of_its_own(header: list[str]) -> None:
    names, _ = unique_names(header)
    assert len(set(names)) == len(header)
