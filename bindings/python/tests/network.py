"""A simulated network for tests, and what threads this process has."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Network:
    """A running `wireproof sim serve`."""

    process: subprocess.Popen[str]
    hosts: dict[str, str]
    accounts: list[dict[str, str]]
    #: The arguments with which `follow` and `resolve` use the network.
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def relay(self) -> str:
        return self.hosts["relay0"]

    @property
    def pds(self) -> list[str]:
        return [host for server, host in self.hosts.items() if server.startswith("pds")]

    def end(self) -> dict[str, Any]:
        """Ends the network, and returns its traffic."""
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=20)[0])


def start(command: str, *arguments: str) -> Network:
    """A network whose ports are free ones, with the given arguments of `sim serve`."""
    serve = [command, "sim", "serve", "--port", "0", "--json", "--jetstreams", "0", "--records", "5", *arguments]
    process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    opening = json.loads(process.stdout.readline())
    hosts = {server["server"]: server["host"] for server in opening["servers"]}
    port = int(hosts["pds0"].rsplit(":")[-1])
    return Network(process, hosts, opening["accounts"], {"plc": hosts["plc"], "development_port": port})


def threads() -> int:
    """Number of threads of this process, those that Python does not know included."""
    tasks = "/proc/self/task"
    return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()


def assert_no_thread_is_left(before: int) -> None:
    """Waits shortly: the system removes a thread after it was joined."""
    deadline = time.monotonic() + 2
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before
