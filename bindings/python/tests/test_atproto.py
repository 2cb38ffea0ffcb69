"""The package `atproto` works on this package as it does on libipld, and refuses what that one does not notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("atproto")

# What one process makes of files of frames and archives with the classes of `atproto`.
PROGRAM = """
import hashlib, json, sys
if sys.argv[1] == "wireproof":
    import wireproof.compat
    wireproof.compat.install()
import libipld
from atproto import CAR, firehose_models, parse_subscribe_repos_message

assert (libipld.__name__ == "wireproof.libipld") == (sys.argv[1] == "wireproof")

def frames(path):
    data, at = open(path, "rb").read(), 4
    for _ in range(int.from_bytes(data[:4], "big")):
        length = int.from_bytes(data[at:at + 4], "big")
        yield data[at + 4:at + 4 + length]
        at += 4 + length

def content(car):
    return repr((str(car.root), sorted((str(cid), repr(block)) for cid, block in car.blocks.items()))).encode()

digest, commits, blocks, failures = hashlib.sha256(), 0, 0, []
for path in sys.argv[2:]:
    if path.endswith(".car"):
        try:
            car = CAR.from_bytes(open(path, "rb").read())
        except ValueError as error:
            failures.append(str(error))
            continue
        digest.update(content(car))
        blocks += len(car.blocks)
        continue
    for data in frames(path):
        frame = firehose_models.MessageFrame.from_bytes(data)
        message = parse_subscribe_repos_message(frame)
        digest.update(repr(message).encode())
        if getattr(message, "blocks", None):
            car = CAR.from_bytes(message.blocks)
            digest.update(content(car))
            blocks += len(car.blocks)
            commits += 1
print(json.dumps({"digest": digest.hexdigest(), "commits": commits, "blocks": blocks, "failures": failures}))
"""


def run(functions: str, *paths: Path) -> dict:
    arguments = [sys.executable, "-c", PROGRAM, functions, *map(str, paths)]
    ended = subprocess.run(arguments, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_its_frames_and_archives_are_the_same_on_both(frames: Path, exported) -> None:
    ours, theirs = (run(functions, frames, exported.path) for functions in ("wireproof", "libipld"))
    assert ours == theirs
    assert ours["commits"] > 100 and ours["blocks"] > 1000 and not ours["failures"]


def test_a_changed_record_is_refused_on_this_package_alone(exported, tmp_path: Path) -> None:
    changed = tmp_path / "changed.car"
    # The last block is a record: another letter of its last text.
    at = len(exported.car) - 1
    while True:
        car = bytearray(exported.car)
        car[at] ^= 1
        changed.write_bytes(car)
        theirs = run("libipld", changed)
        if not theirs["failures"]:
            break
        at -= 1
    assert theirs["blocks"] > 0
    failures = run("wireproof", changed)["failures"]
    assert len(failures) == 1 and "SHA-256" in failures[0]


def test_install_refuses_when_libipld_is_in_use() -> None:
    program = "import libipld, wireproof.compat; wireproof.compat.install()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "RuntimeError: libipld is loaded already" in ended.stderr


def test_install_can_be_called_twice() -> None:
    program = "import wireproof.compat as c; c.install(); c.install(); import libipld; print(libipld.__name__)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "wireproof.libipld\n", ended.stderr
