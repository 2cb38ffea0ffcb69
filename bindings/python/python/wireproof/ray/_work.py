"""The work on one file of an archive, and its result, which is stored once."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from dataclasses import dataclass

import pyarrow  # type: ignore
import pyarrow.compute  # type: ignore
import pyarrow.parquet  # type: ignore

from .._archived_events import EVENT_COLUMNS, REFUSED, UNVERIFIED, EventJudge
from .._wireproof import FileStore  # type: ignore
from ..archive import Archive
from ..errors import ArchiveError

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass(frozen=True)
class Reverify:
    """Judges the events of a file again."""

    archive: str
    policy: dict[str, Any]
    erased: list[tuple[bytes, list[bytes]]]

    def __post_init__(self) -> None:
        EventJudge(self.policy, [])

    def name(self) -> dict[str, Any]:
        """What the work is, apart from the file."""
        parts = [part for key, hashes in self.erased if hashes for part in (key, *sorted(hashes))]
        erased = hashlib.sha256(b"".join(parts)).hexdigest()
        return {"work": "reverify", "archive": self.archive, "policy": self.policy, "erased": erased}

    def result(self, file: dict[str, Any]) -> Any:
        """The verdicts of its rows; of a file that was changed one row for the file."""
        content, sha256 = _content(self.archive, file)
        if not _has_name(file, sha256):
            return pyarrow.Table.from_pylist([_changed(file, sha256)], VERDICTS)
        stored = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content))
        judge, batches, first = EventJudge(self.policy, self.erased), [], 0
        for batch in stored.iter_batches(BATCH_ROWS, columns=list(EVENT_COLUMNS)):
            columns = judge.judge(batch)
            columns["file"] = [file["path"]] * batch.num_rows
            columns["row"] = list(range(first, first + batch.num_rows))
            first += batch.num_rows
            batches.append(pyarrow.RecordBatch.from_pydict({name: columns[name] for name in VERDICTS.names}, VERDICTS))
        return pyarrow.Table.from_batches(batches, VERDICTS)

    def counts(self, result: Any) -> Counter[str]:
        """Number of rows by status, and by code where it says more."""
        pairs = zip(result["status"].to_pylist(), result["code"].to_pylist(), strict=True)
        return Counter(f"{status} {code}" if status in (REFUSED, UNVERIFIED) else status for status, code in pairs)


@dataclass(frozen=True)
class Transform:
    """Applies SQL or a function to the rows of a file that are shown."""

    archive: str
    what: str | Callable[[Any], Any]
    table: str
    columns: tuple[str, ...] | None

    def name(self) -> dict[str, Any]:
        """What the work is, apart from the file."""
        what = self.what
        text = what if isinstance(what, str) else f"{what.__module__}.{what.__qualname__}"
        columns = None if self.columns is None else list(self.columns)
        return {"work": "transform", "archive": self.archive, "what": text, "table": self.table, "columns": columns}

    def result(self, file: dict[str, Any]) -> Any:
        """What the SQL or the function gives."""
        rows = Archive(self.archive).scan(self.table, self.columns, files=[file["path"]])
        if not isinstance(self.what, str):
            return self.what(pyarrow.table(rows))
        import duckdb  # type: ignore

        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("rows", pyarrow.RecordBatchReader.from_stream(rows))
            return connection.sql(self.what).to_arrow_table()

    def counts(self, result: Any) -> Counter[str]:
        """Number of rows."""
        return Counter(rows=result.num_rows)


@dataclass(frozen=True)
class Audit:
    """Compares a file with its name and with the log."""

    archive: str

    def name(self) -> dict[str, Any]:
        """What the work is, apart from the file."""
        return {"work": "audit", "archive": self.archive}

    def result(self, file: dict[str, Any]) -> Any:
        """A row about the file."""
        content, sha256 = _content(self.archive, file)
        code, message = None, None
        if not _has_name(file, sha256):
            code, message = "archive/file", _changed(file, sha256)["message"]
        else:
            try:
                message = _difference(file, content)
                code = message and "archive/log"
            except pyarrow.ArrowException as error:
                code, message = "archive/parquet", str(error)
        row = {"file": file["path"], "bytes": len(content), "rows": file["rows"], "code": code, "message": message}
        return pyarrow.Table.from_pylist([row | {"status": REFUSED if code else INTACT}], AUDITED)

    def counts(self, result: Any) -> Counter[str]:
        """Number of files by status and code."""
        codes = result["code"].to_pylist()
        return Counter(f"{REFUSED} {code}" if code else INTACT for code in codes)


def do(work: Any, file: dict[str, Any], to: str) -> dict[str, Any]:
    """Does the work on a file, unless its result is there, and says what the result is. Done twice, the first result is kept."""
    store, name = FileStore(to), result_name(work, file)
    present = store.fetch(name, MAX_BYTES)
    if present is not None:
        return _described(work, name, present, "present")
    written = _written(work.result(file))
    if store.put_new(name, written):
        return _described(work, name, written, "written")
    return _described(work, name, _existing(store, name), "duplicate")


def begin(work: Any, files: list[dict[str, Any]], to: str) -> list[dict[str, Any]] | None:
    """The files of the work: those of its first run, which are stored beside the results. None if the folder is of other work."""
    plan = json.dumps({"name": work.name(), "files": files}, sort_keys=True, default=list).encode()
    store = FileStore(to)
    if not store.put_new(PLAN, plan):
        plan = _existing(store, PLAN)
    stored = json.loads(plan)
    return stored["files"] if stored["name"] == json.loads(json.dumps(work.name(), default=list)) else None


def result_name(work: Any, file: dict[str, Any]) -> str:
    """The name of a result: the work and the file give it."""
    named = json.dumps([work.name(), file["path"]], sort_keys=True, default=list)
    return f"{hashlib.sha256(named.encode()).hexdigest()}.parquet"


def _existing(store: FileStore, name: str) -> bytes:
    content = store.fetch(name, MAX_BYTES)
    if content is None:
        raise ArchiveError(f"{name}: a result was deleted while the work goes on", "archive/io")
    return content


def _described(work: Any, name: str, content: bytes, state: str) -> dict[str, Any]:
    result = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    return {
        "name": name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": result.num_rows,
        "counts": dict(work.counts(result)),
        "state": state,
    }


def _written(result: Any) -> bytes:
    """A Parquet file, whose bytes depend on the rows alone."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(result, file, compression="zstd", store_schema=True)
    return file.getvalue()


def _content(archive: str, file: dict[str, Any]) -> tuple[bytes, str]:
    """The bytes of a file, and their SHA-256."""
    content = FileStore(archive).fetch(file["path"], MAX_BYTES)
    if content is None:
        raise ArchiveError(f"{file['path']}: the file is missing: if it was replaced, begin with another folder", "archive/io")
    return content, hashlib.sha256(content).hexdigest()


def _has_name(file: dict[str, Any], sha256: str) -> bool:
    return file["path"].endswith(f"/{sha256}.parquet")


def _changed(file: dict[str, Any], sha256: str) -> dict[str, Any]:
    """The row about a file with other bytes than its name says."""
    message = f"the bytes have the SHA-256 {sha256}: the file was changed"
    return {"file": file["path"], "status": REFUSED, "code": "archive/file", "message": message}


def _difference(file: dict[str, Any], content: bytes) -> str | None:
    """What the log says otherwise than the file."""
    stored = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content))
    if len(content) != file["bytes"]:
        return f"the log says {file['bytes']} bytes, the file has {len(content)}"
    if stored.metadata.num_rows != file["rows"]:
        return f"the log says {file['rows']} rows, the file has {stored.metadata.num_rows}"
    if file["dids"] is None:
        return None
    bounds: list[str] = []
    for batch in stored.iter_batches(BATCH_ROWS, columns=["did"]):
        found = pyarrow.compute.min_max(batch.column(0)).as_py()
        bounds += [did for did in found.values() if did is not None]
    if bounds and (min(bounds), max(bounds)) != tuple(file["dids"]):
        return f"the log says accounts from {file['dids'][0]} to {file['dids'][1]}, the file has {min(bounds)} to {max(bounds)}"
    return None


INTACT = "intact"

VERDICTS = pyarrow.schema(
    [
        ("file", pyarrow.string()),
        ("row", pyarrow.int64()),
        ("did", pyarrow.string()),
        ("arrival", pyarrow.int64()),
        ("stored", pyarrow.string()),
        ("form", pyarrow.string()),
        ("status", pyarrow.string()),
        ("code", pyarrow.string()),
        ("message", pyarrow.string()),
    ]
)

AUDITED = pyarrow.schema(
    [
        ("file", pyarrow.string()),
        ("bytes", pyarrow.int64()),
        ("rows", pyarrow.int64()),
        ("status", pyarrow.string()),
        ("code", pyarrow.string()),
        ("message", pyarrow.string()),
    ]
)

#: The object that says which work a folder is of, and its files.
PLAN = "plan.json"

#: Rows that are read at a time: up to 5 MB each.
BATCH_ROWS = 1024

#: Size of the largest file of an archive, or result, that is read: four times that of a merged file.
MAX_BYTES = 1 << 30
