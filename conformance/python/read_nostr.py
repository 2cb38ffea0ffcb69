"""Checks that the formats' own libraries decode the events that we encoded.

Reads lines of {"format", "events", "batch", "bytes"} from standard input: `bytes` is hexadecimal, one
event's encoding or, if `batch`, that of them all. Every field is compared with the JSON in `events`.
"""

import collections
import json
import sys

import cbor2
import msgpack

import flatbuffer_events
import proto_events

NAMES = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]


def main():
    read, unread = collections.Counter(), set()
    for line in sys.stdin:
        case = json.loads(line)
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
    missing = [name for name in unread if name.startswith(FAMILIES)]
    if missing or not read:
        sys.exit(f"no reader for {missing}" if missing else "no events came")


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


def read_cbor(names):
    def read(data, batch):
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


READERS = {
    "json": read_json,
    "cbor-schemaless": read_cbor(NAMES),
    "cbor-packed": read_cbor(None),
    "cbor-intkey": read_cbor(range(7)),
    "msgpack": read_msgpack,
    "proto-string": read_proto(proto_events.Schema("String", text_keys=True, typed_values=False)),
    "proto-binary": read_proto(proto_events.Schema("Binary", text_keys=False, typed_values=False)),
    "proto-binary-hex": read_proto(
        proto_events.Schema("BinaryHex", text_keys=False, typed_values=True)
    ),
    "flatbuffers": flatbuffer_events.events,
}

# Formats that must have a reader here.
FAMILIES = ("json", "cbor", "msgpack", "proto", "flatbuffers")

if __name__ == "__main__":
    main()
