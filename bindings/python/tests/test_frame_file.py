"""Captured files are read frame by frame, as the command reads them."""

from __future__ import annotations

import itertools
import json
import operator
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import wireproof
from test_judge import read


def file_of(*frames: bytes) -> bytes:
    return len(frames).to_bytes(4, "big") + b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def test_the_frames_are_those_of_the_file_in_their_order(frames: Path) -> None:
    reader = wireproof.read_frames(frames)
    assert operator.length_hint(reader) == 300
    first = next(reader)
    assert operator.length_hint(reader) == 299
    assert [first, *reader] == read(frames)
    assert list(reader) == [] and next(reader, None) is None


def test_a_judge_finds_what_frames_verify_does(command: str, frames: Path) -> None:
    keys = frames.parent / "accounts.json"
    verify = [command, "frames", "verify", str(frames), "--keys", str(keys), "--json"]
    said = json.loads(subprocess.run(verify, capture_output=True, check=True).stdout)
    judge, reader, codes = wireproof.Judge(json.loads(keys.read_text())), wireproof.read_frames(frames), []
    while batch := list(itertools.islice(reader, 64)):
        codes += [outcome.code for outcome in judge.batch(batch)]
    assert len(codes) == said["frame_count"] == 300 and set(codes) == {"verified"}


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        (b"", 0),
        (b"\0\0\0", 0),
        (b"\0\0\0\1", 4),
        (file_of(b"abc", b"de")[:-1], 11),
        (file_of(b"abc") + b"\0", 11),
        (b"\xff" * 8, 4),
    ],
)
def test_a_file_that_does_not_have_the_frames_that_it_states_is_refused(
    content: bytes, offset: int, tmp_path: Path
) -> None:
    path = tmp_path / "frames.bin"
    path.write_bytes(content)
    with pytest.raises(wireproof.DecodeError, match="frames.bin: ") as refused:
        wireproof.read_frames(path)
    assert (refused.value.code, refused.value.offset) == ("frame/file", offset)


def test_a_missing_file_and_a_wrong_type_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing.bin"):
        wireproof.read_frames(tmp_path / "missing.bin")
    for wrong in (7, b"frames.bin", None):
        with pytest.raises(TypeError, match="^argument 'path': "):
            wireproof.read_frames(wrong)


def test_threads_share_the_frames(tmp_path: Path) -> None:
    path, count = tmp_path / "frames.bin", 5_000
    path.write_bytes(file_of(*(number.to_bytes(4, "big") for number in range(count))))
    reader, taken = wireproof.read_frames(path), [[] for _ in range(4)]
    workers = [threading.Thread(target=lambda into=into: into.extend(reader)) for into in taken]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(itertools.chain(*taken)) == [number.to_bytes(4, "big") for number in range(count)]
    assert all(part == sorted(part) for part in taken)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path, frame = tmp_path / "frames.bin", bytes(64 << 10)
    with path.open("wb") as file:
        file.write((2_000).to_bytes(4, "big"))
        for _ in range(2_000):
            file.write(len(frame).to_bytes(4, "big") + frame)
    program = """
import sys, wireproof
def own_kib():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("RssAnon")).split()[1])
before = own_kib()
count = sum(1 for _ in wireproof.read_frames(sys.argv[1]))
print(count, own_kib() - before)
"""
    printed = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    count, grown_kib = map(int, printed.stdout.split())
    assert count == 2_000 and grown_kib < 8 << 10, grown_kib
