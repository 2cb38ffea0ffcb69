"""Does to an archive what another engine does in the course of time, with deltalake.

Usage: other_engine.py clean|optimize|count ARCHIVE

`clean` makes a checkpoint of every table and deletes the entries before it, as a log is cleaned up after its retention time.
`optimize` joins the files of every table. `count` prints the rows of the table `hidden`, which a checkpoint of ours and the
entries after it give.
"""

import os
import sys
import time
from pathlib import Path

import polars
from deltalake import DeltaTable

TABLES = ["events", "ops", "snapshots", "records"]
RETENTION_SECONDS = 90 * 86_400


def clean(table):
    """Leaves the checkpoint of the newest version and its entry."""
    opened = DeltaTable(str(table))
    opened.create_checkpoint()
    old = time.time() - RETENTION_SECONDS
    for entry in sorted((table / "_delta_log").glob("*.json"))[:-1]:
        os.utime(entry, (old, old))
    DeltaTable(str(table)).cleanup_metadata()
    left = sorted((table / "_delta_log").glob("*.json"))
    assert len(left) == 1, f"{table}: {left}"


def optimize(table):
    """Joins the files, and deletes the old ones."""
    metrics = DeltaTable(str(table)).optimize.compact()
    opened = DeltaTable(str(table))
    opened.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    print(table.name, metrics["numFilesRemoved"], "files to", metrics["numFilesAdded"])


def count(table):
    """Both readers find the same rows."""
    rows = DeltaTable(str(table)).to_pyarrow_table().num_rows
    assert rows == polars.scan_delta(str(table)).collect().height
    print(rows)


def main():
    action, archive = sys.argv[1], Path(sys.argv[2])
    if action == "count":
        count(archive / "hidden")
        return
    for table in TABLES:
        {"clean": clean, "optimize": optimize}[action](archive / table)


main()
