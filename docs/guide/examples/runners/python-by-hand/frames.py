"""What is in a frame of the firehose? Header, payload, archive, and every block as a value."""

import hashlib
import struct

import dag_cbor
from dag_cbor import Link, Refused

CID_LENGTH = 36
DAG_CBOR = 0x71


def read_corpus(path):
    """The frames of a file: a count, then each frame behind its length, big-endian."""
    with open(path, 'rb') as file:
        data = file.read()
    (count,) = struct.unpack_from('>I', data)
    frames, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from('>I', data, at)
        frames.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return frames


def decode(frame, is_verified):
    """The values of all blocks; `None` for a block that is no DAG-CBOR."""
    header, at = dag_cbor.decode_first(frame, 0)
    payload = dag_cbor.decode(frame[at:])
    if header.get('t') not in ('#commit', '#sync'):
        return []
    return [value(cid, data, is_verified) for cid, data in read_car(payload['blocks'])]


def value(cid, data, is_verified):
    if is_verified and hashlib.sha256(data).digest() != cid[4:]:
        raise Refused('a block whose SHA-256 is not the one in its CID')
    return dag_cbor.decode(data) if cid[1] == DAG_CBOR else None


def read_car(archive):
    """CID and bytes of each block of a CAR v1."""
    length, at = varint(archive, 0)
    header = dag_cbor.decode(archive[at : at + length])
    if header.get('version') != 1:
        raise Refused('not version 1 of CAR')
    at += length
    while at < len(archive):
        length, at = varint(archive, at)
        section = archive[at : at + length]
        if len(section) != length or length < CID_LENGTH:
            raise Refused(f'at byte {at}: a block that is cut off')
        yield section[:CID_LENGTH], section[CID_LENGTH:]
        at += length


def varint(data, at):
    """The LEB128 number that begins at `at`, and where it ends."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 56:
            raise Refused(f'at byte {at}: a length that does not end')
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def count(value, counts):
    """Adds what is in a value to the counts of the runner protocol."""
    if value is None:
        counts['nulls'] += 1
    elif isinstance(value, bool):
        counts['booleans'] += 1
    elif isinstance(value, int):
        counts['integers'] += 1
    elif isinstance(value, float):
        counts['floats'] += 1
    elif isinstance(value, str):
        counts['text_bytes'] += len(value.encode())
    elif isinstance(value, Link):
        counts['links'] += 1
    elif isinstance(value, bytes):
        counts['byte_string_bytes'] += len(value)
    elif isinstance(value, list):
        counts['arrays'] += 1
        counts['array_items'] += len(value)
        for item in value:
            count(item, counts)
    else:
        counts['maps'] += 1
        counts['map_entries'] += len(value)
        for key, item in value.items():
            counts['text_bytes'] += len(key.encode())
            count(item, counts)
