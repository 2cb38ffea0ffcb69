"""Record batches in and out: verdicts, decoded records, and the libraries that read and write them."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import wireproof
from conftest import Exported

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow.compute")


def frames_of(path: Path) -> list[bytes]:
    """The frames of a file."""
    data, at, found = path.read_bytes(), 4, []
    for _ in range(int.from_bytes(data[:4], "big")):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        found.append(data[start:at])
    assert at == len(data)
    return found


@dataclass(frozen=True)
class Stream:
    """Generated frames, and the keys of their accounts."""

    frames: list[bytes]
    keys: dict[str, str]

    def table(self, **columns: Any) -> Any:
        return pa.table({"frame": pa.array(self.frames, pa.large_binary()), **columns})


@pytest.fixture(scope="session")
def stream(frames: Path) -> Stream:
    return Stream(frames_of(frames), json.loads((frames.parent / "accounts.json").read_text()))


@pytest.fixture(scope="session")
def hostile(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([command, "corpus", "hostile", "--out", str(folder)], check=True, capture_output=True)
    return folder


def verdicts(table: Any, keys: Any, **options: Any) -> Any:
    return pa.table(wireproof.verify_frames(table, keys, **options))


# Input and output


READERS = {
    "pyarrow": lambda rows: pa.table(rows).to_pylist(),
    "pyarrow batches": lambda rows: [row for batch in rows for row in batch.to_pylist()],
    "polars": lambda rows: polars.DataFrame(rows).to_dicts(),
    "duckdb": lambda rows: duckdb.sql("SELECT * FROM rows").to_arrow_table().to_pylist(),
    "pandas": lambda rows: pandas.DataFrame(pa.table(rows).to_pydict()).astype(object).to_dict("records"),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_every_library_reads_the_verdicts(stream: Stream, reader: Any) -> None:
    rows = reader(wireproof.verify_frames(stream.table(), stream.keys))
    assert len(rows) == 300
    assert {row["code"] for row in rows} == {"verified"}
    expected = verdicts(stream.table(), stream.keys)
    assert [row["seq"] for row in rows] == expected["seq"].to_pylist()
    assert [list(row["ops"]) for row in rows] == expected["ops"].to_pylist()


def duckdb_relation(table: Any) -> Any:
    return duckdb.from_arrow(table)


WRITERS = {
    "table": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=7),
    "binary": lambda table: table.cast(pa.schema([("frame", pa.binary())])),
    "views": lambda table: table.cast(pa.schema([("frame", pa.binary_view())])),
    "polars": polars.from_arrow,
    "polars slices": lambda table: polars.concat([polars.from_arrow(table)[:5], polars.from_arrow(table)[5:]], rechunk=False),
    "pandas": lambda table: pandas.DataFrame({"frame": table["frame"].to_pylist()}),
    "duckdb": duckdb_relation,
    "own": lambda table: wireproof.verify_frames(table, {}, keep=["frame"]),
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS.keys())
def test_frames_of_every_library_are_verified(stream: Stream, writer: Any) -> None:
    found = verdicts(writer(stream.table().select(["frame"])), stream.keys)
    assert found.equals(verdicts(stream.table(), stream.keys))


def test_an_output_batch_has_the_rows_of_an_input_batch(stream: Stream) -> None:
    reader = stream.table().to_reader(max_chunksize=7)
    sizes = [batch.num_rows for batch in wireproof.verify_frames(reader, stream.keys)]
    assert sizes == [7] * 42 + [6]


def test_a_batch_without_rows_stays_one() -> None:
    empty = pa.table({"frame": pa.array([], pa.binary())})
    assert verdicts(empty, {}).num_rows == 0
    assert pa.table(wireproof.decode_frames(empty)).num_rows == 0
    assert pa.table(wireproof.verify_repos(empty.rename_columns(["car"]), {})).num_rows == 0
    batch = pa.record_batch({"frame": pa.array([], pa.large_binary())})
    assert [found.num_rows for found in wireproof.verify_frames(batch, {})] == [0]


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_slices_with_an_offset_have_their_own_rows(stream: Stream, type: Any) -> None:
    column = pa.array([None, b"junk", *stream.frames], type)
    whole = pa.record_batch({"frame": column})
    expected = verdicts(stream.table().slice(9, 40), stream.keys)
    assert verdicts(whole.slice(11, 40), stream.keys).equals(expected)
    assert verdicts(pa.table({"frame": column.slice(11, 40)}), stream.keys).equals(expected)


def test_null_frames_are_refused_in_their_place(stream: Stream) -> None:
    frames = pa.table({"frame": pa.array([None, stream.frames[0], None], pa.binary())})
    found = verdicts(frames, stream.keys)
    assert found["verdict"].to_pylist() == ["refused", "verified", "refused"]
    assert found["message"].to_pylist() == ["the frame is null", None, "the frame is null"]
    assert found["kind"].to_pylist() == ["undecodable", "commit", "undecodable"]
    assert found["ops"].to_pylist()[0] is None


def test_payloads_are_not_copied(stream: Stream) -> None:
    table = stream.table().combine_chunks()
    found = verdicts(table, stream.keys, keep=["frame"])
    assert found.column_names[0] == "frame"

    def address(column: Any) -> int:
        return column.chunk(0).buffers()[2].address

    assert address(found["frame"]) == address(table["frame"])


def test_a_stream_can_be_read_once(stream: Stream) -> None:
    once = wireproof.verify_frames(stream.table(), stream.keys)
    assert repr(once).startswith("<wireproof.RecordBatchStream seq: Int64, kind: Utf8, ")
    assert pa.schema(once) == pa.table(once).schema
    with pytest.raises(ValueError, match="only once"):
        pa.table(once)
    with pytest.raises(ValueError, match="only once"):
        iter(once)


# Wrong arguments


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([b"frame"], "argument 'stream': expected an object with __arrow_c_stream__ or __arrow_c_array__, not list"),
        (None, "argument 'stream'.*not NoneType"),
        (pa.array([b"frame"]), "argument 'stream'"),
        (pa.chunked_array([[b"frame"]]), "argument 'stream'"),
        (pa.table({"other": [1]}), "argument 'stream': column frame is missing; there is other"),
        (pa.table({"frame": ["text"]}), "argument 'stream': column frame has the type Utf8 instead of binary"),
        (pa.table({"frame": [1]}), "argument 'stream': column frame has the type Int64 instead of binary"),
        (
            pa.table({"frame": [b""], "received": ["2026-07-01"]}),
            "argument 'stream': column received has the type Utf8 instead of timestamp or int64",
        ),
    ],
)
def test_a_wrong_stream_is_a_type_error_that_names_it(table: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        wireproof.verify_frames(table, {})
    if "received" not in message:
        with pytest.raises(TypeError, match=message):
            wireproof.decode_frames(table)


def test_wrong_columns_of_repositories_are_type_errors() -> None:
    with pytest.raises(TypeError, match="column car is missing"):
        wireproof.verify_repos(pa.table({"frame": [b""]}), {})
    with pytest.raises(TypeError, match="column did has the type Int64 instead of text"):
        wireproof.verify_repos(pa.table({"car": [b""], "did": [1]}), {})


def test_wrong_arguments_are_named(stream: Stream) -> None:
    table = stream.table()
    with pytest.raises(TypeError, match="argument 'keys': expected a mapping or a function, not int"):
        wireproof.verify_frames(table, 1)
    with pytest.raises(TypeError, match="argument 'keys': expected a mapping or a function, not dict"):
        wireproof.Judge({}, batched_keys=True)
    with pytest.raises(TypeError, match="argument 'now'"):
        wireproof.verify_frames(table, {}, now=1.5)
    with pytest.raises(ValueError, match="argument 'now': a time before 1970"):
        wireproof.verify_frames(table, {}, now=-1)
    with pytest.raises(TypeError, match="argument 'keep'"):
        wireproof.verify_frames(table, {}, keep="frame")
    with pytest.raises(ValueError, match="argument 'keep': a name is there twice"):
        wireproof.verify_frames(table, {}, keep=["frame", "frame"])
    with pytest.raises(TypeError, match="column host is missing"):
        wireproof.verify_frames(table, {}, keep=["host"])
    with pytest.raises(ValueError, match="argument 'keep': did is a column of the result"):
        wireproof.verify_frames(stream.table(did=pa.nulls(300, pa.string())), {}, keep=["did"])
    with pytest.raises(ValueError, match="argument 'errors'"):
        wireproof.decode_frames(table, errors="ignore")
    with pytest.raises(ValueError, match="argument 'hashes'"):
        wireproof.decode_frames(table, hashes="none")


# Keys


def test_keys_can_be_a_mapping_or_a_function(stream: Stream) -> None:
    expected = verdicts(stream.table(), stream.keys)

    class Keys:
        def get(self, did: str) -> str | None:
            return stream.keys.get(did)

    assert verdicts(stream.table(), Keys()).equals(expected)
    assert verdicts(stream.table(), lambda did: stream.keys.get(did)).equals(expected)


def test_an_account_is_asked_for_once_a_batch(stream: Stream) -> None:
    asked: list[str] = []

    def key(did: str) -> str:
        asked.append(did)
        return stream.keys[did]

    found = verdicts(stream.table(), key)
    assert sorted(asked) == sorted(set(found["did"].to_pylist()))


@pytest.mark.parametrize("answer", [dict, list])
def test_a_function_of_batches_is_called_once_for_each(stream: Stream, answer: Any) -> None:
    calls: list[list[str]] = []

    def keys_of(dids: list[str]) -> Any:
        calls.append(dids)
        return answer({did: stream.keys[did] for did in dids} if answer is dict else [stream.keys[did] for did in dids])

    reader = stream.table().to_reader(max_chunksize=100)
    found = verdicts(reader, wireproof.Judge(keys_of, batched_keys=True))
    assert set(found["code"].to_pylist()) == {"verified"}
    asked = [did for dids in calls for did in dids]
    assert 1 <= len(calls) <= 3 and len(asked) == len(set(asked)), "each account is asked for once"


def test_without_a_key_a_commit_is_refused_and_others_are_not(stream: Stream) -> None:
    first = verdicts(stream.table(), stream.keys)["did"][0].as_py()
    found = verdicts(stream.table(), {**stream.keys, first: None})
    for row in found.to_pylist():
        expected = "signature/no-key" if row["did"] == first else "verified"
        assert row["code"] == expected
        assert (row["ops"] is None) == (row["did"] == first)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [(1, TypeError, "expected did:key text or None for did:plc:.*, not int"), ("did:key:z", ValueError, "the key of did:plc:"), ("", ValueError, "did:key")],
)
def test_a_wrong_key_is_an_error_that_names_the_account(stream: Stream, key: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        list(wireproof.verify_frames(stream.table(), lambda did: key))


def test_a_wrong_number_of_keys_is_an_error(stream: Stream) -> None:
    with pytest.raises(ValueError, match="returned 1 keys for"):
        list(wireproof.verify_frames(stream.table(), wireproof.Judge(lambda dids: [None], batched_keys=True)))


def test_an_exception_of_the_function_reaches_the_caller(stream: Stream) -> None:
    error = KeyError("no answer\0")

    def key(did: str) -> str:
        raise error

    batches = iter(wireproof.verify_frames(stream.table(), key))
    with pytest.raises(KeyError) as raised:
        next(batches)
    assert raised.value is error
    assert list(batches) == []
    exported = wireproof.verify_frames(stream.table(), key)
    assert exported.error is None
    with pytest.raises(pa.ArrowInvalid, match="no answer"):
        pa.table(exported)
    assert exported.error is error
    with pytest.raises(Exception, match="no answer"):
        polars.DataFrame(wireproof.verify_frames(stream.table(), key))


def test_an_exception_of_the_input_reaches_the_caller(stream: Stream) -> None:
    schema = stream.table().schema

    def broken() -> Iterator[Any]:
        yield stream.table().to_batches()[0]
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(schema, broken())
    batches = iter(wireproof.verify_frames(reader, stream.keys))
    assert next(batches).num_rows == 300
    with pytest.raises(ValueError, match="argument 'stream': .*the disk is gone"):
        next(batches)


# State and time


def test_a_judge_continues_from_one_stream_to_the_next(stream: Stream) -> None:
    table, judge = stream.table(), wireproof.Judge(stream.keys)
    first = verdicts(table.slice(0, 150), judge)
    second = verdicts(table.slice(150), judge)
    joined = pa.concat_tables([first, second])
    assert joined.equals(verdicts(table, stream.keys))
    newest = {row["did"]: row["rev"] for row in joined.to_pylist()}
    assert all(judge.state().rev(did) == rev for did, rev in newest.items())
    again = verdicts(table, judge)
    assert set(again["code"].to_pylist()) == {"event/stale-rev"}
    assert set(again["verdict"].to_pylist()) == {"ignored"}


def test_rows_are_the_outcomes_of_a_judge(stream: Stream) -> None:
    frames = [*stream.frames[:100], b"not a frame", stream.frames[0], *stream.frames[101:]]
    outcomes = wireproof.Judge(stream.keys).batch(frames)
    rows = verdicts(pa.table({"frame": frames}), stream.keys).to_pylist()
    assert {outcome.code for outcome in outcomes} > {"verified", "frame/cbor", "event/stale-rev"}
    for outcome, row in zip(outcomes, rows):
        for name in ("seq", "kind", "did", "rev", "verdict", "code", "verified", "chain", "message"):
            assert row[name] == getattr(outcome, name), (name, outcome)
        stated = [(op["action"], op["collection"], op["rkey"], op["cid"]) for op in row["ops"] or ()]
        assert stated == [(op.action, op.collection, op.rkey, op.cid) for op in outcome.ops]
        assert (row["ops"] is None) == (not outcome.verified)


def account_event(did: str, active: bool, seq: int) -> bytes:
    encode = wireproof.libipld.encode_dag_cbor
    event = {"seq": seq, "did": did, "time": "2026-07-01T00:00:00Z", "active": active}
    return encode({"op": 1, "t": "#account"}) + encode(event)


def test_commits_of_an_inactive_account_are_ignored(stream: Stream) -> None:
    did = verdicts(stream.table(), stream.keys)["did"][0].as_py()
    frames = [account_event(did, False, 1), *stream.frames]
    for row in verdicts(pa.table({"frame": frames}), stream.keys).to_pylist()[1:]:
        assert row["code"] == ("event/inactive" if row["did"] == did else "verified")
    judge = wireproof.Judge(stream.keys)
    verdicts(pa.table({"frame": frames[:1]}), judge)
    assert not judge.state().is_active(did)
    found = verdicts(pa.table({"frame": [account_event(did, True, 2), stream.frames[0]]}), judge)
    assert found["code"].to_pylist() == ["unchecked", "verified"]


def test_a_missing_frame_breaks_the_chain_of_its_account(stream: Stream) -> None:
    whole = verdicts(stream.table(), stream.keys).to_pylist()
    dids = [row["did"] for row in whole]
    did = next(did for did in dids if dids.count(did) > 2)
    _, lost, next_one = [index for index, of_row in enumerate(dids) if of_row == did][:3]
    frames = [frame for index, frame in enumerate(stream.frames) if index != lost]
    found = verdicts(pa.table({"frame": frames}), stream.keys).to_pylist()[next_one - 1]
    assert (found["verdict"], found["code"], found["chain"]) == ("verified", "verified/broken", "broken")
    assert "stored revision" in found["message"]


@pytest.mark.parametrize("now", ["2026-06-30T00:00:00Z", "2026-06-30", 1_782_777_600_000_000])
def test_a_revision_of_the_future_is_refused(stream: Stream, now: Any) -> None:
    found = verdicts(stream.table(), stream.keys, now=now)
    assert set(found["code"].to_pylist()) == {"event/future-rev"}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", None])
def test_a_frame_is_judged_at_the_time_when_it_was_received(stream: Stream, unit: str | None) -> None:
    before, after = 1_782_777_600, 1_783_000_000
    # Rows without a time are judged at `now`.
    seconds = [before, after, None] * 100
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, None: 10**6}[unit]
    type = pa.timestamp(unit, "UTC") if unit else pa.int64()
    received = pa.array([None if time is None else time * scale for time in seconds], type)
    found = verdicts(stream.table(received=received), stream.keys, now="2026-06-30")
    refused = [code == "event/future-rev" for code in found["code"].to_pylist()]
    assert refused == [True, False, True] * 100


# The hostile set, and anything else


def test_the_hostile_frames_have_the_verdicts_of_the_manifest(hostile: Path) -> None:
    cases = json.loads((hostile / "hostile.json").read_text())["cases"]
    seen = 0
    for case in (case for case in cases if case["kind"] == "frames"):
        table = pa.table({"frame": pa.array(frames_of(hostile / case["file"]), pa.large_binary())})
        found = verdicts(table, {case["did"]: case["signing_key"]}, now=case["now"]).to_pylist()[-1]
        if case["expect"] != "refuse":
            assert found["verified"], (case, found)
            # A sync to another tree is valid, and says that commits are missing.
            assert found["kind"] == "sync" or found["chain"] in ("intact", "first-seen"), (case, found)
        elif case["code"] in ("event/since", "event/prev-data"):
            assert found["chain"] == "broken", (case, found)
        else:
            assert not found["verified"] and found["ops"] is None, (case, found)
            assert found["code"] == case["code"], (case, found)
        seen += 1
    assert seen > 150


def test_the_hostile_repositories_have_the_verdicts_of_the_manifest(hostile: Path) -> None:
    cases = json.loads((hostile / "hostile.json").read_text())["cases"]
    cases = [case for case in cases if case["kind"] == "repo"]
    table = pa.table(
        {
            "car": pa.array([(hostile / case["file"]).read_bytes() for case in cases], pa.large_binary()),
            "did": [case["did"] for case in cases],
            "name": [case["name"] for case in cases],
        }
    )
    keys = {case["did"]: case["signing_key"] for case in cases}
    rows = pa.table(wireproof.verify_repos(table, keys, keep=["name"])).to_pylist()
    assert len(rows) > 250
    for case, row in zip(cases, rows, strict=True):
        assert row["name"] == case["name"]
        assert row["verified"] == (case["expect"] != "refuse"), (case, row)
        if row["verified"]:
            assert row["code"] == "verified" and row["records"] is not None and row["root"]
        else:
            assert row["code"] == case["code"], (case, row)
            assert row["message"] and row["records"] is None and row["root"] is None


def test_any_bytes_get_a_verdict() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    bytes_or_null = hypothesis.strategies.one_of(hypothesis.strategies.none(), hypothesis.strategies.binary(max_size=200))

    @hypothesis.given(hypothesis.strategies.lists(bytes_or_null, max_size=20))
    @hypothesis.settings(deadline=None, max_examples=200)
    def check(frames: list[bytes | None]) -> None:
        column = pa.array(frames, pa.binary())
        found = verdicts(pa.table({"frame": column}), {})
        assert found.num_rows == len(frames)
        assert not any(found["verified"].to_pylist())
        assert pa.table(wireproof.decode_frames(pa.table({"frame": column}), errors="skip")).num_rows == 0
        assert not any(pa.table(wireproof.verify_repos(pa.table({"car": column}), {}))["verified"].to_pylist())

    check()


# Repositories


def test_repositories_are_verified(exported: Exported) -> None:
    cars = [exported.car, None, exported.car[:-1], exported.car]
    dids = [None, exported.did, None, "did:plc:ewvi7nxzyoun6zhxrhs64oiz"]
    table = pa.table({"car": pa.array(cars, pa.binary()), "did": dids})
    keys = {exported.did: exported.key, dids[3]: exported.key}
    rows = pa.table(wireproof.verify_repos(table, keys)).to_pylist()
    repo = wireproof.verify_repo(exported.car, exported.key)
    proved = {"did": repo.did, "rev": repo.rev, "records": 300, "root": repo.root, "code": "verified", "message": None}
    assert rows[0] == proved | {"verified": True}
    assert [row["code"] for row in rows] == ["verified", "car/truncated", "car/truncated", "commit/did"]
    assert rows[1]["message"] == "the repository is null"


def test_a_repository_names_the_account_whose_key_is_asked_for(exported: Exported) -> None:
    asked: list[list[str]] = []

    def keys_of(dids: list[str]) -> list[str]:
        asked.append(dids)
        return [exported.key]

    table = pa.table({"car": [exported.car, exported.car]})
    rows = pa.table(wireproof.verify_repos(table, keys_of, batched_keys=True)).to_pylist()
    assert [row["verified"] for row in rows] == [True, True]
    assert asked == [[exported.did]]


def test_a_repository_without_a_key_is_refused(exported: Exported) -> None:
    row = pa.table(wireproof.verify_repos(pa.table({"car": [exported.car]}), {})).to_pylist()[0]
    assert (row["verified"], row["code"], row["did"]) == (False, "signature/no-key", exported.did)


def test_the_records_of_a_repository_are_columns(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    table = pa.table(repo.to_arrow())
    assert pa.types.is_large_binary(table.schema.field("record").type)
    assert pa.types.is_large_string(table.schema.field("json").type)
    expected = [
        {"collection": record.collection, "rkey": record.rkey, "cid": record.cid, "record": record.bytes, "json": record.to_json()}
        for record in repo.records()
    ]
    assert table.to_pylist() == expected
    assert pa.table(wireproof.repository_records(exported.car, exported.key, exported.did)).equals(table)


def test_columns_of_records_are_selected_by_name(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    whole = pa.table(repo.to_arrow())
    for columns in (["record", "rkey"], ["json"], ["collection", "json", "cid"], ("cid",)):
        assert pa.table(repo.to_arrow(columns)).equals(whole.select(list(columns)))
    for wrong in (["value"], ["cid", "cid"]):
        with pytest.raises(ValueError, match="argument 'columns'"):
            repo.to_arrow(wrong)
    with pytest.raises(TypeError, match="argument 'columns'"):
        repo.to_arrow("record")


def test_records_are_the_same_whatever_the_number_of_threads(command: str, tmp_path: Path) -> None:
    generate = [command, "corpus", "generate", "repository", "--records", "40000", "--out", str(tmp_path)]
    subprocess.run(generate, check=True, capture_output=True)
    key = json.loads((tmp_path / "repository.json").read_text())["signing_key"]
    repo = wireproof.verify_repo(tmp_path / "repository.car", key)
    alone = pa.table(repo.to_arrow())
    assert [len(batch) for batch in alone.to_batches()] == [16_384, 16_384, 7_232]
    paths = [f"{collection}/{rkey}" for collection, rkey in zip(*alone.select(["collection", "rkey"]).to_pydict().values())]
    assert paths == [record.path for record in repo]
    for threads in (2, 3, 1_000_000):
        assert pa.table(repo.to_arrow(threads=threads)).equals(alone)
    with pytest.raises(ValueError, match="threads"):
        repo.to_arrow(threads=0)


def test_stored_records_can_be_read_again(exported: Exported) -> None:
    records = wireproof.verify_repo(exported.car, exported.key).to_arrow()
    assert pa.table(records).equals(pa.table(records))
    assert polars.DataFrame(records).shape == (300, 5)
    counted = duckdb.sql("SELECT collection, count(*) FROM records GROUP BY ALL").fetchall()
    assert dict(counted) == wireproof.verify_repo(exported.car, exported.key).collections()


def test_records_of_another_account_or_key_are_refused(exported: Exported) -> None:
    with pytest.raises(wireproof.Rejection) as refused:
        wireproof.repository_records(exported.car, exported.key, "did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    assert refused.value.code == "commit/did"
    with pytest.raises(ValueError, match="argument 'key'"):
        wireproof.repository_records(exported.car, "did:key:z")
    with pytest.raises(TypeError, match="'car'"):
        wireproof.repository_records(7, exported.key)


# Decoded frames


def objects_of(frame: bytes) -> tuple[dict[str, Any], dict[bytes, Any]]:
    _, payload = wireproof.libipld.decode_dag_cbor_multi(frame)
    return payload, wireproof.libipld.decode_car(payload["blocks"])[1]


@pytest.mark.parametrize("hashes", ["records", "all"])
def test_decoded_frames_are_those_of_the_decoder_of_objects(stream: Stream, hashes: Any) -> None:
    rows = pa.table(wireproof.decode_frames(stream.table(), hashes=hashes)).to_pylist()
    expected = []
    for number, frame in enumerate(stream.frames):
        payload, blocks = objects_of(frame)
        for op in payload["ops"]:
            collection, rkey = op["path"].split("/")
            cid = op["cid"] and wireproof.libipld.encode_cid(op["cid"])
            value = op["cid"] and blocks[op["cid"]]
            row = {"seq": payload["seq"], "did": payload["repo"], "rev": payload["rev"], "action": op["action"]}
            expected.append((row | {"collection": collection, "rkey": rkey, "cid": cid, "frame": number}, value))
    assert len(rows) == len(expected) > 300
    for row, (columns, value) in zip(rows, expected, strict=True):
        record, text = row.pop("record"), row.pop("json")
        assert row == columns
        if row["action"] == "delete":
            assert record is None and text is None
        else:
            assert wireproof.libipld.decode_dag_cbor(record) == value
            assert json.loads(text)["$type"] == value["$type"]
    assert {row["action"] for row, _ in expected} == {"create", "update", "delete"}


def test_a_changed_record_is_malformed(stream: Stream) -> None:
    frame = stream.frames[0]
    record = pa.table(wireproof.decode_frames(stream.table()))["record"][0].as_py()
    at = frame.index(record)
    changed = frame[:at] + record[:-1] + bytes([record[-1] ^ 1]) + frame[at + len(record) :]
    table = pa.table({"frame": [stream.frames[1], changed]})
    for hashes in ("records", "all"):
        with pytest.raises(wireproof.DecodeError, match="^frame 1: ") as raised:
            list(wireproof.decode_frames(table, hashes=hashes))
        assert (raised.value.code, raised.value.offset) == ("car/hash", at)
        kept = pa.table(wireproof.decode_frames(table, hashes=hashes, errors="skip"))
        assert set(kept["frame"].to_pylist()) == {0}


def test_a_changed_node_of_the_tree_is_found_if_all_hashes_are_checked(stream: Stream) -> None:
    frame = stream.frames[0]
    # The signature is in the commit, which the rows do not have.
    at = frame.index(b"csigX@") + 10
    table = pa.table({"frame": [frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]]})
    assert pa.table(wireproof.decode_frames(table)).num_rows > 0
    with pytest.raises(wireproof.DecodeError):
        list(wireproof.decode_frames(table, hashes="all"))


def test_a_malformed_frame_ends_the_stream_or_is_skipped(stream: Stream) -> None:
    frames = [stream.frames[0], None, b"junk", stream.frames[1]]
    table = pa.table({"frame": pa.array(frames, pa.binary())})
    with pytest.raises(wireproof.DecodeError, match="^frame 1: ") as raised:
        list(wireproof.decode_frames(table))
    assert raised.value.code == "frame/cbor"
    with pytest.raises(pa.ArrowInvalid, match="DecodeError: frame 1: "):
        pa.table(wireproof.decode_frames(table))
    kept = pa.table(wireproof.decode_frames(table, errors="skip"))
    assert set(kept["frame"].to_pylist()) == {0, 3}


def test_frame_numbers_go_on_over_batches(stream: Stream) -> None:
    whole = pa.table(wireproof.decode_frames(stream.table()))
    parts = pa.table(wireproof.decode_frames(stream.table().to_reader(max_chunksize=7)))
    assert parts.equals(whole)


# Laziness, memory, threads


def test_batches_are_read_when_they_are_asked_for(stream: Stream) -> None:
    pulled: list[int] = []
    batches = stream.table().to_batches(max_chunksize=10)

    def source() -> Iterator[Any]:
        for number, batch in enumerate(batches):
            pulled.append(number)
            yield batch

    reader = pa.RecordBatchReader.from_batches(stream.table().schema, source())
    rows = iter(wireproof.verify_frames(reader, stream.keys))
    assert pulled == []
    next(rows)
    assert pulled == [0]
    next(rows)
    assert pulled == [0, 1]
    del rows
    gc.collect()
    assert pulled == [0, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak of the memory")
def test_memory_does_not_grow_with_the_stream(frames: Path) -> None:
    program = """
import json, pathlib, re, sys
import pyarrow as pa, wireproof
sys.path.insert(0, sys.argv[2])
from test_arrow import frames_of
path = pathlib.Path(sys.argv[1])
batch = pa.record_batch({"frame": pa.array(frames_of(path), pa.large_binary())})
keys = json.loads((path.parent / "accounts.json").read_text())
def peak(count):
    batches = (pa.RecordBatch.from_arrays([pa.array(batch["frame"].to_pylist(), pa.large_binary())], ["frame"]) for _ in range(count))
    reader = pa.RecordBatchReader.from_batches(batch.schema, batches)
    rows = sum(found.num_rows for found in wireproof.decode_frames(wireproof.verify_frames(reader, keys, keep=["frame"])))
    assert rows > count * 300
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
first = peak(10)
print((peak(300) - first) // 1024)
"""
    here = str(Path(__file__).parent)
    printed = subprocess.run(
        [sys.executable, "-c", program, str(frames), here], capture_output=True, text=True, check=True
    ).stdout
    # 450 MB of frames went through.
    assert int(printed) < 40


def test_a_large_batch_comes_in_pieces() -> None:
    column = pa.array([b"x"]).take(pa.array([0] * 150_000))
    sizes = [batch.num_rows for batch in wireproof.verify_frames(pa.table({"frame": column}), {})]
    assert sizes == [65_536, 65_536, 18_928]


def test_threads_share_a_state_and_a_stream(stream: Stream) -> None:
    """A function that takes the interpreter's lock within a batch, and threads that wait for the batch."""
    judge = wireproof.Judge(lambda did: key(did))

    def key(did: str) -> str:
        time.sleep(0.001)
        return stream.keys[did]

    shared = iter(wireproof.verify_frames(stream.table().to_reader(max_chunksize=5), judge))
    rows: list[Any] = []

    def read() -> None:
        for batch in shared:
            rows.extend(batch.to_pylist())
            judge.state().rev("did:web:example.com")

    threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(rows) == 300 and {row["verdict"] for row in rows} == {"verified"}


def test_other_threads_run_while_frames_are_verified(stream: Stream) -> None:
    table = pa.concat_tables([stream.table()] * 30).combine_chunks()
    batches = iter(wireproof.verify_frames(table, stream.keys))
    ticks, is_over = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not is_over.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    # In one batch, and read in a loop: other libraries give the lock away themselves.
    next(batches)
    during = ticks - before
    is_over.set()
    thread.join()
    assert during >= 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_verifies(stream: Stream) -> None:
    table = stream.table()
    expected = verdicts(table, stream.keys)
    child = os.fork()
    if child == 0:
        rows = [batch.num_rows for batch in wireproof.verify_frames(table, stream.keys)]
        os._exit(0 if sum(rows) == expected.num_rows else 1)
    assert os.waitpid(child, 0)[1] == 0


# Real data


def test_real_frames_are_verified_and_decoded(fixtures: Path) -> None:
    path = fixtures / "pds" / "frames.bin"
    keys = {}
    for account in json.loads((fixtures / "pds" / "accounts.json").read_text()):
        operations = [entry["operation"] for entry in account["plcAuditLog"]]
        keys[account["did"]] = operations[-1]["verificationMethods"]["atproto"]
    table = pa.table({"frame": pa.array(frames_of(path), pa.large_binary())})
    found = verdicts(table, keys)
    commits = found.filter(pa.compute.equal(found["kind"], "commit"))
    assert commits.num_rows > 0 and all(commits["verified"].to_pylist())
    operations = sum(len(ops) for ops in commits["ops"].to_pylist())
    assert pa.table(wireproof.decode_frames(table)).num_rows == operations
