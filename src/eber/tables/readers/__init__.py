"""Formats of tables: one file each, and one line here. The first that knows a file opens it; CSV is what remains."""

from eber.tables.readers import anndata, arrow, csv, databases, excel, parquet, statistics

FORMATS = (
    parquet.FORMAT,
    arrow.FORMAT,
    databases.SQLITE,
    databases.DUCKDB,
    statistics.SPSS,
    statistics.STATA,
    excel.FORMAT,
    anndata.FORMAT,
    csv.FORMAT,
)
