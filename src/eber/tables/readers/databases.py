"""Databases: SQLite by the standard library, DuckDB files, and any query of DuckDB's about a file.

The only table of a database is read, or the answer of a query. A query about a file that is no database calls it
``data``. Nothing is written, and nothing is fetched over the network.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from eber.tables.readers import protocol
from eber.tables.readers.protocol import Format, Rows, begins, naming_reader, require_extra, require_path
from eber.tables.readers.whole import table_of_cells, whole_rows
from eber.tables.reading import Reading

VIEW = "data"


def _open_sqlite(part: Any, reading: Reading) -> Rows:
    path = require_path(part, "A database")
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        with naming_reader(path, "a SQLite database"):
            found = database.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
            ).fetchall()
        query = reading.query or _only_table(path, [name for (name,) in found])
        with _naming_query(path, reading.query):
            cursor = database.execute(query)
            if cursor.description is None:
                raise ValueError("it gives no table")
            table = table_of_cells(path, [column[0] for column in cursor.description], cursor)
    return whole_rows(table)


def _open_duckdb(part: Any, reading: Reading) -> Rows:
    path = require_path(part, "A database")
    with _connected(str(path), read_only=True) as database:
        tables = [name for (name,) in database.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
        query = reading.query or _only_table(path, tables)
        return whole_rows(_answer(database, query, path, reading.query))


def open_query(path: Path, query: str) -> Rows:
    """The answer of DuckDB to a query about a file or a folder, which is called ``data`` in it."""
    place = str(path).replace("'", "''")
    if path.is_dir():
        place += "/**/*.parquet"
    options = ", hive_partitioning = true" if path.is_dir() else ""
    reader = "read_parquet" if path.is_dir() or path.suffix in (".parquet", ".pq") else "read_csv"
    with _connected(":memory:") as database:
        with naming_reader(path, "a table for a query"):
            database.execute(f"CREATE VIEW {VIEW} AS SELECT * FROM {reader}('{place}'{options})")
        return whole_rows(_answer(database, query, path, query))


@contextlib.contextmanager
def _connected(place: str, read_only: bool = False) -> Iterator[Any]:
    duckdb = require_extra("duckdb", "duckdb", "DuckDB files and the answers of queries")
    # One thread: the rows then come in the same order each time. No extension is fetched over the network.
    settings = {"threads": 1, "autoinstall_known_extensions": False}
    with naming_reader(place, "a DuckDB database"):
        database = duckdb.connect(place, read_only=read_only, config=settings)
    with contextlib.closing(database):
        yield database


def _answer(database: Any, query: str, path: Path, given: str | None) -> Any:
    limit, size, batches = protocol.memory_limit(), 0, []
    with _naming_query(path, given):
        answer = database.sql(query)
        if answer is None:
            raise ValueError("it gives no table")
        # Versions before 2 have another name for it.
        reader = (answer.to_arrow_reader if hasattr(answer, "to_arrow_reader") else answer.fetch_arrow_reader)()
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > limit:
                break
    protocol.require_room(path, size, limit)
    return pa.Table.from_batches(batches, schema=reader.schema)


@contextlib.contextmanager
def _naming_query(path: Path, given: str | None) -> Iterator[None]:
    try:
        with naming_reader(path, "a database"):
            yield
    except ValueError as error:
        reason = protocol.first_line(error.__cause__ or error)
        what = "the query" if given else "the table"
        raise ValueError(f"{path}: {what} cannot be read: {reason}.") from error


def _only_table(path: Path, names: list[str]) -> str:
    if len(names) != 1:
        listed = f" ({', '.join(names[:12])}{', ...' if len(names) > 12 else ''})" if names else ""
        raise ValueError(f'{path} has {len(names)} tables{listed}; say which with --query "SELECT * FROM ...".')
    quoted = names[0].replace('"', '""')
    return f'SELECT * FROM "{quoted}"'


SQLITE = Format(
    "SQLite", (".sqlite", ".sqlite3"), begins(b"SQLite format 3\x00"), _open_sqlite, takes=("query",), keeps=False
)
DUCKDB = Format(
    "DuckDB", (".duckdb",), lambda start: start[8:12] == b"DUCK", _open_duckdb, takes=("query",), keeps=False
)
