"""Sources as they come: each format gives the same table, and what it needs or refuses is one sentence."""

from __future__ import annotations

import io
import os
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from eber.tables import files
from eber.tables.files import open_table
from eber.tables.readers import FORMATS
from eber.tables.reading import Reading
from eber.tables.training import read_training_table

Write = Callable[[pd.DataFrame, Path], None]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Forty rows of two sites, of every kind that all formats know."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "site": ["a", "b"] * 20,
            "y": ["no", "no", "yes", "yes"] * 10,
            "age": rng.integers(20, 90, 40),
            "lactate": rng.normal(2, 0.5, 40).round(2),
            "ward": ["surgery", "medicine", None, "intensive", "surgery"] * 8,
        }
    )


def _excel(table: pd.DataFrame, path: Path) -> None:
    pytest.importorskip("openpyxl")
    table.to_excel(path, index=False)


def _spss(table: pd.DataFrame, path: Path) -> None:
    pytest.importorskip("pyreadstat").write_sav(table, str(path))


def _sqlite(table: pd.DataFrame, path: Path) -> None:
    with sqlite3.connect(path) as database:
        table.to_sql("visits", database, index=False)
    database.close()


def _duckdb(table: pd.DataFrame, path: Path) -> None:
    with pytest.importorskip("duckdb").connect(str(path)) as database:
        database.register("given", pa.Table.from_pandas(table))
        database.execute("CREATE TABLE visits AS SELECT * FROM given")


def _anndata(table: pd.DataFrame, path: Path) -> None:
    anndata = pytest.importorskip("anndata", reason="anndata is an extra of its own, with many dependencies")
    # Not every version of anndata writes the text columns of pandas 3.
    cells = pd.Index([f"cell {j}" for j in table.index], dtype=object)
    obs = pd.DataFrame(index=cells)
    for name in ("site", "y", "ward"):
        categories = pd.Index(sorted(table[name].dropna().unique()), dtype=object)
        obs[name] = pd.Categorical(table[name].astype(object), categories=categories)
    var = pd.DataFrame(index=pd.Index(["age", "lactate"], dtype=object))
    anndata.AnnData(table[["age", "lactate"]].to_numpy(float), obs=obs, var=var).write_h5ad(path)


FILES: dict[str, Write] = {
    "t.csv": lambda table, path: table.to_csv(path, index=False),
    "t.parquet": lambda table, path: table.to_parquet(path),
    "t.feather": lambda table, path: pyarrow.feather.write_feather(table, str(path)),
    "t.xlsx": _excel,
    "t.dta": lambda table, path: table.fillna({"ward": ""}).to_stata(path, write_index=False),
    "t.sav": _spss,
    "t.sqlite": _sqlite,
    "t.duckdb": _duckdb,
    "t.h5ad": _anndata,
}


@pytest.mark.filterwarnings("ignore:Importing read_text:FutureWarning", "ignore::UserWarning:anndata")
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_table(name: str, tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / name
    if name == "t.dta":
        pytest.importorskip("pyreadstat")  # pandas writes the file, and does not read it here
    FILES[name](frame, path)
    table = read_training_table(path, label="y", environment="site")
    kinds = {feature.name: feature.kind for feature in table.schema.features}
    assert kinds == {"age": "numeric", "lactate": "numeric", "ward": "categorical"}
    np.testing.assert_allclose(table.columns.values["lactate"], frame["lactate"])
    np.testing.assert_array_equal(table.columns.values["age"], frame["age"])
    ward = frame["ward"].astype(object).where(frame["ward"].notna(), None)
    assert table.columns.values["ward"].to_pylist() == ward.tolist()
    assert table.y.tolist() == frame["y"].tolist()
    assert open_table(path).fingerprint == open_table(open_table(path)).fingerprint


def test_every_suffix_belongs_to_one_format() -> None:
    suffixes = [suffix for format_ in FORMATS for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("t.xlsx", "openpyxl", "excel"),
        ("t.dta", "pyreadstat", "statistics"),
        ("t.sav", "pyreadstat", "statistics"),
        ("t.duckdb", "duckdb", "duckdb"),
        ("t.h5ad", "anndata", "anndata"),
    ],
)
def test_a_missing_extra_says_how_to_install_it(
    name: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{module} is needed to read .*: pip install 'eber\[{extra}\]'"):
        open_table(tmp_path / name)


@pytest.mark.parametrize("name", [name for name in FILES if name != "t.csv"])
def test_a_file_that_is_not_what_its_name_says_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"anything but that" * 100)
    try:
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            open_table(tmp_path / name).read()
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "address", ["https://example.org/t.csv", "http://example.org/t.csv", "s3://bucket/t.parquet", "gs://bucket/t"]
)
def test_a_web_address_is_refused_with_what_to_do(address: str) -> None:
    for given in (address, Path(address)):
        with pytest.raises(ValueError, match="is an address, and eber reads files alone: download it") as error:
            open_table(given)
        assert address in str(error.value)


def test_a_line_that_names_the_separator_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfsep=;\r\na,b;c\r\n1,5;2\r\n")
    file = open_table(path)
    assert file.read().to_pydict() == {"a,b": ["1,5"], "c": ["2"]}
    assert file.decimal_comma


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le"])
def test_other_encodings_are_read_when_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;name\n1,5;Zoë\n".encode(encoding))
    assert open_table(path, Reading(encoding=encoding)).read().to_pydict() == {"größe": ["1,5"], "name": ["Zoë"]}
    with pytest.raises(ValueError, match=r"UTF-8|UTF-16|no text"):
        open_table(path).read()
    with pytest.raises(ValueError, match="There is no encoding 'latin-99'"):
        Reading(encoding="latin-99")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    """One that nobody writes to would be waited for without a word, and none could be read again by workers."""
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), pipe):
        with pytest.raises(ValueError, match=r"is a pipe or a device.*standard input"):
            open_table(path)


def test_standard_input_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    files._keep_standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    file = open_table("-")
    assert file.read().to_pydict() == open_table(Path("-")).read().to_pydict() == {"a": ["1"], "b": ["2"]}
    assert file.title == "standard input"
    files._keep_standard_input.cache_clear()


def test_a_folder_of_csv_files_names_the_file_of_each_row(tmp_path: Path, frame: pd.DataFrame) -> None:
    for site, rows in frame.groupby("site"):
        rows.drop(columns="site").to_csv(tmp_path / f"{site}.csv", index=False)
    table = read_training_table(tmp_path, label="y", environment="file")
    assert sorted(set(table.environments)) == ["a", "b"]
    assert len(table) == 40
    before = open_table(tmp_path).fingerprint
    (tmp_path / "b.csv").rename(tmp_path / "c.csv")
    assert open_table(tmp_path).fingerprint != before, "a name that is a column is content"
    for first, second in (("1", "12"), ("11", "2")):
        for path, name in zip(sorted(tmp_path.iterdir()), (first, second), strict=True):
            path.rename(tmp_path / f"{name}.csv")
        assert open_table(tmp_path).fingerprint != before, "also where all names together are the same letters"
        before = open_table(tmp_path).fingerprint
    pd.DataFrame({"z": [1]}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(ValueError, match=r"d\.csv has other columns than .*11\.csv"):
        open_table(tmp_path)


def test_what_is_hidden_in_a_folder_is_no_part_of_the_table(tmp_path: Path, frame: pd.DataFrame) -> None:
    """Editors keep copies there, and Spark what it has not finished: rows would count twice."""
    for place in (".", ".ipynb_checkpoints", "_temporary/0"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        frame.to_csv(tmp_path / place / "a.csv", index=False)
        frame.to_csv(tmp_path / place / ".b.csv", index=False)
    assert open_table(tmp_path).parts == (tmp_path / "a.csv",)


@pytest.mark.parametrize("sign", ["_delta_log/0.json", ".hoodie/hoodie.properties", "metadata/1.metadata.json"])
def test_a_folder_whose_files_hold_deleted_rows_is_refused(sign: str, tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / sign).parent.mkdir()
    (tmp_path / sign).touch()
    with pytest.raises(ValueError, match=r"is a table of (Delta Lake|Apache \w+), whose log says .* export its rows"):
        open_table(tmp_path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("text", [" ", " NA", "NaN  ", "\t?", " - "])
def test_what_says_missing_may_have_blanks_around_it(name: str, text: str, tmp_path: Path, frame: pd.DataFrame) -> None:
    """It would be a class of its own, or an environment."""
    rows = np.arange(len(frame))
    changed = {"y": rows < 3, "site": (rows > 3) & (rows < 6), "ward": rows == 8, "age": rows == 9}
    written = frame.astype(dict.fromkeys(changed, object))
    for column, where in changed.items():
        written.loc[where, column] = text
    FILES[name](written.astype(dict.fromkeys(changed, str)), tmp_path / name)
    table = read_training_table(tmp_path / name, label="y", environment="site")
    assert table.classes.tolist() == ["no", "yes"]
    assert np.unique(table.environments).tolist() == ["a", "b"]
    assert len(table) == len(frame) - 5
    assert table.columns.values["ward"][3] is not None
    assert not table.columns.values["ward"][3].is_valid
    assert np.isnan(table.columns.values["age"][4])


def test_partitions_of_parquet_are_columns(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["site"] = frame["site"].replace({"a": "St. Mary/1", "b": "2"})
    pq.write_to_dataset(pa.Table.from_pandas(frame), tmp_path / "t", partition_cols=["site"])
    table = read_training_table(tmp_path / "t", label="y", environment="site")
    assert sorted(set(table.environments)) == ["2", "St. Mary/1"]
    assert [batch.num_columns for batch in open_table(tmp_path / "t").batches(["site", "age"])] == [2, 2]
    (tmp_path / "twice" / "site=a" / "site=b").mkdir(parents=True)
    frame.to_parquet(tmp_path / "twice" / "site=a" / "site=b" / "t.parquet")
    with pytest.raises(ValueError, match="lies in two folders that say what site is"):
        open_table(tmp_path / "twice")
    frame.to_parquet(tmp_path / "t" / "stray.parquet")
    with pytest.raises(ValueError, match="partitioned in one way"):
        open_table(tmp_path / "t")


def test_a_workbook_of_several_sheets_asks_which(tmp_path: Path, frame: pd.DataFrame) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="2024", index=False)
        frame.head(3).to_excel(writer, sheet_name="few", index=False)
    with pytest.raises(ValueError, match=r"t\.xlsx has 2 sheets \('2024', 'few'\); name the one .* --sheet"):
        open_table(path)
    with pytest.raises(ValueError, match=r"has no sheet '2025'; its sheets are '2024', 'few'"):
        open_table(path, Reading(sheet="2025"))
    assert open_table(path, Reading(sheet="few")).read().num_rows == 3


def test_numbers_and_texts_in_one_column_of_a_workbook_are_read_as_written(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"crp": [1.5, "<5", 3, "#N/A"], "n": [1, 2, None, 4]}).to_excel(path, index=False)
    assert open_table(path).read().to_pydict() == {"crp": ["1.5", "<5", "3", None], "n": [1, 2, None, 4]}


@pytest.mark.parametrize("kind", ["", 't="str"'])
def test_a_formula_without_its_value_is_refused_by_cell(kind: str, tmp_path: Path, frame: pd.DataFrame) -> None:
    """It would be a missing value in every row; the empty text that a formula may give is one."""
    openpyxl = pytest.importorskip("openpyxl")
    path, patched = tmp_path / "t.xlsx", tmp_path / "patched.xlsx"
    frame.to_excel(path, index=False)
    book = openpyxl.load_workbook(path)
    book.active["C3"] = '=IF(D3>9,D3,"")'
    book.save(path)
    with zipfile.ZipFile(path) as given, zipfile.ZipFile(patched, "w") as archive:
        for name in given.namelist():
            archive.writestr(name, given.read(name).replace(b'<c r="C3"', b'<c r="C3" ' + kind.encode()))
    if kind:
        assert open_table(patched).read()["age"].null_count == 1
        return
    with pytest.raises(ValueError, match=r"Cell C3 of .*patched\.xlsx holds a formula without its value: open the"):
        open_table(patched)


@pytest.mark.parametrize("name", ["t.sqlite", "t.duckdb"])
def test_a_database_gives_its_only_table_or_what_a_query_asks_for(
    name: str, tmp_path: Path, frame: pd.DataFrame
) -> None:
    path = tmp_path / name
    FILES[name](frame, path)
    asked = Reading(query="SELECT site, age + 1 AS older FROM visits WHERE y = 'yes'")
    assert open_table(path, asked).read()["older"].to_pylist() == (frame.loc[frame["y"] == "yes", "age"] + 1).tolist()
    with pytest.raises(ValueError, match=rf"{name}.*the query cannot be read: .*nothing"):
        open_table(path, Reading(query="SELECT nothing FROM visits"))
    with pytest.raises(ValueError, match="the query cannot be read"):
        open_table(path, Reading(query="DROP TABLE visits"))
    assert open_table(path).read().num_rows == 40, "and nothing was written"


def test_a_database_of_several_tables_asks_which(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as database:
        frame.to_sql("a", database, index=False)
        frame.to_sql("b", database, index=False)
    database.close()
    with pytest.raises(ValueError, match=r't\.db has 2 tables \(a, b\); say which with --query "SELECT'):
        open_table(path)


def test_any_query_can_be_asked_about_a_file(tmp_path: Path, frame: pd.DataFrame) -> None:
    pytest.importorskip("duckdb")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        file = open_table(
            tmp_path / name, Reading(query="SELECT site, max(age) AS oldest FROM data GROUP BY 1 ORDER BY 1")
        )
        assert file.read()["oldest"].to_pylist() == frame.groupby("site")["age"].max().tolist()
        assert file.source is None, "other processes get the rows, and do not ask again"


def test_labels_of_values_are_read_where_all_values_have_one(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "t.sav"
    values = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "pain": [0.0, 4.0, 10.0], "dose": [1.0, 99.0, 3.0]})
    labels = {"sex": {1: "male", 2: "female"}, "pain": {0: "none", 10: "worst"}}
    pyreadstat.write_sav(values, str(path), variable_value_labels=labels, missing_ranges={"dose": [99]})
    file = open_table(path)
    assert file.read().to_pydict() == {
        "sex": ["male", "female", "male"],
        "pain": [0.0, 4.0, 10.0],
        "dose": [1.0, None, 3.0],
    }
    assert file.notes == ("Column 'pain' stays numeric: only some of its values have labels (0 = none, 10 = worst).",)


def test_a_category_of_numbers_stays_a_category(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["ward"] = pd.Categorical([1, 2, 3, 2, 1] * 8)
    for name in ("t.parquet", "t.feather"):
        FILES[name](frame, tmp_path / name)
        table = read_training_table(tmp_path / name, label="y", environment="site")
        assert {feature.name: feature.kind for feature in table.schema.features}["ward"] == "categorical"
        assert table.columns.values["ward"].to_pylist()[:3] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "option"), [("t.csv", "sheet"), ("t.parquet", "encoding"), ("t.sqlite", "sheet"), ("t.feather", "query")]
)
def test_an_option_without_a_meaning_is_refused(name: str, option: str, tmp_path: Path, frame: pd.DataFrame) -> None:
    FILES[name](frame, tmp_path / name)
    with pytest.raises(ValueError, match=rf"--{option} .*{name}"):
        open_table(tmp_path / name, Reading(**{option: "utf-8"}))


def test_a_workbook_larger_than_the_memory_is_refused(
    tmp_path: Path, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    _excel(frame, tmp_path / "t.xlsx")
    monkeypatch.setattr("eber.tables.readers.protocol.memory_limit", lambda: 2000)
    with pytest.raises(ValueError, match=r"t\.xlsx takes more than .* of memory"):
        open_table(tmp_path / "t.xlsx")
