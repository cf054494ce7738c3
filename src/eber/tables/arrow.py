"""pyarrow, or a sentence that says how to get it."""

from __future__ import annotations

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError("Reading tables needs pyarrow; install it with: pip install 'eber[data]'") from error

__all__ = ["pa", "pacsv", "pc", "pq"]
