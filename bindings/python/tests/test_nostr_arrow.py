"""Nostr events as record batches: verified, decoded and encoded, by the libraries that read and write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wireproof
from test_nostr import NOTE
from wireproof import nostr

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

NAMES = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]

REPLY = NOTE | {"tags": [["e", NOTE["id"], "", "root"], [], ["p", NOTE["pubkey"]]], "content": "a\0\u00e9\U0001f30d"}

EVENTS = [NOTE, REPLY, NOTE | {"created_at": -1, "kind": 65535, "tags": [], "content": ""}]


def lines(events: list[dict[str, Any]] = EVENTS) -> list[str]:
    return [json.dumps(event) for event in events]


def table(events: list[dict[str, Any]] = EVENTS) -> Any:
    """Events as columns, as the package makes them."""
    return pa.table(nostr.decode_events(pa.table({"event": lines(events)})))


def rows(stream: Any) -> list[dict[str, Any]]:
    return pa.table(stream).to_pylist()


# Decoding and encoding


def test_decoded_events_are_columns_of_the_stated_types() -> None:
    found = table()
    assert found.schema.names == NAMES
    tags = pa.list_(pa.list_(pa.large_string()))
    digits = pa.string()
    assert found.schema.types == [digits, digits, pa.int64(), pa.uint16(), tags, pa.large_string(), digits]
    assert not any(field.nullable for field in found.schema)
    assert found.to_pylist() == EVENTS


READERS = {
    "pyarrow": lambda stream: pa.table(stream).to_pylist(),
    "pyarrow batches": lambda stream: [row for batch in stream for row in batch.to_pylist()],
    "polars": lambda stream: polars.DataFrame(stream).to_dicts(),
    "duckdb": lambda stream: duckdb.sql("SELECT * FROM stream").to_arrow_table().to_pylist(),
    "pandas": lambda stream: pandas.DataFrame(pa.table(stream).to_pydict()).astype(object).to_dict("records"),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_every_library_reads_the_columns(reader: Any) -> None:
    assert reader(nostr.decode_events(pa.table({"event": lines()}))) == EVENTS


def as_bytes(found: Any, fixed: bool) -> Any:
    """The digits of a table as bytes."""
    for name, size in [("id", 32), ("pubkey", 32), ("sig", 64)]:
        column = pa.array([bytes.fromhex(digits) for digits in found[name].to_pylist()], pa.binary(size if fixed else -1))
        found = found.set_column(found.schema.get_field_index(name), name, column)
    return found


def with_types(found: Any, **types: Any) -> Any:
    fields = [pa.field(field.name, types.get(field.name, field.type)) for field in found.schema]
    return found.cast(pa.schema(fields))


WRITERS = {
    "table": lambda found: found,
    "batch": lambda found: found.combine_chunks().to_batches()[0],
    "reader": lambda found: found.to_reader(max_chunksize=2),
    "stream": lambda found: nostr.decode_events(pa.table({"event": lines()})),
    "large lists": lambda found: with_types(found, tags=pa.large_list(pa.large_list(pa.string()))),
    "mixed lists": lambda found: with_types(found, tags=pa.list_(pa.large_list(pa.large_string())), content=pa.string()),
    "binary": lambda found: as_bytes(found, fixed=False),
    "fixed-size binary": lambda found: as_bytes(found, fixed=True),
    "other integers": lambda found: with_types(found, kind=pa.int32()),
    "other columns and order": lambda found: found.select(NAMES[::-1]).append_column("more", pa.array([1, 2, 3])),
    "slices": lambda found: pa.concat_tables([found, found]).combine_chunks().slice(3, 3),
    "polars": polars.from_arrow,
    "polars slices": lambda found: polars.concat([polars.from_arrow(found)[:1], polars.from_arrow(found)[1:]], rechunk=False),
    "pandas": lambda found: pandas.DataFrame(found.to_pydict()),
    "duckdb": lambda found: duckdb.from_arrow(found),
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS.keys())
def test_columns_of_every_library_are_encoded(writer: Any) -> None:
    encoded = pa.table(nostr.encode_events(writer(table())))
    assert encoded.schema.types == [pa.large_string()]
    assert [json.loads(line) for line in encoded["event"].to_pylist()] == EVENTS


@pytest.mark.parametrize("tags", [[], [[]]])
def test_columns_of_empty_lists_alone_are_tags(tags: list[list[str]]) -> None:
    frame = pandas.DataFrame([NOTE | {"tags": tags}, NOTE | {"tags": tags}])
    encoded = pa.table(nostr.encode_events(frame))
    assert [json.loads(line)["tags"] for line in encoded["event"].to_pylist()] == [tags, tags]


@pytest.mark.parametrize("format", nostr.formats())
def test_events_survive_every_format_alone_and_in_a_batch(format: str) -> None:
    # Every format holds this one.
    events = table([NOTE] * 3)
    encoded = pa.table(nostr.encode_events(events, format))
    expected = pa.large_string() if format == "json" else pa.large_binary()
    assert encoded.schema.types == [expected]
    single = encoded["event"][0].as_py()
    assert (single.encode() if format == "json" else single) == nostr.encode(format, NOTE)
    assert pa.table(nostr.decode_events(encoded, format)).equals(events)
    batch = nostr.batch_from_arrow(format, events)
    assert batch == nostr.encode_batch(format, [NOTE] * 3)
    stream = nostr.batch_to_arrow(format, batch)
    assert pa.table(stream).equals(events) and pa.table(stream).equals(events), "the stream is read again"


def test_what_cannot_be_read_or_held_ends_a_stream_with_its_row_or_is_null() -> None:
    unreadable = pa.table({"event": [*lines(), "{}", None], "n": [1, 2, 3, 4, 5]})
    with pytest.raises(wireproof.DecodeError, match="row 3: at byte 0: `id` is missing") as raised:
        list(nostr.decode_events(unreadable))
    assert (raised.value.code, raised.value.offset) == ("event/unreadable", 0)
    with pytest.raises(wireproof.DecodeError, match="row 0: the event is null"):
        list(nostr.decode_events(unreadable.slice(4)))
    found = pa.table(nostr.decode_events(unreadable, errors="null", keep=["n"]))
    assert found["n"].to_pylist() == [1, 2, 3, 4, 5]
    assert found.select(NAMES).to_pylist() == [*EVENTS, dict.fromkeys(NAMES), dict.fromkeys(NAMES)]
    # REPLY has NUL in its content, which nostrdb has a place for; the third is older than 1970.
    with pytest.raises(wireproof.DecodeError, match=r"row 2: this format cannot hold `created_at` -1") as raised:
        list(nostr.encode_events(table(), "ndb-note"))
    assert (raised.value.code, raised.value.offset) == ("event/unencodable", None)
    encoded = nostr.encode_events(found, "ndb-note", errors="null")
    assert [event is None for event in pa.table(encoded)["event"].to_pylist()] == [False, False, True, True, True]
    with pytest.raises(wireproof.DecodeError, match="row 3: `id` is not 32 bytes"):
        list(nostr.encode_events(found))
    with pytest.raises(wireproof.DecodeError, match="`created_at` -1"):
        nostr.batch_from_arrow("ndb-note", table())
    with pytest.raises(wireproof.DecodeError, match="row 3: `id` is not 32 bytes"):
        nostr.batch_from_arrow("json", found)
    with pytest.raises(wireproof.DecodeError) as raised:
        nostr.batch_to_arrow("json", b"[{}]")
    assert (raised.value.code, raised.value.offset) == ("event/unreadable", 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": "AB" * 32}, "`id`"),
        ({"pubkey": "ab" * 31}, "`pubkey`"),
        ({"kind": 65_536}, "`kind`"),
        ({"kind": -1}, "`kind`"),
        ({"created_at": None}, "`created_at`"),
        ({"tags": [["t", None]]}, "`tags`"),
        ({"tags": [None]}, "`tags`"),
        ({"content": None}, "`content`"),
        ({"sig": None}, "`sig`"),
    ],
)
def test_a_row_that_is_no_event_names_the_field(change: dict[str, Any], expected: str) -> None:
    types = [pa.string(), pa.string(), pa.int64(), pa.int64(), pa.list_(pa.list_(pa.string())), pa.string(), pa.string()]
    columns = pa.Table.from_pylist([NOTE, NOTE | change], pa.schema(list(zip(NAMES, types))))
    with pytest.raises(wireproof.DecodeError, match=f"row 1: {expected}"):
        list(nostr.encode_events(columns))
    verified = rows(nostr.verify_events(columns))
    assert [row["code"] for row in verified] == ["verified", "event/unreadable"]
    assert verified[1]["message"].startswith(expected)


# Verification


def test_each_event_has_its_own_verdict_from_text_bytes_and_columns() -> None:
    events = [NOTE, NOTE | {"kind": 7}, NOTE | {"sig": NOTE["sig"][:-2] + "17"}]
    codes = ["verified", "event/id", "signature/wrong"]
    text = pa.table({"event": lines(events)})
    inputs = [text, text.cast(pa.schema([("event", pa.binary_view())])), table(events), polars.from_arrow(table(events))]
    for events_in in inputs:
        found = rows(nostr.verify_events(events_in))
        assert [row["code"] for row in found] == codes
        assert [row["verified"] for row in found] == [True, False, False]
        assert [row["message"] is None for row in found] == [True, False, False]
        assert [{name: row[name] for name in NAMES} for row in found] == events
    packed = nostr.encode_events(table(events), "cbor-packed")
    assert [row["code"] for row in rows(nostr.verify_events(packed, "cbor-packed"))] == codes


def test_rows_that_cannot_be_read_have_a_verdict_and_no_event() -> None:
    found = rows(nostr.verify_events(pa.table({"event": ["{", *lines([NOTE]), None], "n": ["a", "b", "c"]}), keep=["n"]))
    assert [row["n"] for row in found] == ["a", "b", "c"]
    assert [row["code"] for row in found] == ["event/unreadable", "verified", "event/unreadable"]
    assert found[2]["message"] == "the event is null"
    assert [[row[name] for name in NAMES] for row in found[::2]] == [[None] * 7] * 2


def test_a_form_of_control_characters_can_be_required() -> None:
    escaped = {
        "id": "6f91552294802bedb75a5dec37da702788443992e6a65eb21acf729e808e64e3",
        "pubkey": "989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f",
        "created_at": 1700000123,
        "kind": 1,
        "tags": [],
        "content": "a\u0001b",
        "sig": "a7f425e891816d0c0f569201c8334a378fca584faf1a74fb4eef1928dc253394220ee66d86998bdb80984dae6fc6e707d0e077711b6df2b"
        "6fa9190fcf02012b8",
    }
    for ids, code in [("either", "verified"), ("escaped", "verified"), ("verbatim", "event/id-form")]:
        assert rows(nostr.verify_events(table([escaped]), ids=ids))[0]["code"] == code


def test_real_events_are_verified_and_converted(fixtures: Path) -> None:
    events = (fixtures / "nostr" / "events.jsonl").read_bytes().splitlines()
    stream = nostr.verify_events(pa.table({"event": events}).to_reader(max_chunksize=1000))
    batches = list(stream)
    assert [batch.num_rows for batch in batches] == [1000] * 6 + [232]
    found = pa.Table.from_batches(batches)
    assert found["code"].unique().to_pylist() == ["verified"]
    columns = found.select(NAMES)
    assert [json.loads(event) for event in events] == columns.to_pylist()
    again = pa.table(nostr.encode_events(columns))["event"].to_pylist()
    assert again == [event.decode() for event in events]
    whole = nostr.batch_from_arrow("wireproof", columns)
    assert pa.table(nostr.batch_to_arrow("wireproof", whole)).to_pylist() == columns.to_pylist()
    counted = duckdb.sql("SELECT kind, count(*) AS n FROM columns GROUP BY kind ORDER BY n DESC LIMIT 1").fetchall()
    assert counted == [(1, 1452)]
    tagged = polars.DataFrame(columns).explode("tags").filter(polars.col("tags").list.first() == "p")
    assert len(tagged) == sum(tag[0] == "p" for event in columns["tags"].to_pylist() for tag in event if tag)


def test_batches_larger_than_a_piece_become_several() -> None:
    events = pa.table({"event": pa.repeat(lines([NOTE])[0], 65_537)}).combine_chunks()
    found = list(nostr.decode_events(events.to_batches()[0]))
    assert [batch.num_rows for batch in found] == [65_536, 1]
    assert [batch.num_rows for batch in nostr.encode_events(pa.Table.from_batches(found))] == [65_536, 1]
    whole = nostr.batch_to_arrow("cbor-packed", nostr.batch_from_arrow("cbor-packed", pa.Table.from_batches(found)))
    assert [batch.num_rows for batch in whole] == [65_536, 1]


def test_batches_without_rows_stay_ones() -> None:
    empty = pa.table({"event": pa.array([], pa.binary())})
    assert pa.table(nostr.decode_events(empty)).num_rows == 0
    assert pa.table(nostr.verify_events(empty)).num_rows == 0
    assert pa.table(nostr.encode_events(table().slice(0, 0))).num_rows == 0
    assert nostr.batch_from_arrow("json", table().slice(0, 0)) == b"[]"


# Arguments


def test_wrong_arguments_and_columns_are_named() -> None:
    events = pa.table({"event": lines()})
    with pytest.raises(TypeError, match="argument 'stream': expected an object with __arrow_c_stream__"):
        nostr.verify_events([1])
    with pytest.raises(ValueError, match="argument 'format'"):
        nostr.decode_events(events, "none")
    with pytest.raises(ValueError, match="argument 'ids'"):
        nostr.verify_events(events, ids="none")
    with pytest.raises(ValueError, match="argument 'errors': 'skip' is neither 'raise' nor 'null'"):
        nostr.decode_events(events, errors="skip")
    with pytest.raises(TypeError, match="column event has the type Utf8 instead of binary"):
        nostr.decode_events(events, "cbor-packed")
    with pytest.raises(TypeError, match="column event has the type Int64 instead of text or binary"):
        nostr.decode_events(pa.table({"event": [1]}))
    with pytest.raises(TypeError, match="column event is missing"):
        nostr.decode_events(table())
    with pytest.raises(TypeError, match="column id is missing; there is other"):
        nostr.encode_events(pa.table({"other": [1]}))
    with pytest.raises(TypeError, match="column tags has the type Utf8 instead of lists of lists of text"):
        nostr.encode_events(table().set_column(4, "tags", pa.array(["t"] * 3)))
    with pytest.raises(TypeError, match="column kind has the type Float64 instead of an integer"):
        nostr.encode_events(with_types(table(), kind=pa.float64()))
    with pytest.raises(ValueError, match="argument 'keep': id is a column of the result"):
        nostr.verify_events(table(), keep=["id"])
    with pytest.raises(TypeError, match="argument 'keep'"):
        nostr.verify_events(table(), keep="id")
