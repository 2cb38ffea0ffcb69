"""Splits the files of corpora into units."""

import struct
from pathlib import Path


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
