"""Events in the format `wireproof`, read as `docs/formats/nostr/wireproof.md` specifies it, with the tables of that page.

Encodings are read and not checked: that there is one of an event is tested elsewhere.
"""

import hashlib
import json
import re

from schemas import FOLDER

PAGE = (FOLDER / "wireproof.md").read_text()


def table(title):
    """The words of a table on the page."""
    return re.search(rf"^## {title}\n.*?```text\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)[1].split()


NAMES, STRINGS = table("Names"), table("Strings")


def events(data, batch):
    return read_batch(data) if batch else [read_event(data)]


class Input:
    """Bytes that are read from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count, "the input ends"
        self.at += count
        return taken

    def byte(self):
        return self.take(1)[0]

    def leb128(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def end(self):
        assert self.at == len(self.data), "bytes follow"


def read_event(data):
    parts = Input(data)
    assert parts.byte() == 0x01, "version"
    reader = Reader(heads=parts, keys=parts, texts=parts)
    pubkey, sig = parts.take(32), parts.take(64)
    event = reader.event(pubkey, sig, 0)
    parts.end()
    return event


def read_batch(data):
    parts = Input(data)
    assert parts.byte() == 0x81, "version"
    count, keys, heads = parts.leb128(), parts.leb128(), parts.leb128()
    sigs = Input(parts.take(64 * count))
    keys, heads = Input(parts.take(32 * keys)), Input(parts.take(heads))
    reader, found, time = Reader(heads, keys, texts=parts), [], 0
    for _ in range(count):
        pubkey = reader.digits(heads.byte())
        found.append(reader.event(pubkey, sigs.take(64), time))
        time = found[-1]["created_at"]
        reader.number_key(found[-1]["id"])
    for part in (sigs, keys, heads, parts):
        part.end()
    return found


class Reader:
    """Reads events one after the other; of a single event all parts are the same input."""

    def __init__(self, heads, keys, texts):
        self.heads, self.keys, self.texts = heads, keys, texts
        self.earlier_keys, self.earlier_values = [], []

    def number_key(self, key):
        if len(self.earlier_keys) < 530_432:
            self.earlier_keys.append(key)

    def event(self, pubkey, sig, time):
        zigzag = self.heads.leb128()
        time += -(zigzag + 1 >> 1) if zigzag & 1 else zigzag >> 1
        kind = self.heads.leb128()
        event = {
            "pubkey": pubkey,
            "created_at": (time + 2**63) % 2**64 - 2**63,
            "kind": kind & 0xFFFF,
            "tags": [self.tag() for _ in range(self.heads.leb128())],
            "content": self.value(),
            "sig": sig,
        }
        return event | {"id": event_id(event, is_escaped=kind >> 16 == 1)}

    def tag(self):
        head = self.heads.byte()
        name, count = head & 0x3F, (head >> 6) + 2
        if count == 5:
            count = self.heads.leb128()
        values = [] if name == 63 else [NAMES[name]]
        while len(values) < count:
            values.append(self.value())
        return values

    def value(self):
        """The text of a value."""
        head = self.heads.byte()
        if 0x80 <= head < 0xC0:
            return STRINGS[head - 0x80]
        if head >= 0xE0:
            return self.earlier_values[self.number(head - 0xE0)]
        if head == 0x70 or 0xC0 <= head:
            return self.digits(head).hex()
        if head < 0x60:
            text = self.texts.take(head).decode()
        elif head == 0x72:
            text = self.texts.take(self.heads.leb128() + 96).decode()
        elif head == 0x73:
            text = self.text_with_runs()
        else:
            text = self.digits(head).hex()
        if 4 <= len(text.encode()) <= 64 and len(self.earlier_values) < 530_432:
            self.earlier_values.append(text)
        return text

    def digits(self, head):
        """The bytes of digits."""
        if head == 0x70:
            key = self.keys.take(32)
            self.number_key(key)
            return key
        if 0xC0 <= head < 0xE0:
            return self.earlier_keys[self.number(head - 0xC0)]
        assert 0x60 <= head <= 0x71, "a head of digits"
        return self.texts.take(head - 0x5F if head < 0x70 else self.heads.leb128() + 17)

    def text_with_runs(self):
        text = b""
        for _ in range(self.heads.leb128()):
            text += self.texts.take(self.heads.leb128())
            text += self.digits(self.heads.byte()).hex().encode()
        return (text + self.texts.take(self.heads.leb128())).decode()

    def number(self, high):
        """The number of an earlier key or value, after its head."""
        if high < 24:
            return high << 8 | self.heads.byte()
        return 6_144 + ((high - 24) << 16 | self.heads.byte() << 8 | self.heads.byte())


def event_id(event, is_escaped):
    """The hash of the canonical form."""
    fields = [0, event["pubkey"].hex(), event["created_at"], event["kind"], event["tags"], event["content"]]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    if not is_escaped:
        text = re.sub(r"(\\*)\\u00([01][0-9a-f])", verbatim, text)
    return hashlib.sha256(text.encode()).digest()


def verbatim(escape):
    """A control character, unless an even number of backslashes before the `u` makes it text."""
    before, digits = escape[1], escape[2]
    return escape[0] if len(before) % 2 else before + chr(int(digits, 16))
