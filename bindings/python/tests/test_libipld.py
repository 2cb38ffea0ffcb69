"""The functions of `libipld`: what they refuse that libipld accepts, and how they say it."""

from __future__ import annotations

import gc
import hashlib
import re
import threading
from pathlib import Path

import pytest

from conftest import Exported
from wireproof import CarError, DecodeError, libipld


def section(cid: bytes, data: bytes) -> bytes:
    length, encoded = len(cid) + len(data), bytearray()
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded) + cid + data


def test_a_block_with_another_hash_is_refused_unless_asked_otherwise(exported: Exported) -> None:
    header, blocks = libipld.decode_car(exported.car)
    assert header["version"] == 1 and len(blocks) > 300
    changed = bytearray(exported.car)
    changed[-1] ^= 1
    try:
        accepted = libipld.decode_car(bytes(changed), verify=False)
    except ValueError:
        accepted = None
    assert accepted is None or len(accepted[1]) == len(blocks)
    with pytest.raises(CarError) as raised:
        libipld.decode_car(bytes(changed))
    assert raised.value.code in ("car/hash", "dag-cbor") and raised.value.offset


def test_every_cut_of_an_archive_is_refused_or_a_shorter_archive(exported: Exported) -> None:
    whole = libipld.decode_car(exported.car)[1]
    for length in range(len(exported.car) - 400, len(exported.car)):
        try:
            _, blocks = libipld.decode_car(exported.car[:length])
        except CarError as error:
            assert error.code
            continue
        assert blocks == dict(list(whole.items())[: len(blocks)]) and len(blocks) < len(whole)


def test_the_length_of_a_block_must_be_its_own(exported: Exported) -> None:
    root = exported.car[: exported.car[0] + 1]
    data = libipld.encode_dag_cbor({"a": 1})
    cid = bytes.fromhex("01711220") + hashlib.sha256(data).digest()
    assert libipld.decode_car(root + section(cid, data))[1] == {cid: {"a": 1}}
    longer = bytearray(section(cid, data))
    longer[0] += 1
    with pytest.raises(CarError) as raised:
        libipld.decode_car(bytes(root + longer))
    assert raised.value.code == "car/truncated"
    assert libipld.decode_car(bytes(root + longer), verify=False)[1] == {cid: {"a": 1}}


def test_a_block_under_another_hash_function_cannot_be_verified(exported: Exported) -> None:
    root = exported.car[: exported.car[0] + 1]
    data = libipld.encode_dag_cbor({"a": 1})
    cid = bytes.fromhex("01711b20") + bytes(32)
    with pytest.raises(CarError, match="another hash function"):
        libipld.decode_car(root + section(cid, data))
    assert len(libipld.decode_car(root + section(cid, data), verify=False)[1]) == 1


@pytest.mark.parametrize(
    ("hexadecimal", "words"),
    [
        ("1801", "shortest form"),
        ("fa3f800000", "64 bits"),
        ("f93c00", "64 bits"),
        ("a2616101616102", "sorted and unique"),
        ("c100", "Non-42 tags"),
        ("d82a4100", "Invalid CID"),
        ("f7", "simple value"),
        ("9fff", "indefinite"),
        ("61", "beyond the end"),
        ("", "ends inside"),
    ],
)
def test_what_is_not_canonical_is_refused_with_its_place(hexadecimal: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words) as raised:
        libipld.decode_dag_cbor(bytes.fromhex(hexadecimal))
    assert raised.value.code == "dag-cbor" and raised.value.offset is not None
    with pytest.raises(DecodeError):
        libipld.decode_dag_cbor_multi(b"\x00" + bytes.fromhex(hexadecimal or "9f"))


def test_huge_lengths_are_refused_without_being_allocated() -> None:
    for head in ("5b", "7b", "9b", "bb"):
        with pytest.raises(DecodeError):
            libipld.decode_dag_cbor(bytes.fromhex(head + "7fffffffffffffff"))


def test_arguments_of_a_wrong_type_are_named() -> None:
    for function in (libipld.decode_car, libipld.decode_dag_cbor, libipld.decode_dag_cbor_multi):
        with pytest.raises(TypeError, match="'data'"):
            function("text")
        with pytest.raises(TypeError, match="data"):
            function()
    with pytest.raises(ValueError, match="no form in DAG-CBOR"):
        libipld.encode_dag_cbor({"a": object()})
    with pytest.raises(ValueError, match="out of range"):
        libipld.encode_dag_cbor(float("nan"))
    with pytest.raises(ValueError, match="out of range"):
        libipld.encode_dag_cbor(2**200)
    with pytest.raises(UnicodeEncodeError):
        libipld.encode_dag_cbor("\ud800")
    with pytest.raises(UnicodeEncodeError):
        libipld.encode_dag_cbor({"\ud800": 1, "a": 2})


def test_the_collector_is_as_it_was_before(exported: Exported) -> None:
    for enable in (gc.enable, gc.disable, gc.enable):
        enable()
        before = gc.isenabled()
        libipld.decode_car(exported.car)
        with pytest.raises(ValueError):
            libipld.decode_car(exported.car[:-1])
        assert gc.isenabled() == before


def test_many_threads_decode_at_once(exported: Exported) -> None:
    expected = libipld.decode_car(exported.car)
    failures: list[object] = []

    def decode() -> None:
        for _ in range(20):
            if libipld.decode_car(exported.car) != expected:
                failures.append("another result")

    threads = [threading.Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_stays_the_same_over_a_million_calls(exported: Exported) -> None:
    block = libipld.encode_dag_cbor({"$type": "app.bsky.feed.post", "text": "hello", "langs": ["en"], "n": 2**40})
    object_ = libipld.decode_dag_cbor(block)
    cid = next(iter(libipld.decode_car(exported.car)[1]))
    text = libipld.encode_cid(cid)
    calls = [
        (1_000_000, lambda: libipld.decode_dag_cbor(block)),
        (1_000_000, lambda: libipld.encode_dag_cbor(object_)),
        (1_000_000, lambda: libipld.decode_dag_cbor_multi(block)),
        (200_000, lambda: libipld.decode_cid(text)),
        (200_000, lambda: libipld.encode_cid(cid)),
        (200_000, lambda: libipld.encode_multibase("b", cid)),
        (200_000, lambda: libipld.decode_multibase(text)),
        (100, lambda: libipld.decode_car(exported.car)),
    ]
    for count, call in calls:
        for _ in range(count // 10):
            call()
        before = resident_bytes()
        for _ in range(count):
            call()
        assert resident_bytes() - before < 4 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm") as statistics:
        return int(statistics.read().split()[1]) * 4096


def differing_inputs(exported: Exported) -> dict[str, tuple[str, bytes]]:
    """The inputs of the table in the reference, with the function that reads each."""
    root = exported.car[: exported.car[0] + 1]
    data = libipld.encode_dag_cbor({"a": 1})
    digest = hashlib.sha256(data).digest()
    cid = bytes.fromhex("01711220") + digest
    longer = bytearray(section(cid, data))
    longer[0] += 1
    return {
        "a block whose bytes do not have the hash in its CID": (
            "decode_car",
            root + section(bytes.fromhex("01711220") + bytes(32), data),
        ),
        "a block under another hash function than SHA-256": (
            "decode_car",
            root + section(bytes.fromhex("01711b20") + digest, data),
        ),
        "a length in an archive that is not that of its block": ("decode_car", root + bytes(longer)),
        "integers and lengths in more bytes than they need": ("decode_dag_cbor", bytes.fromhex("1801")),
        "floats of 32 bits": ("decode_dag_cbor", bytes.fromhex("fa3f800000")),
        "a SHA-256 of other than 32 bytes in a CID": (
            "decode_dag_cbor",
            bytes.fromhex("d82a450001711200"),
        ),
    }


def test_the_table_of_the_reference_has_what_differs_from_libipld(exported: Exported) -> None:
    theirs = pytest.importorskip("libipld")
    page = (Path(__file__).resolve().parents[3] / "docs/reference/python.md").read_text()
    table = page.split("| input | `libipld` 3.5.0 | `wireproof.libipld` |\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    inputs = differing_inputs(exported)
    assert [name for name, _, _ in rows] == list(inputs)
    for name, of_theirs, of_ours in rows:
        function, data = inputs[name]
        assert of_theirs in ("accepted", "ignored")
        getattr(theirs, function)(data)
        with pytest.raises(ValueError) as raised:
            getattr(libipld, function)(data)
        if "Error" in of_ours:
            assert type(raised.value).__name__ in of_ours, name
        for code in re.findall(r"`([a-z]+/[a-z]+)`", of_ours):
            assert raised.value.code == code
        if "verify=False" in of_ours:
            assert libipld.decode_car(data, verify=False) == theirs.decode_car(data)
