"""The decoder and the encoder beside those of `libipld`: the same objects and bytes, and the same refusals.

Accepted by `libipld` and refused here, as documented: integers and lengths in more bytes than they need, floats of 32 bits,
CIDs over 100 bytes or with a SHA-256 of another length, and, unless `verify=False`, archives whose hashes or lengths are wrong.
"""

from __future__ import annotations

import gc
import hashlib
import math
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wireproof import libipld as ours

libipld = pytest.importorskip("libipld")

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"

ARCHIVES = sorted(
    [ROOT / "docs/guide/examples/repository.car", *DATA.glob("pds/*.car"), *DATA.glob("atproto/cars/*.car")]
)


def outcome(function, *arguments, **options):
    """What a call returns, or the kind of error that it raises."""
    try:
        return function(*arguments, **options)
    except (ValueError, RecursionError, OverflowError) as error:
        return "refused", isinstance(error, RecursionError)


def is_refusal(result: object) -> bool:
    return isinstance(result, tuple) and result[:1] == ("refused",)


def assert_same(a: object, b: object) -> None:
    """Equal, of the same types, with the keys in the same order; floats to the bit."""
    pending = [(a, b)]
    while pending:
        a, b = pending.pop()
        assert type(a) is type(b)
        if isinstance(a, dict):
            assert list(a) == list(b)
            pending.extend(zip(a.values(), b.values()))
        elif isinstance(a, (list, tuple)):
            assert len(a) == len(b)
            pending.extend(zip(a, b))
        elif isinstance(a, float):
            assert struct.pack(">d", a) == struct.pack(">d", b)
        else:
            assert a == b


def has_a_stricter_case(data: bytes) -> bool:
    """Whether the item, or what follows it, has a head that only `libipld` accepts."""
    at, pending = 0, 1
    while at < len(data) and pending:
        head, at, pending = data[at], at + 1, pending - 1
        kind, low = head >> 5, head & 0x1F
        if head == 0xFA:
            return True
        if 24 <= low < 28:
            width = 1 << (low - 24)
            number = int.from_bytes(data[at : at + width], "big")
            at += width
            least = {1: 24, 2: 1 << 8, 4: 1 << 16, 8: 1 << 32}[width]
            if kind != 7 and number < least:
                return True
        else:
            number = low
        if kind == 6:
            length = at + (data[at : at + 1] == b"\x58") + 1
            cid = data[length + 1 : length + 101]
            # Other CIDs than those of the AT Protocol.
            if cid[:1] != b"\x01" or cid[1:2] not in (b"\x71", b"\x55") or cid[2:4] != b"\x12\x20":
                return True
        at += number if kind in (2, 3) else 0
        pending += {4: number, 5: 2 * number, 6: 1}.get(kind, 0)
    return False


def assert_decoded_alike(data: bytes) -> None:
    theirs, mine = outcome(libipld.decode_dag_cbor, data), outcome(ours.decode_dag_cbor, data)
    if is_refusal(mine) and not is_refusal(theirs):
        assert has_a_stricter_case(data), data.hex()
    else:
        assert_same(theirs, mine)


CIDS = st.binary(min_size=32, max_size=32).map(lambda digest: b"\x01\x71\x12\x20" + digest)
TEXTS = st.one_of(st.text(max_size=40), st.sampled_from(["$type", "createdAt", "app.bsky.feed.post", "did:plc:" + 24 * "a"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
    TEXTS,
    st.binary(max_size=40),
    CIDS,
)
OBJECTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=20), st.dictionaries(TEXTS, inner, max_size=20)),
    max_leaves=60,
)


@given(OBJECTS)
def test_objects_are_encoded_and_decoded_alike(value: object) -> None:
    data = libipld.encode_dag_cbor(value)
    assert ours.encode_dag_cbor(value) == data
    # Twice: the second time all keys are known.
    for _ in range(2):
        assert_same(libipld.decode_dag_cbor(data), ours.decode_dag_cbor(data))


@given(st.lists(OBJECTS, max_size=4))
def test_items_that_follow_each_other_are_decoded_alike(values: list[object]) -> None:
    data = b"".join(map(libipld.encode_dag_cbor, values))
    assert_same(libipld.decode_dag_cbor_multi(data), ours.decode_dag_cbor_multi(data))


@given(OBJECTS, st.data())
@settings(max_examples=400)
def test_damaged_bytes_are_refused_or_accepted_alike(value: object, data: st.DataObject) -> None:
    damaged = bytearray(libipld.encode_dag_cbor(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from("clid")):
            case "c":
                damaged[at] = data.draw(st.integers(0, 255))
            case "l":
                del damaged[at + 1 :]
            case "i":
                damaged.insert(at, data.draw(st.integers(0, 255)))
            case _:
                damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    assert_decoded_alike(bytes(damaged))


@given(st.binary(max_size=40))
def test_random_bytes_are_refused_or_accepted_alike(data: bytes) -> None:
    assert_decoded_alike(data)


@given(st.dictionaries(st.text(max_size=30), st.integers(0, 9), max_size=30), st.randoms(use_true_random=False))
def test_maps_in_any_order_are_encoded_alike(value: dict[str, int], order: random.Random) -> None:
    items = list(value.items())
    order.shuffle(items)
    assert ours.encode_dag_cbor(dict(items)) == libipld.encode_dag_cbor(dict(items))


@pytest.mark.parametrize("value", [{1: 2}, {"a": 1, 2: 3}, {"a": object()}, [math.nan], [math.inf], 2**64, "\ud800", {"\ud800": 1}, {"b": 1, "\ud800": 1}, (1,)])
def test_what_has_no_form_is_refused_alike(value: object) -> None:
    theirs, mine = outcome(libipld.encode_dag_cbor, value), outcome(ours.encode_dag_cbor, value)
    assert is_refusal(mine) and theirs == mine


def test_subclasses_are_encoded_alike() -> None:
    class Text(str): ...

    class Map(dict): ...

    class Items(list): ...

    class Number(int): ...

    value = Map({Text("b"): Items([Number(5), True, 2.5]), "a": Text("x"), "": None})
    assert ours.encode_dag_cbor(value) == libipld.encode_dag_cbor(value)


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 66, 200, 900])
@pytest.mark.parametrize("shape", [lambda inner: [inner], lambda inner: {"a": inner, "bb": 1}])
def test_depth_is_handled_alike(depth: int, shape) -> None:
    value: object = 1
    for _ in range(depth):
        value = shape(value)
    data = libipld.encode_dag_cbor(value)
    assert ours.encode_dag_cbor(value) == data
    assert ours.encode_dag_cbor(ours.decode_dag_cbor(data)) == data


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archives_are_decoded_alike(path: Path) -> None:
    data = path.read_bytes()
    theirs = outcome(libipld.decode_car, data)
    assert_same(theirs, outcome(ours.decode_car, data, verify=False))
    verified = outcome(ours.decode_car, data)
    if is_refusal(theirs):
        assert is_refusal(verified)
        return
    assert_same(theirs, verified)
    for block in list(theirs[1].values())[:2000]:
        encoded = libipld.encode_dag_cbor(block)
        assert ours.encode_dag_cbor(block) == encoded
        assert_same(block, ours.decode_dag_cbor(encoded))


def test_a_damaged_archive_is_never_verified_and_otherwise_decoded_alike() -> None:
    data = (ROOT / "docs/guide/examples/repository.car").read_bytes()[: 40_000]
    intact, random_bytes = libipld.decode_car, random.Random(5)
    for _ in range(300):
        damaged = bytearray(data)
        at = random_bytes.randrange(len(damaged))
        damaged[at] = (damaged[at] + random_bytes.randrange(1, 256)) % 256
        theirs, mine = outcome(intact, bytes(damaged)), outcome(ours.decode_car, bytes(damaged), verify=False)
        if is_refusal(mine):
            continue
        assert_same(theirs, mine)
        verified = outcome(ours.decode_car, bytes(damaged))
        if not is_refusal(verified):
            blocks = verified[1].items()
            assert all(hashlib.sha256(ours.encode_dag_cbor(block)).digest() == cid[4:] for cid, block in blocks)


def test_what_a_block_has_after_its_item_is_not_decoded_as_another_block() -> None:
    def varint(number: int) -> bytes:
        return bytes([number]) if number < 128 else bytes([number & 0x7F | 0x80, number >> 7])

    def cid(block: bytes) -> bytes:
        return b"\x01\x71\x12\x20" + hashlib.sha256(block).digest()

    header = b"\xa2\x65roots\x81\xd8\x2a\x58\x25\x00" + cid(b"\xa0") + b"\x67version\x01"
    forged_cid, forged = cid(b"\xa1\x61a\x01"), b"\xa1\x61a\x02"
    block = b"\xa0" + varint(len(forged_cid + forged)) + forged_cid + forged
    section = cid(block) + block
    archive = varint(len(header)) + header + varint(len(section)) + section
    # `libipld` ignores lengths, and so takes the end of one block for another.
    assert forged_cid in libipld.decode_car(archive)[1]
    assert forged_cid in ours.decode_car(archive, verify=False)[1]
    with pytest.raises(ValueError):
        ours.decode_car(archive)


def test_many_different_keys_do_not_change_what_is_decoded() -> None:
    for start in range(0, 40_000, 10):
        value = {f"k{number:05}": number for number in range(start, start + 1 + start % 17)}
        assert ours.decode_dag_cbor(libipld.encode_dag_cbor(value)) == value
    long = {"k" * length: length for length in range(60)}
    for _ in range(3):
        assert ours.decode_dag_cbor(libipld.encode_dag_cbor(long)) == long


def test_the_collector_runs_after_a_large_input_as_before() -> None:
    data = libipld.encode_dag_cbor([{"a": [number]} for number in range(10_000)])
    for enabled in (True, False, True):
        (gc.enable if enabled else gc.disable)()
        ours.decode_dag_cbor(data)
        assert gc.isenabled() is enabled
        with pytest.raises(ValueError):
            ours.decode_dag_cbor(data[:-1])
        assert gc.isenabled() is enabled
