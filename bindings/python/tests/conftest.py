"""What the tests share: the command, and data that it generates."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def command() -> str:
    """The command `wireproof`."""
    found = os.environ.get("WIREPROOF_COMMAND") or shutil.which("wireproof")
    assert found, "the command is neither installed nor named by WIREPROOF_COMMAND"
    return found


@dataclass(frozen=True)
class Exported:
    """A generated repository: its archive, its account, and its key."""

    path: Path
    car: bytes
    did: str
    key: str


@pytest.fixture(scope="session")
def exported(command: str, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(
        [command, "corpus", "generate", "repository", "--records", "300", "--out", str(folder)],
        check=True,
        capture_output=True,
    )
    path = folder / "repository.car"
    described = (folder / "repository.json").read_text()
    did, key = _find(json.loads(described), "did:plc:"), _find(json.loads(described), "did:key:")
    return Exported(path, path.read_bytes(), did, key)


def _find(value: object, prefix: str) -> str:
    """The first text in a JSON document that begins with `prefix`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str) and item.startswith(prefix):
            return item
        if isinstance(item, dict):
            pending.extend(item.values())
        if isinstance(item, list):
            pending.extend(item)
    raise AssertionError(f"no text begins with {prefix}")


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Real data."""
    named = os.environ.get("WIREPROOF_FIXTURES")
    if not named:
        pytest.skip("WIREPROOF_FIXTURES names no folder")
    return Path(named)


@pytest.fixture(scope="session")
def frames(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated frames: their number, then each after its length, in four bytes with the highest first. `accounts.json` beside
    them has the keys."""
    folder = tmp_path_factory.mktemp("frames")
    subprocess.run(
        [command, "corpus", "generate", "frames", "--frames", "300", "--out", str(folder)],
        check=True,
        capture_output=True,
    )
    return folder / "firehose-frames.bin"
