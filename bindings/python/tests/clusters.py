"""Clusters of Ray on this machine, and programs on them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wireproof
from wireproof.ray._sockets import descendants


@dataclass(frozen=True)
class Cluster:
    """A cluster that `python -m wireproof.ray up` has begun."""

    process: subprocess.Popen[str]
    address: str
    folder: Path
    environment: dict[str, str]

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    def submit(self, program: str, **options: Any) -> subprocess.Popen[str]:
        """Begins a program that prints a document of JSON at its end."""
        path = self.folder / "program.py"
        path.write_text(PROGRAM.format(program=program))
        arguments = ["submit", "--address", self.address, "--token-file", str(self.token_file), str(path)]
        return launch(arguments, self.environment, **options)

    def run(self, program: str) -> dict[str, Any]:
        """What a program prints."""
        return printed(self.submit(program))

    def join(self, cpus: int) -> subprocess.Popen[str]:
        """Begins another node on this machine, whose program prints a line when it has joined."""
        environment = self.environment | LOOPBACK | {"RAY_AUTH_TOKEN_PATH": str(self.token_file)}
        command = [sys.executable, "-c", NODE, self.address, str(cpus)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0
        shutil.rmtree(temporary(), ignore_errors=True)


PROGRAM = """
import dataclasses, json, os
import ray, wireproof.ray
import cluster_work
ray.init(log_to_driver=False, logging_level="error")
print(json.dumps(dataclasses.asdict({program})))
"""

#: A node as `ray.cluster_utils` begins it. `ray start` joins a cluster on another interface than loopback alone.
NODE = """
import signal, sys
from ray._private.node import Node
from ray._private.parameter import RayParams
parameters = RayParams(
    gcs_address=sys.argv[1], node_ip_address="127.0.0.1", num_cpus=int(sys.argv[2]), object_store_memory=100 << 20,
    include_log_monitor=False, node_manager_port=0, min_worker_port=0, max_worker_port=0,
)
parameters.dashboard_agent_listen_port = None
node = Node(parameters, head=False, shutdown_at_exit=True, spawn_reaper=False)
print("joined", flush=True)
signal.pause()
"""

#: With these each process of Ray demands the token, and takes a loopback address as it is.
LOOPBACK = {"RAY_AUTH_MODE": "token", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def begin(folder: Path, environment: dict[str, str], cpus: int = 2) -> Cluster:
    """Begins a cluster, of which one at a time is used by this process."""
    arguments = ["up", "--interface", "lo", "--port", "0", "--cpus", str(cpus), "--store-mib", "100"]
    arguments += ["--token-file", str(folder / "token"), "--temporary", str(temporary())]
    process = launch(arguments, environment)
    assert process.stdout
    begun = process.stdout.readline()
    assert begun, process.communicate()[1]
    return Cluster(process, json.loads(begun)["address"], folder, environment)


def temporary() -> Path:
    """The folder of a cluster's logs and sockets, whose paths have at most 107 bytes."""
    return Path("/tmp") / f"wireproof-ray-{os.getpid()}"


def importing(**variables: str) -> dict[str, str]:
    """An environment in which processes import the package and the modules of the tests."""
    folders = [str(Path(wireproof.__file__).parents[1]), str(Path(__file__).parent)]
    # Ray lets its workers give way to all other programs, which on a busy machine means that they wait for minutes.
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders), "RAY_worker_niceness": "0"} | variables


def launch(
    arguments: list[str], environment: dict[str, str], before: Sequence[str] = (), **options: Any
) -> subprocess.Popen[str]:
    """Begins the launcher, by another program that is named before it if there is one."""
    command = [*before, sys.executable, "-m", "wireproof.ray", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def printed(program: subprocess.Popen[str], seconds: float = 300) -> dict[str, Any]:
    """The document that a program prints at its end."""
    text, said = program.communicate(timeout=seconds)
    assert program.returncode == 0, said
    # Ray prints of nodes that die, too.
    [document] = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(document)


def processes(root: int, matches: Callable[[str], bool]) -> list[int]:
    """The processes below one whose command line matches."""
    found = []
    for pid in sorted(descendants(root) - {root}):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if matches(line):
            found.append(pid)
    return found


def kill_all(root: int) -> None:
    """Kills a process and all that it has started."""
    for pid in descendants(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(holds: Callable[[], bool], seconds: float = 120) -> None:
    assert wait_at_most(seconds, holds), f"not within {seconds:g} s"


def wait_at_most(seconds: float, holds: Callable[[], bool]) -> bool:
    """Waits for a condition, and returns whether it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
