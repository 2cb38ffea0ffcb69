"""Splits a corpus into units, does the work over them and sums up the counts."""

import struct
import sys
from collections import Counter
from pathlib import Path

import decode
import sigs

TOLD_REFUSALS = 5


class Frames:
    """The task `decode`."""

    def __init__(self, variant, files):
        self.decode_frame = decode.VARIANTS[variant]
        self.frames = [frame for path in files for frame in read_frames(path)]
        self.units = len(self.frames)
        self.bytes = sum(map(len, self.frames))

    def prove(self):
        counts = Counter(dict.fromkeys(decode.COUNTS, 0), frames=len(self.frames), errors=0)
        for index, frame in enumerate(self.frames):
            try:
                counts.update(decode.count(self.decode_frame(frame)))
            except Exception as refusal:
                counts['errors'] += 1
                tell(index, counts['errors'], refusal)
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


class Commits:
    """The task `sigs`."""

    def __init__(self, variant, files):
        commits = [commit for path in files for commit in read_commits(path)]
        self.units = len(commits)
        self.bytes = sum(len(commit) for _, commit, _ in commits)
        self.checks = [(curve, prepared(variant, curve, *commit)) for curve, *commit in commits]

    def prove(self):
        counts = dict.fromkeys(('valid_k256', 'valid_p256', 'invalid', 'errors'), 0)
        for index, (curve, check) in enumerate(self.checks):
            try:
                counts[f'valid_{curve}' if check() else 'invalid'] += 1
            except Exception as refusal:
                counts['errors'] += 1
                tell(index, counts['errors'], refusal)
        return {'commits': self.units, **counts}

    def run(self):
        for _, check in self.checks:
            try:
                check()
            except Exception:
                pass  # counted by `prove`


def prepared(variant, curve, commit, point):
    """The measured work of a unit. A unit that cannot be prepared is refused in each pass."""
    try:
        return sigs.PREPARE[variant](curve, commit, point)
    except Exception as refusal:
        return refuse(refusal)


def refuse(refusal):
    def check():
        raise refusal

    return check


def tell(index, errors, refusal):
    if errors <= TOLD_REFUSALS:
        print(f'unit {index} refused: {refusal}', file=sys.stderr)


def read_frames(path):
    """[u32 BE count], then [u32 BE length][frame] for each."""
    file = Path(path).read_bytes()
    (count,) = struct.unpack_from('>I', file)
    offset = 4
    for _ in range(count):
        frame, offset = read_piece(path, file, offset, '>I')
        yield frame
    expect_end(path, file, offset)


def read_commits(path):
    """[u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][key] for each."""
    file = Path(path).read_bytes()
    (count,) = struct.unpack_from('>I', file)
    offset = 4
    for _ in range(count):
        curve = CURVES[file[offset]]
        commit, offset = read_piece(path, file, offset + 1, '>H')
        point, offset = read_piece(path, file, offset, '>H')
        yield curve, commit, point
    expect_end(path, file, offset)


def read_piece(path, file, offset, length_format):
    (length,) = struct.unpack_from(length_format, file, offset)
    start = offset + struct.calcsize(length_format)
    if start + length > len(file):
        raise ValueError(f'{path}: ends inside a unit')
    return file[start : start + length], start + length


def expect_end(path, file, offset):
    if offset != len(file):
        raise ValueError(f'{path}: bytes after the last unit')


CURVES = ('p256', 'k256')
KINDS = {'decode': Frames, 'sigs': Commits}
