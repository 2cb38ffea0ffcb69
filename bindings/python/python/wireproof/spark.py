"""Archives on Spark: their events judged again on all machines of a cluster.

Needs `pip install wireproof[spark]`, on the machines of the executors too, with Python 3.10 or later.
"""

from __future__ import annotations

import os

from ._archived_events import EVENT_COLUMNS, REFUSED, EventJudge
from .archive import Archive

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

__all__ = ["bind_to_loopback", "counts", "reverify"]

TABLES = ("events", "ops", "snapshots", "records", "parts", "part_records", "hidden", "plc_ops", "blobs", "labels")


def reverify(spark: Any, archive: str | os.PathLike[str], *, policy: Mapping[str, Any] | None = None) -> Any:
    """Judge the events of an archive again, each under the key that is stored with it, on the executors of Spark.

    Args:
        spark: the `SparkSession`.
        archive: a folder that all machines have, or an address that both Spark and Wireproof know, such as `s3a://BUCKET/PREFIX`.
        policy: options of `wireproof.Judge`, by name, such as `{"accept_too_big": True}`. By default none, as in `archive verify`.

    Returns:
        A `DataFrame` with a row for each event:

        - `file`, `row`: its place; `did`, `arrival`, `form` and `stored`, the verdict that is stored with it
        - `status`: `proved`, `refused`, `unverified` (it was stored as not verified) or `compact` (it has no frame: `wireproof archive
          verify` proves it from the operations of its account)
        - `code`: `verified`, or the stable name of the broken rule; of `unverified` the stored verdict, of `compact` null
        - `message`: an explanation of `code`, if there is more to say

        Of an event in full form `status` and `code` are those of `wireproof archive verify`, which in addition compares keys with the
        histories of accounts, and counts gaps. A frame of another account than its row is refused by both, as `archive/account` or
        `signature/no-key`: whether its key is known depends on the rows that are judged with it.

        If a file of the archive has other bytes than its name says, the rows are these files alone, with the code `archive/file` and
        without `row`: no event is judged.

        The files of the table are those that its log names when the function is called. Rows are computed each time the
        `DataFrame` is used.

    Raises:
        ArchiveError: the log of a table cannot be read.
        TypeError, ValueError: `policy` has an unknown option or a wrong value.
        ImportError: pyspark or pyarrow is missing.
    """
    address = os.fspath(archive)
    opened, options = Archive(address), dict(policy or {})
    EventJudge(options, [])
    root = address if "://" in address else f"file://{os.path.abspath(address)}"
    files = [f"{root}/{file['path']}" for table in TABLES for file in opened.files(table)]
    changed = _changed_files(spark, files)
    if changed:
        return spark.createDataFrame(changed, RESULT)
    events = [f"{root}/{file['path']}" for file in opened.files("events")]
    if not events:
        return spark.createDataFrame([], RESULT)
    rows = spark.read.schema(STORED).parquet(*events)
    placed = rows.selectExpr(f"{_path_of('_metadata.file_path')} AS file", "_metadata.row_index AS row", *EVENT_COLUMNS)
    return placed.mapInArrow(_judging(options, opened._erased()), RESULT)


def counts(verdicts: Any) -> Any:
    """Count the rows of `reverify`.

    Args:
        verdicts: the `DataFrame` of `reverify`.

    Returns:
        A `DataFrame` of `status`, `code` and `count`, sorted.
    """
    return verdicts.groupBy("status", "code").count().orderBy("status", "code")


def bind_to_loopback() -> dict[str, str]:
    """Let Spark on this machine listen on 127.0.0.1 alone. Call it before the first session of the process.

    Returns:
        Settings for `SparkSession.builder.config(map=…)`. `SPARK_LOCAL_IP` and `SPARK_LOCAL_HOSTNAME` are set in the environment of the
        process, which the processes of Spark inherit: no setting binds the ports of the local master and its workers.
    """
    os.environ.update({"SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_HOSTNAME": LOOPBACK})
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.master.rest.enabled": "false",
    }


def _changed_files(spark: Any, files: list[str]) -> list[tuple[Any, ...]]:
    """A row for each file whose bytes have another SHA-256 than its name says."""
    if not files:
        return []
    found = spark.read.format("binaryFile").load(files)
    hashed = found.selectExpr(f"{_path_of('path')} AS file", "sha2(content, 256) AS sha256")
    changed = hashed.where("NOT endswith(file, concat('/', sha256, '.parquet'))").orderBy("file").collect()
    message = "the bytes have the SHA-256 {}: the file was changed"
    return [
        (row.file, None, None, None, None, None, REFUSED, "archive/file", message.format(row.sha256)) for row in changed
    ]


def _path_of(column: str) -> str:
    """The expression for the path of a file within the archive: table, day and name."""
    return f"regexp_extract({column}, '[^/]+/[^/]+/[^/]+$', 0)"


def _judging(policy: dict[str, Any], erased: list[tuple[bytes, list[bytes]]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that an executor applies to the batches of a partition."""

    def judge(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow  # type: ignore

        judge = EventJudge(policy, erased)
        for batch in batches:
            columns = {"file": batch.column(0), "row": batch.column(1)} | judge.judge(batch)
            types = {name: pyarrow.int64() if name in ("row", "arrival") else pyarrow.string() for name in columns}
            yield pyarrow.RecordBatch.from_pydict(columns, pyarrow.schema(types))

    return judge


LOOPBACK = "127.0.0.1"

STORED = (
    "did STRING, arrival LONG, received TIMESTAMP, verdict STRING, key STRING, form STRING, frame BINARY"
)

RESULT = (
    "file STRING, row LONG, did STRING, arrival LONG, stored STRING, form STRING, status STRING, code STRING, message STRING"
)
