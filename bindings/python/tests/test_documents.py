"""Every program in the README, the guide and the reference runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from network import Network, start
from test_nostr import NOTE

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [
    ROOT / "bindings/python/README.md",
    ROOT / "docs/guide/from-python.md",
    ROOT / "docs/guide/on-a-cluster.md",
    ROOT / "docs/reference/python.md",
]
NEEDS = re.compile(r"^(?:import|from) (atproto|polars|pyarrow|pyspark|ray|duckdb|pandas)", re.MULTILINE)

#: A Ray that listens on loopback alone, and demands a token.
RAY = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0" * 64,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def programs() -> list[pytest.param]:
    found = []
    for document in DOCUMENTS:
        blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
        found += [pytest.param(block, id=f"{document.name}-{number}") for number, block in enumerate(blocks)]
    return found


@pytest.fixture(scope="module")
def network(command: str) -> Iterator[Network]:
    network = start(command, "--accounts", "3", "--prepared", "200", "--rate", "none")
    yield network
    network.end()


def on_this_machine(program: str, network: Network) -> str:
    """The program with a simulated network in the place of the real one, and a Ray of its own on loopback."""
    alone = 'ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, num_cpus=1, object_store_memory=100 << 20)'
    program = program.replace("ray.init()", alone)
    options = ", ".join(f"{name}={value!r}" for name, value in network.options.items())
    simulated = ["--development", "--plc", network.options["plc"]]
    program = program.replace('hosts=["pds.example.com"]', f"hosts={network.pds!r}, arguments={simulated!r}")
    program = program.replace('follow("bsky.network"', f'follow("{network.relay}", cursor="oldest", {options}')
    handle = network.accounts[0]["handle"]
    program = program.replace('deliver("bsky.network", dids=["atproto.com"]', f'deliver("{network.relay}", dids=["{handle}"], cursor="oldest", {options}')
    for function in ("resolve", "verify_account", "verify_account_collections"):
        program = program.replace(f'{function}("atproto.com"', f'{function}("{handle}", {options}')
    return program


@pytest.mark.parametrize("program", programs())
def test_a_program_of_the_documents_runs(
    program: str, command: str, frames: Path, network: Network, tmp_path: Path
) -> None:
    for library in NEEDS.findall(program):
        pytest.importorskip(library)
    if "pyspark" in program and shutil.which("java") is None:
        pytest.skip("java is missing")
    examples = ROOT / "docs/guide/examples"
    for name in ("repository.car", "repository.did.json"):
        shutil.copy(examples / name, tmp_path / name)
    program = on_this_machine(program, network)
    (tmp_path / "events.jsonl").write_text(f"{json.dumps(NOTE)}\n{json.dumps(NOTE | {'kind': 7})}\n")
    for name in ("firehose-frames.bin", "accounts.json"):
        shutil.copy(frames.parent / name, tmp_path / name)
    if '"archive"' in program:
        arguments = ["archive", "import", "firehose-frames.bin", "--keys", "accounts.json", "--to", "archive"]
        subprocess.run([command, *arguments], cwd=tmp_path, check=True, capture_output=True)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable} | (RAY if "ray.init(" in program else {})
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
