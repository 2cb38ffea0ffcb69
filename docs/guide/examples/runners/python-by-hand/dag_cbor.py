"""Which value do these DAG-CBOR bytes spell, if they spell it canonically? By hand, over the standard library."""

import math
import struct

CHECKS = [
    'key-order',
    'duplicate-keys',
    'minimal-heads',
    'utf8',
    'indefinite-lengths',
    'float-canonical',
    'only-tag-42',
    'link-shape',
    'trailing-bytes',
    'depth-bound',
]
MAX_DEPTH = 127


class Refused(ValueError):
    """The rule that was broken, and at which byte."""


class Link(bytes):
    """The bytes of a CID."""


def decode(data):
    """The one value that `data` holds."""
    value, end = decode_first(data, 0)
    if end != len(data):
        raise Refused(f'at byte {end}: bytes follow the end')
    return value


def decode_first(data, start):
    """The value that begins at `start`, and where it ends."""
    return _item(data, start, MAX_DEPTH)


def _item(data, at, depth):
    major, info, argument, end = _head(data, at)
    if major == 0:
        return argument, end
    if major == 1:
        return -1 - argument, end
    if major == 2:
        return _take(data, end, argument)
    if major == 3:
        return _text(data, end, argument)
    if depth == 0:
        raise Refused(f'at byte {at}: containers inside each other too deep')
    if major == 4:
        return _array(data, end, argument, depth - 1)
    if major == 5:
        return _map(data, end, argument, depth - 1)
    if major == 6:
        return _link(data, at, argument, end)
    return _simple(data, at, info, end)


def _head(data, at):
    """Major type, additional information, argument, and where the head ends."""
    first = _byte(data, at)
    major, info, end = first >> 5, first & 31, at + 1
    if info < 24:
        return major, info, info, end
    if info > 27:
        raise Refused(f'at byte {at}: a length that is indefinite or reserved')
    if major == 7:
        return major, info, 0, end
    argument, end = _take(data, end, 1 << (info - 24))
    argument = int.from_bytes(argument, 'big')
    least = 24 if info == 24 else 1 << (8 << (info - 25))
    if argument < least:
        raise Refused(f'at byte {at}: more bytes than the number needs')
    return major, info, argument, end


def _byte(data, at):
    if at >= len(data):
        raise Refused(f'at byte {at}: the input ends in an item')
    return data[at]


def _take(data, at, length):
    end = at + length
    if end > len(data):
        raise Refused(f'at byte {at}: the input ends in an item')
    return data[at:end], end


def _text(data, at, length):
    taken, end = _take(data, at, length)
    try:
        return taken.decode('utf-8'), end
    except UnicodeDecodeError as error:
        raise Refused(f'at byte {at + error.start}: text that is not UTF-8') from None


def _array(data, at, length, depth):
    items = []
    # Each item has a byte at least, so a length without its items ends where the input does.
    for _ in range(length):
        item, at = _item(data, at, depth)
        items.append(item)
    return items, at


def _map(data, at, length, depth):
    entries, before = {}, None
    for _ in range(length):
        start = at
        major, _, key_length, at = _head(data, at)
        if major != 3:
            raise Refused(f'at byte {start}: a key that is no text')
        key, end = _text(data, at, key_length)
        order = (key_length, data[at:end])
        if before is not None and order <= before:
            raise Refused(f'at byte {start}: map keys repeated or out of order')
        before = order
        entries[key], at = _item(data, end, depth)
    return entries, at


def _link(data, at, tag, end):
    if tag != 42:
        raise Refused(f'at byte {at}: a tag other than 42')
    major, _, length, start = _head(data, end)
    if major != 2:
        raise Refused(f'at byte {end}: a link that is no byte string')
    content, end = _take(data, start, length)
    # The prefix 0, then CID version 1, raw or DAG-CBOR, SHA-256, 32 bytes.
    if length != 37 or content[:2] != b'\x00\x01' or content[2] not in (0x55, 0x71) or content[3:5] != b'\x12\x20':
        raise Refused(f'at byte {start}: a link that is no CID')
    return Link(content[1:]), end


def _simple(data, at, info, end):
    if info in (20, 21):
        return info == 21, end
    if info == 22:
        return None, end
    if info != 27:
        raise Refused(f'at byte {at}: a float of fewer than 64 bits, or an unknown simple value')
    spelled, end = _take(data, end, 8)
    (number,) = struct.unpack('>d', spelled)
    if not math.isfinite(number) or (number == 0 and spelled[0]):
        raise Refused(f'at byte {at}: a float that is not finite, or minus zero')
    return number, end
