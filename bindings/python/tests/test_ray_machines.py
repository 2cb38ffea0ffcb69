"""`python -m wireproof.ray up` for clusters of several machines: two addresses of a network that only the test has."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("ray")

from clusters import importing, launch, printed, temporary  # noqa: E402

FIRST, SECOND = "10.77.0.1", "10.77.0.2"
ADDRESS = f"{FIRST}:6379"

#: Prepares a network without a way out, and keeps it until its input ends.
NETWORK = f"ip link set lo up && ip address add {FIRST}/32 dev lo && ip address add {SECOND}/32 dev lo && echo ready && cat"


@dataclass(frozen=True)
class Network:
    """A network of its own, with an address for each of two machines."""

    holder: subprocess.Popen[str]
    folder: Path

    def launch(self, *arguments: str) -> subprocess.Popen[str]:
        """Begins the launcher in the network."""
        enter = ["nsenter", "--preserve-credentials", "--user", "--net", "--target", str(self.holder.pid)]
        command, *rest = arguments
        token = ["--token-file", str(self.folder / "token")]
        return launch([command, *token, *rest], importing(), before=enter)

    def up(self, interface: str, *arguments: str) -> subprocess.Popen[str]:
        size = ["--cpus", "1", "--store-mib", "100"]
        return self.launch("up", "--interface", interface, *size, *arguments)

    def begin(self) -> subprocess.Popen[str]:
        return self.up(FIRST, "--any-interface", "--temporary", str(temporary()))


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", NETWORK]
    if not all(shutil.which(program) for program in ("unshare", "nsenter", "ip")):
        pytest.skip("no commands for networks of Linux")
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert holder.stdin and holder.stdout and holder.stderr
    if holder.stdout.readline() != "ready\n":
        pytest.skip(f"no network of its own: {holder.stderr.read()}")
    yield Network(holder, tmp_path)
    holder.stdin.close()
    holder.wait(10)
    shutil.rmtree(temporary(), ignore_errors=True)


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[str]:
    """The address that the launcher prints; it ends in order afterwards."""
    assert process.stdout
    begun = process.stdout.readline()
    assert begun, process.communicate()[1]
    try:
        yield json.loads(begun)["address"]
    finally:
        process.terminate()
        assert process.wait(60) == 0


#: The addresses on which a task ran, of two tasks that need a processor each at one time.
PROGRAM = """
import json, time
import ray
ray.init(log_to_driver=False, logging_level="error")

@ray.remote(num_cpus=1)
class Worker:
    def address(self):
        return ray.util.get_node_ip_address()

workers = [Worker.remote() for _ in range(2)]
print(json.dumps({"addresses": sorted(ray.get([worker.address.remote() for worker in workers], timeout=120))}))
"""


def test_a_machine_joins_and_takes_part(network: Network) -> None:
    program = network.folder / "program.py"
    program.write_text(PROGRAM)
    with ended(network.begin()) as address:
        assert address == ADDRESS
        with ended(network.up(SECOND, "--any-interface", "--join", ADDRESS)) as joined:
            assert joined == ADDRESS
            found = printed(network.launch("submit", "--address", ADDRESS, str(program)))
    assert found == {"addresses": [FIRST, SECOND]}


def test_a_machine_that_listens_on_all_interfaces_is_ended(network: Network) -> None:
    refused = network.up(FIRST, "--temporary", str(temporary()))
    said = refused.communicate(timeout=150)
    assert (refused.returncode, said[0]) == (3, "")
    assert f"not on {FIRST} alone" in said[1]


@pytest.mark.parametrize(
    ("interface", "message"),
    [
        (SECOND, f"--join {ADDRESS}: "),
        ("lo", "--interface lo: machines join over an interface that they share"),
    ],
)
def test_what_cannot_join_is_said(network: Network, interface: str, message: str) -> None:
    token = network.folder / "token"
    token.touch(0o600)
    token.write_text("0" * 64)
    refused = network.up(interface, "--join", ADDRESS)
    assert message in refused.communicate(timeout=60)[1] and refused.returncode == 3


def test_a_machine_needs_the_token(network: Network) -> None:
    refused = network.up(SECOND, "--join", ADDRESS)
    said = refused.communicate(timeout=60)[1]
    assert "copy it to this machine" in said and refused.returncode == 3
    assert not (network.folder / "token").exists()
