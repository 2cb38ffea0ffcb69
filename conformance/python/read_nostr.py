"""Checks that the formats' own libraries decode the events that we encoded, with the published schemas.

Reads lines of {"format", "events", "batch", "bytes"} from standard input: `bytes` is hexadecimal, one
event's encoding or, if `batch`, that of them all. Every field is compared with the JSON in `events`. The
published vectors are read in the same way, and those refusals are checked that a schema can express.
"""

import collections
import json
import sys

import cbor2
import msgpack
from cddl_verifier import Validator

import capnp_events
import flatbuffer_events
import proto_events
import wireproof_events
from schemas import FOLDER

NAMES = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]


def main():
    read, unread = collections.Counter(), set()
    vectors = json.loads((FOLDER / "vectors.json").read_text())
    for case in [*cases(vectors), *map(json.loads, sys.stdin)]:
        reader = READERS.get(case["format"])
        if reader is None:
            unread.add(case["format"])
            continue
        events = reader(bytes.fromhex(case["bytes"]), case["batch"])
        compare(case, [plain(event) for event in events])
        read[case["format"]] += len(events)
    for name, count in sorted(read.items()):
        print(f"{name}: {count} events read as they were")
    print(f"not read here: {', '.join(sorted(unread)) or 'none'}")
    print(f"{refuse(vectors['refusals'])} of the refusals refused by a schema")
    missing = [name for name in unread if name.startswith(FAMILIES)]
    if missing or not read:
        sys.exit(f"no reader for {missing}" if missing else "no events came")


def cases(vectors):
    """The encodings of the vectors as lines of the input have them."""
    events = {vector["name"]: vector["event"] for vector in vectors["events"]}
    named = [(vector["encodings"], [vector["name"]], False) for vector in vectors["events"]]
    named += [(vector["encodings"], vector["events"], True) for vector in vectors["batches"]]
    for encodings, names, is_batch in named:
        for format, digits in encodings.items():
            case = {"format": format, "events": [events[name] for name in names]}
            yield case | {"batch": is_batch, "bytes": digits}


def refuse(refusals):
    """Checks that the schema of CBOR rejects the bytes that break it; returns their number."""
    count = 0
    for refusal in refusals:
        rule = CDDL_RULES.get(refusal["format"])
        if rule and refusal["rule"] not in BEYOND_CDDL:
            if CDDL.validate(bytes.fromhex(refusal["bytes"]), root_type=rule):
                sys.exit(f"the schema of CBOR accepts {refusal['name']} in {refusal['format']}")
            count += 1
    return count


def compare(case, events):
    for found, expected in zip(events, case["events"], strict=True):
        for name in NAMES:
            if found[name] != expected[name]:
                place = f"{case['format']}, {name} of {expected['id']}"
                sys.exit(f"{place}: {found[name]!r}, not {expected[name]!r}")


def plain(event):
    """The event with bytes as hexadecimal."""
    event = dict(event)
    for name in ("id", "pubkey", "sig"):
        event[name] = digits(event[name])
    event["tags"] = [[digits(value) for value in tag] for tag in event["tags"]]
    return event


def digits(value):
    return value.hex() if isinstance(value, bytes) else value


def read_json(data, batch):
    value = json.loads(data)
    return value if batch else [value]


def read_cbor(rule, names):
    def read(data, batch):
        result = CDDL.validate(data, root_type=f"{rule}-batch" if batch else rule)
        if not result:
            sys.exit(f"{rule}: {result.errors}")
        value = cbor2.loads(data)
        same_again(cbor2.dumps(value), data)
        return [named(names, event) for event in (value if batch else [value])]

    return read


def read_msgpack(data, batch):
    value = msgpack.unpackb(data, raw=False, strict_map_key=False)
    same_again(msgpack.packb(value, use_bin_type=True), data)
    return [named(None, event) for event in (value if batch else [value])]


def named(names, event):
    """The fields by their names, from an encoding by position, number or name."""
    if names is None:
        return dict(zip(NAMES, event, strict=True))
    return dict(zip(NAMES, (event[name] for name in names), strict=True))


def read_proto(schema):
    def read(data, batch):
        message = schema.batch() if batch else schema.event()
        message.ParseFromString(data)
        same_again(message.SerializeToString(deterministic=True), data)
        return [proto_events.fields(event) for event in (message.events if batch else [message])]

    return read


def same_again(written, data):
    if written != data:
        sys.exit(f"the library writes {written.hex()}, not {data.hex()}")


def read_capnp(envelope, packed):
    def read(data, batch):
        return capnp_events.events(data, batch, envelope, packed)

    return read


CDDL = Validator(FOLDER / "cbor.cddl")
CDDL_RULES = {"cbor-schemaless": "schemaless", "cbor-packed": "packed", "cbor-intkey": "intkey"}

# Rules about the encoding of an item, of which a schema of items says nothing.
BEYOND_CDDL = ("not-minimal", "not-canonical")

READERS = {
    "json": read_json,
    "cbor-schemaless": read_cbor("schemaless", NAMES),
    "cbor-packed": read_cbor("packed", None),
    "cbor-intkey": read_cbor("intkey", range(7)),
    "msgpack": read_msgpack,
    "proto-string": read_proto(proto_events.Schema("proto-string")),
    "proto-binary": read_proto(proto_events.Schema("proto-binary")),
    "proto-binary-hex": read_proto(proto_events.Schema("proto-binary-hex")),
    "flatbuffers": flatbuffer_events.events,
    "capnp": read_capnp(envelope=True, packed=False),
    "capnp-packed": read_capnp(envelope=True, packed=True),
    "capnp-schema": read_capnp(envelope=False, packed=False),
    "capnp-schema-packed": read_capnp(envelope=False, packed=True),
    "wireproof": wireproof_events.events,
}

# Formats that must have a reader here.
FAMILIES = ("json", "cbor", "msgpack", "proto", "flatbuffers", "capnp", "wireproof")

if __name__ == "__main__":
    main()
