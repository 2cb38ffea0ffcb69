"""Events in Cap'n Proto, read by the C++ library with the schema `docs/formats/nostr/capnp.capnp`."""

import struct

import capnp

from schemas import FOLDER

SCHEMA = capnp.load(str(FOLDER / "capnp.capnp"))


def events(data, batch, envelope, packed):
    """The events of a message whose root is one, or a batch of them."""
    roots = {True: (SCHEMA.NostrEvent, SCHEMA.EventBatch), False: (SCHEMA.Event, SCHEMA.Events)}
    root = roots[envelope][batch]
    fields = envelope_fields if envelope else schema_fields
    if packed:
        message = root.from_bytes_packed(data)
        return [fields(event) for event in (message.events if batch else [message])]
    with root.from_bytes(data) as message:
        return [fields(event) for event in (message.events if batch else [message])]


def schema_fields(event):
    """The fields of a struct by their names in JSON."""
    return {
        "id": bytes(event.id),
        "pubkey": bytes(event.pubkey),
        "created_at": event.createdAt,
        "kind": event.kind,
        "tags": [[getattr(value, value.which()) for value in tag] for tag in event.tags],
        "content": event.content,
        "sig": bytes(event.sig),
    }


def envelope_fields(event):
    """The fields of the two blobs, and the content."""
    fixed = struct.unpack("<32s32s64sqH", event.fixedData)
    named = dict(zip(["id", "pubkey", "sig", "created_at", "kind"], fixed, strict=True))
    return named | {"tags": tags(event.tagData), "content": event.content}


def tags(data):
    """The tags of a blob, which they fill."""
    (count,), at = struct.unpack_from("<H", data), 2
    found = []
    for _ in range(count):
        values, number, at = [], data[at], at + 1
        for _ in range(number):
            (head,), at = struct.unpack_from("<H", data, at), at + 2
            stored, at = data[at : at + (head & 0x7FFF)], at + (head & 0x7FFF)
            values.append(stored if head & 0x8000 else stored.decode())
        found.append(values)
    assert at == len(data), "bytes follow the last tag"
    return found
