"""Tables as they come from life, each with what has to become of it: a result, or a sentence that says these words."""

from __future__ import annotations

import contextlib
import decimal
import gzip
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Messy:
    """A table.

    Parameters
    ----------
    write : callable
        Writes it into a folder and returns its path.
    says : str
        What the refusal says; empty where there has to be a result.
    notes : tuple of str
        What has to be said about columns and rows on the way.
    compares : bool
        Whether environments can be held out; where not, `fit` still gives a model.
    kinds : tuple of tuple
        Some columns with what they have to be taken for.
    """

    write: Callable[[Path], Path]
    says: str = ""
    notes: tuple[str, ...] = ()
    compares: bool = True
    kinds: tuple[tuple[str, str], ...] = ()


def base(n: int = 60, sites: int = 3, seed: int = 0) -> pd.DataFrame:
    """Rows of a few sites, whose label follows the first column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "site": [f"s{j % sites}" for j in range(n)],
            "y": (x + 0.5 * rng.normal(size=n) > 0).astype(int),
            "x": np.round(x, 3),
            "w": np.round(rng.normal(size=n), 3),
        }
    )


def csv(
    frame: pd.DataFrame | Callable[[], pd.DataFrame], encoding: str = "utf-8", **options: object
) -> Callable[[Path], Path]:
    """Write a frame as CSV."""

    def write(folder: Path) -> Path:
        path = folder / "table.csv"
        table = frame() if callable(frame) else frame
        path.write_bytes(table.to_csv(index=False, **options).encode(encoding))
        return path

    return write


def text(content: str | bytes, name: str = "table.csv") -> Callable[[Path], Path]:
    """Write a file as it is."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def parquet(table: pa.Table | pd.DataFrame, cut: int = 0) -> Callable[[Path], Path]:
    """Write a Parquet file, less some bytes at its end."""

    def write(folder: Path) -> Path:
        path = folder / "table.parquet"
        pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table), path)
        if cut:
            path.write_bytes(path.read_bytes()[:-cut])
        return path

    return write


def folder_of(*tables: pd.DataFrame, suffix: str = "parquet") -> Callable[[Path], Path]:
    """Write a folder of Parquet or CSV files."""

    def write(folder: Path) -> Path:
        parts = folder / "parts"
        parts.mkdir()
        for j, table in enumerate(tables):
            path = parts / f"part-{j}.{suffix}"
            table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
        return parts

    return write


def feather(table: pd.DataFrame) -> Callable[[Path], Path]:
    """Write a Feather file."""

    def write(folder: Path) -> Path:
        path = folder / "table.feather"
        pyarrow.feather.write_feather(table, str(path))
        return path

    return write


def sqlite(*tables: pd.DataFrame) -> Callable[[Path], Path]:
    """Write a database of so many tables."""

    def write(folder: Path) -> Path:
        path = folder / "table.db"
        with contextlib.closing(sqlite3.connect(path)) as database:
            for j, table in enumerate(tables):
                table.to_sql(f"t{j}", database, index=False)
            database.commit()
        return path

    return write


def _missing_in_every_form() -> pd.DataFrame:
    frame = base().astype({"x": object})
    forms = ["", "NA", "-", "?", "null", "NaN", "n/a", "None", "."]
    frame.loc[: len(forms) - 1, "x"] = forms
    return frame


def _renamed(**names: str) -> str:
    return base().rename(columns=names).to_csv(index=False)


def _nested() -> pa.Table:
    frame = base()
    n = len(frame)
    return pa.table(
        {
            **{name: frame[name] for name in frame},
            "list": pa.array([[1, 2]] * n),
            "struct": pa.array([{"a": 1}] * n),
            "price": pa.array([decimal.Decimal(f"{j}.25") for j in range(n)]),
            "when": pa.array(pd.date_range("2020-01-01", periods=n, freq="h")),
            "bytes": pa.array([b"\x00\xff"] * n),
            "flag": pa.array([j % 3 == 0 for j in range(n)]),
            "colour": pa.array(["red", "blue"] * (n // 2)).dictionary_encode(),
            "half": pa.array(np.arange(n, dtype=np.float16) % 7),
        }
    )


def _with(**columns: object) -> pd.DataFrame:
    return base().assign(**columns)


N = 60
TABLES: dict[str, Messy] = {
    "numbers and words in one column": Messy(
        csv(_with(dose=["high" if j % 4 == 0 else str(j % 9) for j in range(N)])), kinds=(("dose", "categorical"),)
    ),
    "a few words among numbers": Messy(
        csv(_with(dose=["<1", "unk", *map(str, np.arange(58) % 7)])),
        notes=("'<1'", "'unk'"),
        kinds=(("dose", "numeric"),),
    ),
    "missing in every form": Messy(csv(_missing_in_every_form), kinds=(("x", "numeric"),)),
    "dates of many kinds": Messy(
        csv(_with(a="2021-03-04", b=["04.03.2021", "5/6/21"] * 30, c="12:30", d=["4 Mar 2020", "5-Apr-2021"] * 30)),
        notes=("'a' is not used", "'b' is not used", "'c' is not used", "'d' is not used"),
    ),
    "quotes and line ends in values": Messy(
        text(
            "site,y,x,kind\n"
            + "".join(f'"s,{j % 3}",{j // 3 % 2},{j * 7 % 13}.5,"a ""{j % 2}""\nb"\n' for j in range(N))
        )
    ),
    "semicolons and decimal commas": Messy(
        csv(base(), sep=";", decimal=","), kinds=(("x", "numeric"), ("w", "numeric"))
    ),
    "thousands separators": Messy(
        csv(_with(cells=[f"{j % 7},{j * 37 % 900 + 100}.5" for j in range(N)])), notes=("thousands separators",)
    ),
    "thousands points and decimal commas": Messy(
        text(
            "site;y;x;c\n"
            + "".join(f"s{j % 3};{j // 3 % 2};{j % 9},5;{j % 9}.{j * 37 % 900 + 100},5\n" for j in range(N))
        ),
        notes=("thousands separators",),
        kinds=(("x", "numeric"),),
    ),
    "tabs": Messy(csv(base(), sep="\t")),
    "bars": Messy(csv(base(), sep="|")),
    "a byte order mark": Messy(csv(base(), encoding="utf-8-sig")),
    "Windows line ends": Messy(csv(base(), lineterminator="\r\n")),
    "a separator that is named": Messy(text("sep=;\r\n" + base().to_csv(index=False, sep=";", decimal=","))),
    "Latin-1": Messy(csv(_with(name=["Zoë", "René"] * 30), encoding="latin-1"), says="UTF-8"),
    "UTF-16": Messy(csv(base(), encoding="utf-16"), says="UTF-16"),
    "UTF-16 without a mark": Messy(csv(base(), encoding="utf-16-le"), says="no text"),
    "the same name twice": Messy(text(_renamed(w="x")), notes=("x.2",)),
    "the label twice": Messy(text(_renamed(w="y")), says="two columns called 'y'"),
    "columns without a name": Messy(
        text(_renamed(w="", x=" ")), kinds=(("column 3", "numeric"), ("column 4", "numeric"))
    ),
    "an index of pandas": Messy(text(base().to_csv()), notes=("'column 1' is not used",)),
    "nothing": Messy(text(""), says="empty"),
    "blank lines": Messy(text("\n\n  \n"), says="empty"),
    "a header and no rows": Messy(csv(base(0)), says="no rows"),
    "one row": Messy(csv(base(1)), says="at least two classes"),
    "two rows": Messy(text("site,y,x\na,0,1\nb,1,2\n"), compares=False),
    "two rows of one label": Messy(text("site,y,x\na,0,1\nb,0,2\n"), says="at least two classes"),
    "rows of different lengths": Messy(text("site,y,x\na,0,1\nb,1\n"), says="Row #3"),
    "an open quote": Messy(text('site,y,x\na,0,"1\nb,1,2\n'), says="never closed"),
    "one environment": Messy(csv(base(sites=1)), compares=False),
    "five hundred environments": Messy(
        csv(base(1000, sites=500)), notes=("500 environments are held out in 20 folds",)
    ),
    "environments of one row": Messy(csv(_with(site=[f"s{j}" for j in range(N)])), says="names rows, not environments"),
    "some environments of one row": Messy(
        csv(base(90).assign(site=["a", "b", "c"] * 28 + [f"one {j}" for j in range(6)])),
        notes=("one 0, one 1, one 2, one 3, one 4 and 1 more: fewer than 20 rows, trained on but not held out",),
    ),
    "three classes": Messy(csv(_with(y=[["low", "middle", "high"][j // 3 % 3] for j in range(N)]))),
    "ten numbers as label": Messy(csv(_with(y=[j * 7 % 10 for j in range(N)]))),
    "a continuous label": Messy(csv(_with(y=np.linspace(0, 1, N))), says="Cut a continuous label"),
    "dates as label": Messy(csv(_with(y=["2020-01-01", "2021-01-01"] * 30)), says="holds dates"),
    "one class": Messy(csv(_with(y=1)), says="at least two classes"),
    "an environment of one class": Messy(
        csv(base().assign(y=lambda t: t["y"].where(t["site"] != "s1", 0))), notes=("s1: all rows are of one class",)
    ),
    "a class in one environment alone": Messy(
        csv(base().assign(y=lambda t: t["y"].where(t["site"] != "s2", 2))), notes=("s2 cannot be held out",)
    ),
    "no label column": Messy(csv(base().drop(columns="y")), says="no column 'y'"),
    "no environment column": Messy(csv(base().drop(columns="site")), says="no column 'site'"),
    "labels missing": Messy(
        csv(base(66).assign(y=lambda t: t["y"].where(t.index > 4))), notes=("5 of 66 rows have no label",)
    ),
    "no feature": Messy(csv(base()[["site", "y"]]), says="no column that could be a feature"),
    "constant and empty columns": Messy(csv(_with(k=3, e=None)), notes=("'k' is not used", "'e' is not used")),
    "identifiers": Messy(
        csv(
            _with(patient_id=range(N), hash=[f"{j * 2654435761 % 2**32:08x}" for j in range(N)], number=range(900, 960))
        ),
        notes=("'patient_id' is not used", "'hash' is not used", "'number' is not used"),
    ),
    "yes and no in many spellings": Messy(
        csv(_with(a=["yes", "NO"] * 30, b=["Y", "n"] * 30, c=["TRUE", "False"] * 30, d=["1", "0"] * 30)),
        kinds=(("a", "boolean"), ("b", "boolean"), ("c", "boolean"), ("d", "numeric")),
    ),
    "huge whole numbers": Messy(csv(_with(big=[10**30 + j * 10**28 for j in range(N)])), notes=("'big' is not used",)),
    "steps": Messy(
        csv(
            _with(pain=[["none", "Mild", "severe"][j // 3 % 3] for j in range(N)], stage=["I", "II", "III", "IV"] * 15)
        ),
        notes=("none, mild, moderate, severe",),
        kinds=(("pain", "ordinal"), ("stage", "ordinal")),
    ),
    "ordered and other categories of pandas": Messy(
        parquet(
            _with(
                grade=pd.Categorical(["b", "c", "a", "a"] * 15, categories=["c", "b", "a"], ordered=True),
                colour=pd.Categorical(["red", "blue"] * 30),
                ward=pd.Categorical([1, 2, 3, 1] * 15),
            )
        ),
        notes=("in this order: c, b, a",),
        kinds=(("grade", "ordinal"), ("colour", "categorical"), ("ward", "categorical")),
    ),
    "numbers beyond floating point": Messy(csv(_with(big=[f"{j % 7}e400" for j in range(N)]))),
    "infinities": Messy(csv(_with(v=["inf", "-Infinity", *map(str, np.arange(58) % 7)]))),
    "long category names": Messy(csv(_with(kind=["k" * 5000, "l" * 5000] * 30))),
    "markup in names": Messy(csv(_with(**{"<b>x</b>": RNG.normal(size=N), "a\nb": RNG.normal(size=N)}))),
    "gzip": Messy(text(gzip.compress(base().to_csv(index=False).encode()), "table.csv.gz")),
    "gzip in name alone": Messy(text(base().to_csv(index=False), "table.csv.gz"), says="cannot be read"),
    "half a gzip": Messy(
        text(gzip.compress(base(2000).to_csv(index=False).encode())[:-200], "t.csv.gz"), says="cannot be read"
    ),
    "half a Parquet file": Messy(parquet(base(), cut=10), says="not a whole Parquet file"),
    "lists, decimals and times in Parquet": Messy(
        parquet(_nested()),
        notes=("'list' is not used", "'struct' is not used", "'when' is not used", "'bytes' is not used"),
    ),
    "missing texts in Parquet": Messy(parquet(_missing_in_every_form().astype({"x": str})), kinds=(("x", "numeric"),)),
    "an index in Parquet": Messy(parquet(base().set_index("w"))),
    "a folder of Parquet files": Messy(folder_of(base(30), base(30, seed=1))),
    "a folder with other columns": Messy(folder_of(base(), base().drop(columns="w")), says="has other columns"),
    "a folder with other types": Messy(folder_of(base(), base().astype({"x": str})), says="of another type in"),
    "a folder with numbers of two sizes": Messy(folder_of(base(), base(seed=1).round().astype({"x": int}))),
    "a folder of CSV files": Messy(folder_of(base(30), base(30, seed=1), suffix="csv"), notes=("Column 'file' is",)),
    "a folder without Parquet": Messy(lambda folder: folder, says="holds no Parquet file"),
    "a file that is not there": Messy(lambda folder: folder / "nothing.csv", says="There is no file"),
    "codes for missing values": Messy(
        csv(_with(crp=[-999 if j % 6 == 0 else j % 11 + 0.5 for j in range(N)])),
        notes=("Column 'crp' has -999 in 10 of 60 rows", "--numeric crp"),
        kinds=(("crp", "numeric"),),
    ),
    "numbered objects": Messy(
        csv(_with(object_number=[j * 7919 % 1000 for j in range(N)])), notes=("'object_number' is not used",)
    ),
    "days without dashes": Messy(
        csv(_with(seen=pd.date_range("2023-12-01", periods=N).strftime("%Y%m%d"))), notes=("'seen' is not used",)
    ),
    "digits filled up with zeros": Messy(
        csv(_with(agent=["007", "008", "113", "012", "007"] * 12)),
        notes=("filled up with zeros",),
        kinds=(("agent", "categorical"),),
    ),
    "plus and minus": Messy(
        csv(base().assign(y=lambda t: t["y"].map({0: "-", 1: "+"}), smear=["+", "-", "-", "+", "-"] * 12)),
        notes=("+ is the positive one",),
        kinds=(("smear", "boolean"),),
    ),
    "an unknown class": Messy(
        csv(_with(y=["unknown" if j % 10 == 0 else ["no", "yes"][j // 3 % 2] for j in range(N)])),
        notes=("'unknown' (6 rows) is a class of its own",),
    ),
    "Feather": Messy(feather(base())),
    "SQLite": Messy(sqlite(base())),
    "two tables in SQLite": Messy(sqlite(base(), base()), says="has 2 tables"),
    "a picture": Messy(text(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(64)), says="no text"),
    "a web page": Messy(text("<!doctype html><html><body>404</body></html>\n"), says="no column 'y'"),
    "a spreadsheet": Messy(text(b"PK\x03\x04rest", "table.xlsx"), says="cannot be read as an Excel workbook"),
}


def two_thousand_columns() -> pd.DataFrame:
    """More columns than rows."""
    return pd.concat([base(), pd.DataFrame(RNG.normal(size=(N, 2000)).round(2)).add_prefix("c")], axis=1)


def ten_thousand_categories() -> pd.DataFrame:
    """A column whose values occur twice each."""
    return base(20_000).assign(kind=[f"level {j % 10_000}" for j in range(20_000)])
