"""Archives for tests: of several files, and changed by whoever writes to them."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import wireproof
from test_arrow import frames_of

FOREIGN_INFO = bytes.fromhex("a261746523696e666f626f7001a1646e616d656e4f75746461746564437572736f72")


def import_parts(command: str, frames: Path, folder: Path, parts: int) -> Path:
    """An archive of these frames, each part of which is a file of its own."""
    every, archive = frames_of(frames), folder / "archive"
    size = len(every) // parts
    for number in range(parts):
        part = every[number * size : (number + 1) * size]
        source = folder / f"part-{number}.bin"
        source.write_bytes(len(part).to_bytes(4, "big") + b"".join(len(frame).to_bytes(4, "big") + frame for frame in part))
        arguments = ["archive", "import", str(source), "--keys", str(frames.parent / "accounts.json"), "--to", str(archive)]
        subprocess.run([command, *arguments], check=True, capture_output=True)
    return archive


def findings(command: str, archive: Path) -> dict[str, Any]:
    """What `archive verify` says, without what it derives from frames: the package leaves that to the command."""
    arguments = [command, "archive", "verify", str(archive), "--all", "--json"]
    said: dict[str, Any] = json.loads(subprocess.run(arguments, capture_output=True, check=False).stdout)
    said["findings"] = [of for of in said["findings"] if of["code"] != "archive/derived"]
    said["refused_count"] -= said["refused"].pop("archive/derived", 0)
    return said


def digest(archive: Path) -> str:
    """SHA-256 of the rows of `snapshots` and `records` in order, without the times at which they were fetched: of the same
    repositories it is the same, in whatever files they lie."""
    import pyarrow as pa

    opened, hashed = wireproof.Archive(archive), hashlib.sha256()
    for table in ("snapshots", "records"):
        rows = pa.table(opened.scan(table)).to_pylist()
        lines = (repr([(name, value) for name, value in sorted(row.items()) if name != "fetched"]) for row in rows)
        hashed.update(f"{table}\n".encode() + "\n".join(sorted(lines)).encode())
    return hashed.hexdigest()


def repeat_rows(archive: Path, path: str) -> None:
    """Adds the rows of a file to its table once more, as a foreign writer can."""
    import pyarrow.parquet as pq

    written = io.BytesIO()
    pq.write_table(pq.ParquetFile(archive / path).read(), written, compression="gzip")
    add = _added(archive, path)
    entry = {"add": add | {"path": _store(archive, path, written.getvalue()), "size": len(written.getvalue())}}
    _commit(archive, path, [entry])


def replace_rows(archive: Path, path: str, change: Any) -> str:
    """Puts a file with changed rows in the place of one of `events`, as a foreign writer can: with its name, and in the log."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = pq.ParquetFile(archive / path)
    rows = stored.read().to_pylist()
    change(rows)
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, stored.schema_arrow), written, compression="zstd")
    add, name = _added(archive, path), _store(archive, path, written.getvalue())
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    _commit(archive, path, [{"remove": remove}, {"add": add | {"path": name, "size": len(written.getvalue())}}])
    return f"{path.partition('/')[0]}/{name}"


def _store(archive: Path, path: str, content: bytes) -> str:
    """Stores a file beside another one, under its name within the table."""
    table, day, _ = path.split("/")
    name = f"{day}/{hashlib.sha256(content).hexdigest()}.parquet"
    (archive / table / name).write_bytes(content)
    return name


def _added(archive: Path, path: str) -> dict[str, Any]:
    """What the log of its table says of a file."""
    table, _, name = path.partition("/")
    entries = sorted((archive / table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    [add] = [action["add"] for action in actions if action.get("add", {}).get("path") == name]
    return add


def _commit(archive: Path, path: str, actions: list[dict[str, Any]]) -> None:
    """Adds an entry to the log of the table of a file."""
    log = archive / path.partition("/")[0] / "_delta_log"
    version = len(list(log.glob("*.json")))
    (log / f"{version:020}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def break_rules(rows: list[dict[str, Any]]) -> None:
    """Changes rows so that each breaks another rule."""
    other_key = next(row["key"] for row in rows if row["key"] != rows[10]["key"])
    rows[0]["frame"] = bytes([rows[0]["frame"][0] ^ 1]) + rows[0]["frame"][1:]
    middle = len(rows[1]["frame"]) // 2
    rows[1]["frame"] = rows[1]["frame"][:middle] + b"\0" + rows[1]["frame"][middle + 1 :]
    rows[2]["frame"] = None
    rows[3]["key"] = "did:key:zNone"
    rows[4]["key"] = None
    rows[5]["form"] = "unheard-of"
    rows[6]["received"] = rows[6]["received"].replace(year=1971)
    rows[7]["verdict"] = "signature/wrong"
    rows[8]["frame"] = FOREIGN_INFO
    rows[10]["key"] = other_key


def swap_accounts(rows: list[dict[str, Any]]) -> None:
    """Lets rows name other accounts than their frames. Whether the key of the frame's account is known depends on the other rows
    that are judged with it."""
    rows[9]["frame"] = rows[11]["frame"]
    rows[12]["did"] = "did:web:other.example"
