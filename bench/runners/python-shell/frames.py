"""The task `decode`, for decoders that return Python's own types."""

from collections import Counter

from corpora import read_frames
from shell import log_refusal


class Frames:
    """`decode_frame` returns the values of the blocks of a frame."""

    def __init__(self, decode_frame, files):
        self.decode_frame = decode_frame
        self.frames = [frame for path in files for frame in read_frames(path)]
        self.units = len(self.frames)
        self.bytes = sum(map(len, self.frames))

    def prove(self):
        counts = Counter(dict.fromkeys(COUNTS, 0), frames=len(self.frames), errors=0)
        for index, frame in enumerate(self.frames):
            try:
                counts.update(count(self.decode_frame(frame)))
            except Exception as refusal:
                counts['errors'] += 1
                log_refusal(index, counts['errors'], refusal)
        return counts

    def run(self):
        """Keeps each frame's values until those of the next frame exist; the interpreter removes no work."""
        decode_frame, values = self.decode_frame, None
        for frame in self.frames:
            try:
                values = decode_frame(frame)
            except Exception:
                values = None  # counted by `prove`
        del values


def count(blocks):
    """Counts the items in the blocks of one frame. Walks without recursion, to any depth that the library accepts."""
    counts = dict.fromkeys(COUNTS, 0)
    counts['blocks'] = len(blocks)
    waiting = list(blocks)
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            counts['maps'] += 1
            counts['map_entries'] += len(value)
            counts['text_bytes'] += sum(map(utf8_len, value))
            waiting.extend(value.values())
        elif kind is list:
            counts['arrays'] += 1
            counts['array_items'] += len(value)
            waiting.extend(value)
        elif kind is str:
            counts['text_bytes'] += utf8_len(value)
        elif kind in NAMES:
            counts[NAMES[kind]] += 1
    return counts


def utf8_len(text):
    return len(text.encode())


NAMES = {int: 'integers', float: 'floats', bool: 'booleans', type(None): 'nulls'}

# Neither `links` nor `byte_string_bytes`: libipld's types, which both peers return, are plain `bytes` for both kinds.
COUNTS = ('blocks', 'maps', 'map_entries', 'arrays', 'array_items', 'text_bytes', *NAMES.values())

# The messages whose payload has blocks.
WITH_BLOCKS = frozenset(('#commit', '#sync'))
