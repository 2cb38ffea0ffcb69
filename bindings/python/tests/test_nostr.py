"""Nostr events are verified in one batch, and written and read in every format."""

from __future__ import annotations

import json
import pickle

import pytest

from wireproof import DecodeError, nostr

NOTE = {
    "id": "e20978737ab7cd36eca300a65f11738176123f2e0c23054544b18fe493e2aa1a",
    "pubkey": "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
    "created_at": 1698632753,
    "kind": 1,
    "tags": [["t", "gm"]],
    "content": "good morning",
    "sig": "5687c1a97066c349cb3bde0c0719fd1652a13403ba6aca7557b646307ee6718528cd86989db08bf6a7fd04bea0b0b87c1dd1b78c2d"
    "21b80b80eebab7f40b8916",
}


def test_each_event_has_its_own_verdict() -> None:
    other_kind = NOTE | {"kind": 7}
    other_signature = NOTE | {"sig": NOTE["sig"][:-2] + "17"}
    events = [json.dumps(NOTE), json.dumps(other_kind).encode(), json.dumps(other_signature), "{", b""]
    verdicts = nostr.verify_batch(events)
    codes = ["verified", "event/id", "signature/wrong", "event/unreadable", "event/unreadable"]
    assert [verdict.code for verdict in verdicts] == codes
    assert [bool(verdict) for verdict in verdicts] == [True] + [False] * 4
    assert verdicts[0].id == NOTE["id"] and verdicts[3].id is None and verdicts[3].message
    assert pickle.loads(pickle.dumps(verdicts)) == verdicts


def test_real_events_are_verified(fixtures) -> None:
    lines = (fixtures / "nostr" / "events.jsonl").read_bytes().splitlines()[:2000]
    assert lines
    assert all(nostr.verify_batch(lines))


@pytest.mark.parametrize("format", nostr.formats())
def test_an_event_survives_every_format(format: str) -> None:
    encoded = nostr.encode(format, NOTE)
    assert nostr.decode(format, encoded) == NOTE
    batch = nostr.encode_batch(format, [NOTE, NOTE])
    assert nostr.decode_batch(format, batch) == [NOTE, NOTE]
    with pytest.raises(DecodeError) as raised:
        nostr.decode(format, encoded[:-1] if len(encoded) > 1 else b"")
    assert raised.value.code == "event/unreadable" and raised.value.offset is not None


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="argument 'format'"):
        nostr.encode("none", NOTE)
    with pytest.raises(ValueError, match="argument 'ids'"):
        nostr.verify_batch([], ids="none")
    with pytest.raises(TypeError, match=r"argument 'events\[1\]'"):
        nostr.verify_batch(["{}", 7])
    with pytest.raises(TypeError, match="'events'"):
        nostr.verify_batch(json.dumps(NOTE))
    with pytest.raises(TypeError, match="`kind` is missing"):
        nostr.encode("json", {key: value for key, value in NOTE.items() if key != "kind"})
    with pytest.raises(TypeError, match="`kind`"):
        nostr.encode("json", NOTE | {"kind": "1"})
    with pytest.raises(ValueError, match="`id`"):
        nostr.encode("json", NOTE | {"id": "E2"})
