"""Opens an archive with DuckDB, Polars, pyarrow and deltalake: each must find the rows and bytes that we say it has.

Usage: read_archive.py ARCHIVE, with the output of `wireproof archive stats ARCHIVE --json` on standard input.
"""

import hashlib
import json
import sys
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet
from deltalake import DeltaTable


def digest(rows):
    """The hash of rows, of which each is a list of text, numbers, bytes and nulls."""
    lines = sorted(repr([bytes(value) if isinstance(value, memoryview) else value for value in row]) for row in rows)
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()


def by_deltalake(table, columns):
    """The rows as `deltalake` reads the log and the files."""
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=columns).to_pylist()
    return [[row[column] for column in columns] for row in rows]


def by_polars(table, columns):
    """The rows as Polars scans the table."""
    return polars.scan_delta(str(table)).select(columns).collect().rows()


def by_pyarrow(table, columns):
    """The rows of all files, of which none was removed."""
    rows = pyarrow.parquet.read_table(sorted(table.glob("day=*/*.parquet")), columns=columns).to_pylist()
    return [[row[column] for column in columns] for row in rows]


def by_duckdb(table, columns):
    """The rows as DuckDB reads the files."""
    names = ", ".join(f'"{column}"' for column in columns)
    return duckdb.sql(f"SELECT {names} FROM read_parquet('{table}/day=*/*.parquet')").fetchall()


COLUMNS = {
    "events": ["did", "arrival", "host", "seq", "kind", "rev", "verdict", "key", "form", "frame"],
    "ops": ["did", "arrival", "idx", "action", "collection", "rkey", "record"],
    "snapshots": ["did", "rev", "sig", "data", "records", "key"],
    "records": ["did", "rev", "collection", "rkey", "cid", "record"],
}


def main():
    archive, stated = Path(sys.argv[1]), json.load(sys.stdin)
    counts = {table["table"]: table["rows"] for table in stated["tables"]}
    for table, columns in COLUMNS.items():
        assert counts[table] > 0, f"{table} has no rows to compare"
        readers = [by_deltalake, by_polars, by_pyarrow, by_duckdb]
        found = {reader.__name__: digest(reader(archive / table, columns)) for reader in readers}
        assert len(set(found.values())) == 1, f"{table}: {found}"
        rows, _ = found["by_deltalake"]
        assert rows == counts[table], f"{table}: {rows} rows instead of {counts[table]}"
        # The partition column is in the log alone.
        days = {str(day) for day in polars.scan_delta(str(archive / table)).select("day").collect()["day"]}
        assert days and all(len(day) == 10 for day in days), days
        print(f"{table}: {rows} rows, the same for {len(readers)} readers")


main()
