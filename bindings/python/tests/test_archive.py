"""Archives: their tables read by other libraries, with columns, accounts, times and the hide list applied."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import wireproof
from conftest import Exported
from test_arrow import frames_of

pa = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")
duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

TABLES = ["events", "ops", "snapshots", "records", "parts", "part_records", "hidden", "plc_ops", "blobs", "labels"]


@pytest.fixture(scope="session")
def imported(command: str, frames: Path, exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of generated frames and a generated repository; no test changes it."""
    folder = tmp_path_factory.mktemp("archive")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({exported.did: exported.key}))
    archive = folder / "archive"
    for source, source_keys in [(frames, frames.parent / "accounts.json"), (exported.path, keys)]:
        arguments = ["archive", "import", str(source), "--keys", str(source_keys), "--to", str(archive)]
        subprocess.run([command, *arguments], check=True, capture_output=True)
    return archive


@pytest.fixture
def changed(imported: Path, tmp_path: Path) -> Path:
    """A copy of the archive, which a test changes."""
    return Path(shutil.copytree(imported, tmp_path / "archive"))


def table(archive: Path, name: str, *arguments: Any, **options: Any) -> Any:
    return pa.table(wireproof.Archive(archive).scan(name, *arguments, **options))


def hide(command: str, archive: Path, did: str, *record: str) -> None:
    selected = ["--record", "/".join(record)] if record else []
    arguments = ["archive", "hide", str(archive), "--did", did, *selected, "--reason", "test"]
    subprocess.run([command, *arguments], check=True, capture_output=True)


# Tables and their rows


def test_the_tables_and_their_sizes_are_those_of_the_command(command: str, imported: Path) -> None:
    archive = wireproof.Archive(imported)
    assert archive.tables() == ["events", "ops", "snapshots", "records"]
    stats = archive.stats()
    assert list(stats) == TABLES
    arguments = [command, "archive", "stats", str(imported), "--json"]
    printed = json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)
    assert {row["table"]: row["rows"] for row in printed["tables"]} == {name: of["rows"] for name, of in stats.items()}
    assert stats["events"]["rows"] == 300 and stats["events"]["bytes"] > 0
    assert stats["events"]["first_day"] == stats["events"]["last_day"] == str(date.today())
    assert stats["plc_ops"]["first_day"] is None


@pytest.mark.parametrize("name", ["events", "snapshots", "records"])
def test_a_scan_has_the_rows_that_the_delta_table_has(imported: Path, name: str) -> None:
    stored = deltalake.DeltaTable(str(imported / name)).to_pyarrow_table().drop_columns(["day"])
    scanned = table(imported, name)
    assert scanned.num_rows > 0 and scanned.column_names == stored.column_names
    for field in scanned.schema:
        assert not pa.types.is_binary(field.type), "binary columns are large"
    order = [(column, "ascending") for column in {"events": ["arrival"], "snapshots": ["did"], "records": ["collection", "rkey"]}[name]]
    assert scanned.sort_by(order).cast(stored.schema).equals(stored.sort_by(order))


def test_a_table_without_rows_has_its_columns(imported: Path) -> None:
    hidden = table(imported, "hidden")
    assert hidden.num_rows == 0
    assert hidden.column_names == ["at", "action", "did", "collection", "rkey", "account", "reason"]
    assert table(imported, "plc_ops").num_rows == 0


def test_operations_have_the_records_of_their_frames(imported: Path, frames: Path) -> None:
    decoded = pa.table(wireproof.decode_frames(pa.table({"frame": frames_of(frames)}))).to_pylist()
    expected = {(row["did"], row["collection"], row["rkey"], row["rev"]): row["record"] for row in decoded}
    revs = {(row["did"], row["arrival"]): row["rev"] for row in table(imported, "events", ["did", "arrival", "rev"]).to_pylist()}
    rows = table(imported, "ops").to_pylist()
    found = {
        (row["did"], row["collection"], row["rkey"], revs[row["did"], row["arrival"]]): row["record"] for row in rows
    }
    assert found == expected
    assert any(record is None for record in found.values()), "a deletion has none"


READERS = {
    "pyarrow": lambda rows: pa.table(rows).num_rows,
    "pyarrow batches": lambda rows: sum(batch.num_rows for batch in rows),
    "polars": lambda rows: polars.DataFrame(rows).height,
    "duckdb": lambda rows: duckdb.sql("SELECT count(*) FROM rows WHERE did LIKE 'did:%'").fetchall()[0][0],
    "pandas": lambda rows: len(pa.table(rows).to_pandas()),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("name", ["events", "ops", "records"])
def test_every_library_reads_a_scan_again_and_again(imported: Path, name: str, reader: Any) -> None:
    archive = wireproof.Archive(imported)
    rows = archive.scan(name)
    expected = archive.stats()[name]["rows"]
    assert reader(rows) == expected
    assert reader(rows) == expected


def test_archived_frames_are_verified_again(imported: Path, frames: Path) -> None:
    keys = json.loads((frames.parent / "accounts.json").read_text())
    events = wireproof.Archive(imported).scan("events", ["frame", "received", "arrival"])
    found = pa.table(wireproof.verify_frames(events, keys, keep=["arrival"]))
    assert set(found["code"].to_pylist()) == {"verified"}
    assert sorted(found["arrival"].to_pylist()) == sorted(table(imported, "events", ["arrival"])["arrival"].to_pylist())


# Columns, accounts, times


def test_columns_have_the_order_in_which_they_are_named(imported: Path) -> None:
    for name, columns in [("events", ["kind", "did"]), ("ops", ["record", "idx"]), ("records", ["rkey"])]:
        selected = table(imported, name, columns)
        assert selected.column_names == columns
        assert selected.equals(table(imported, name).select(columns))
        assert pa.schema(wireproof.Archive(imported).scan(name, tuple(columns))) == selected.schema


def test_rows_of_an_account_are_selected(imported: Path, exported: Exported) -> None:
    events = table(imported, "events")
    did = events["did"][150].as_py()
    expected = events.filter(pa.compute.equal(events["did"], did))
    assert expected.num_rows < events.num_rows
    assert table(imported, "events", did=did).equals(expected)
    ops = table(imported, "ops", did=did)
    assert ops.num_rows > 0 and set(ops["did"].to_pylist()) == {did}
    assert table(imported, "records", ["rkey"], did=exported.did).num_rows == 300
    for name in TABLES:
        assert table(imported, name, did="did:plc:none").num_rows == 0


def micros(column: Any) -> list[int]:
    return column.cast(pa.int64()).to_pylist()


@pytest.mark.parametrize(("name", "time"), [("events", "received"), ("ops", "arrival"), ("snapshots", "fetched")])
def test_a_span_of_time_begins_at_since_and_ends_before_until(imported: Path, name: str, time: str) -> None:
    times = sorted(micros(table(imported, name)[time]))
    first, middle, last = times[0], times[len(times) // 2], times[-1]

    def selected(**options: Any) -> list[int]:
        return sorted(micros(table(imported, name, [time], **options)[time]))

    assert selected(since=first, until=last + 1) == times
    assert selected(since=last + 1) == selected(until=first) == []
    assert selected(since=middle) == [at for at in times if at >= middle]
    assert selected(until=middle) == [at for at in times if at < middle]
    # Far from any day: no file is left out for a day that no calendar has.
    assert selected(since=-(2**63), until=2**63 - 1) == times


def test_records_are_selected_by_the_time_of_their_snapshot(imported: Path, exported: Exported) -> None:
    fetched = micros(table(imported, "snapshots")["fetched"])[0]
    assert table(imported, "records", ["rkey"], since=fetched).num_rows == 300
    assert table(imported, "records", ["rkey"], until=fetched).num_rows == 0
    assert table(imported, "records", did=exported.did, since=fetched, until=fetched + 1).num_rows == 300


def test_times_have_several_forms(imported: Path) -> None:
    received = micros(table(imported, "events")["received"])[0]
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=received)
    elsewhere = at.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for form in (received, at, elsewhere, at.isoformat(), at.isoformat().replace("+00:00", "Z"), elsewhere.isoformat()):
        assert table(imported, "events", ["did"], since=form).num_rows == 300
        assert table(imported, "events", ["did"], until=form).num_rows == 0
    tomorrow = at.date() + timedelta(days=1)
    for form in (tomorrow, str(tomorrow)):
        assert table(imported, "events", ["did"], until=form).num_rows == 300
        assert table(imported, "events", ["did"], since=form).num_rows == 0


# The hide list


def test_hidden_accounts_are_left_out(command: str, changed: Path, exported: Exported) -> None:
    events = table(changed, "events")
    did = events["did"][0].as_py()
    hide(command, changed, did)
    hide(command, changed, exported.did)
    for name in ("events", "ops"):
        shown = table(changed, name)
        assert did not in shown["did"].to_pylist()
        assert shown.num_rows > 0
        assert table(changed, name, ["arrival"], did=did).num_rows == 0
    assert table(changed, "snapshots").num_rows == table(changed, "records").num_rows == 0
    assert set(table(changed, "hidden")["did"].to_pylist()) == {did, exported.did}
    stored = deltalake.DeltaTable(str(changed / "events")).to_pyarrow_table()
    assert stored.num_rows == events.num_rows, "the bytes stay"


def test_hidden_records_are_left_out_with_their_frames(command: str, changed: Path, exported: Exported) -> None:
    ops = table(changed, "ops")
    row = next(row for row in ops.to_pylist() if row["action"] == "create")
    hide(command, changed, row["did"], row["collection"], row["rkey"])
    shown = table(changed, "ops")
    is_named = [
        (other["did"], other["collection"], other["rkey"]) == (row["did"], row["collection"], row["rkey"])
        for other in ops.to_pylist()
    ]
    assert shown.equals(ops.filter(pa.array([not named for named in is_named])))
    arrivals = {other["arrival"] for other, named in zip(ops.to_pylist(), is_named, strict=True) if named}
    events = table(changed, "events", ["arrival", "frame"])
    assert events.num_rows == 300
    for event in events.to_pylist():
        assert (event["frame"] is None) == (event["arrival"] in arrivals)
    record = table(changed, "records").to_pylist()[7]
    hide(command, changed, exported.did, record["collection"], record["rkey"])
    left = table(changed, "records", ["collection", "rkey"]).to_pylist()
    assert len(left) == 299
    assert {"collection": record["collection"], "rkey": record["rkey"]} not in left


def test_a_scan_reads_the_hide_list_each_time(command: str, changed: Path) -> None:
    scan = wireproof.Archive(changed).scan("events", ["did"])
    did = pa.table(scan)["did"][0].as_py()
    hide(command, changed, did)
    assert did not in pa.table(scan)["did"].to_pylist()


# Errors


def test_a_missing_archive_is_an_os_error_with_a_code(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "missing", tmp_path / "empty", str(tmp_path / "missing"), f"file://{tmp_path}/missing"):
        with pytest.raises(wireproof.ArchiveError) as raised:
            wireproof.Archive(path)
        assert isinstance(raised.value, OSError)
        assert raised.value.code == "archive/missing"
    assert not (tmp_path / "missing").exists()
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), copy.code, str(copy)) == (wireproof.ArchiveError, raised.value.code, str(raised.value))
    with pytest.raises(wireproof.ArchiveError) as raised:
        wireproof.Archive("ftp://host/archive")
    assert raised.value.code == "archive/address"


def test_wrong_arguments_are_named(imported: Path) -> None:
    archive = wireproof.Archive(imported)
    with pytest.raises(ValueError, match="argument 'table': users is none of events, ops, "):
        archive.scan("users")
    with pytest.raises(ValueError, match="argument 'columns': ops has no column frame; it has did, arrival, "):
        archive.scan("ops", ["did", "frame"])
    with pytest.raises(ValueError, match="argument 'columns': did is there twice"):
        archive.scan("ops", ["did", "did"])
    with pytest.raises(ValueError, match="argument 'columns': at least one name"):
        archive.scan("ops", [])
    with pytest.raises(TypeError, match="argument 'columns': expected a sequence of names, not str"):
        archive.scan("ops", "did")
    with pytest.raises(TypeError, match="'did'"):
        archive.scan("ops", did=1)
    with pytest.raises(ValueError, match="argument 'since': a datetime without a time zone"):
        archive.scan("ops", since=datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="argument 'until': not a datetime: at byte 19"):
        archive.scan("ops", until="2026-01-01T00:00:00")
    with pytest.raises(ValueError, match="argument 'until': not a datetime"):
        archive.scan("ops", until="soon")
    with pytest.raises(ValueError, match="argument 'since': .* out of range"):
        archive.scan("ops", since=2**63)
    for wrong in (1.5, True, b"2026-01-01"):
        with pytest.raises(TypeError, match="argument 'since': expected datetime, date, str or int"):
            archive.scan("ops", since=wrong)
    with pytest.raises(TypeError):
        wireproof.Archive(1)
    with pytest.raises(TypeError, match="argument 'uri'"):
        wireproof.Archive(os.fsencode(imported))


def files_of(archive: Path, name: str) -> list[Path]:
    found = sorted((archive / name).rglob("*.parquet"))
    assert found
    return found


def test_a_damaged_file_is_an_error_that_names_it(changed: Path) -> None:
    for path in files_of(changed, "events"):
        path.write_bytes(path.read_bytes()[:-100] + b"\xff" * 100)
    scan = wireproof.Archive(changed).scan("events")
    with pytest.raises(wireproof.ArchiveError, match="events/day=") as raised:
        list(scan)
    assert raised.value.code == "archive/parquet"
    with pytest.raises(OSError, match="events/day="):
        pa.table(scan)
    assert isinstance(scan.error, wireproof.ArchiveError) and scan.error.code == "archive/parquet"


def test_a_damaged_log_is_an_error(changed: Path) -> None:
    entry = sorted((changed / "events" / "_delta_log").glob("*.json"))[0]
    entry.write_text("not json\n")
    with pytest.raises(wireproof.ArchiveError) as raised:
        wireproof.Archive(changed).scan("events")
    assert raised.value.code == "archive/log"


def test_files_are_opened_when_their_rows_are_asked_for(changed: Path) -> None:
    archive = wireproof.Archive(changed)
    scan = archive.scan("events", ["did"])
    batches = iter(scan)
    for path in files_of(changed, "events"):
        path.unlink()
    with pytest.raises(wireproof.ArchiveError) as raised:
        next(batches)
    assert raised.value.code == "archive/io"
    assert list(batches) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak of the memory")
def test_memory_does_not_grow_with_the_table(command: str, frames: Path, tmp_path: Path) -> None:
    """225 MB of frames, which the repetition makes small in the file."""
    many = tmp_path / "many.bin"
    each = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames_of(frames))
    many.write_bytes((150 * 300).to_bytes(4, "big") + each * 150)
    archive = tmp_path / "archive"
    arguments = ["archive", "import", str(many), "--keys", str(frames.parent / "accounts.json"), "--to", str(archive)]
    subprocess.run([command, *arguments], capture_output=True, check=False)
    program = """
import pathlib, re, sys, wireproof
archive = wireproof.Archive(sys.argv[1])
next(iter(archive.scan("snapshots", ["did"])), None)
import pyarrow
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
next(iter(archive.scan("events", ["did"], did="did:plc:none")), None)
first = peak()
size = sum(batch["frame"].nbytes for batch in archive.scan("events", ["frame"]))
print(size, (peak() - first) // 1024)
"""
    printed = subprocess.run([sys.executable, "-c", program, str(archive)], capture_output=True, text=True, check=True)
    size, grown = map(int, printed.stdout.split())
    assert size > 220_000_000
    assert grown < 60


# Processes and threads


def test_an_archive_is_pickled_as_its_address(imported: Path) -> None:
    archive = wireproof.Archive(imported)
    copy = pickle.loads(pickle.dumps(archive))
    assert (copy.uri, repr(copy)) == (str(imported), f"Archive({str(imported)!r})")
    assert pa.table(copy.scan("events")).equals(pa.table(archive.scan("events")))


def test_threads_scan_one_archive(imported: Path) -> None:
    archive = wireproof.Archive(imported)
    expected = pa.table(archive.scan("events"))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(pa.table(archive.scan("events")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4 and all(rows.equals(expected) for rows in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_opens_the_archive_again(imported: Path) -> None:
    archive = wireproof.Archive(imported)
    scan = archive.scan("events", ["did"])
    assert pa.table(scan).num_rows == 300
    child = os.fork()
    if child == 0:
        is_right = sum(batch.num_rows for batch in archive.scan("events", ["did"])) == 300
        try:
            list(scan)
            is_right = False
        except wireproof.ArchiveError as error:
            is_right = is_right and error.code == "archive/fork"
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pa.table(scan).num_rows == 300
