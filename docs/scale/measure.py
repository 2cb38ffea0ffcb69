"""Measures backfills of a simulated network on this machine: one process and `wireproof.ray.backfill`, in turn.

    python docs/scale/measure.py > docs/scale/measured.json

Needs the package with Ray, `pip install "wireproof[ray]"`, and the command: `WIREPROOF_COMMAND`, or `wireproof` on the path.
`simulate.py` computes with what is measured. Other programs that run meanwhile make the figures less certain: the load of the
machine at the start is among them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wireproof
from wireproof._command import program


@dataclass(frozen=True)
class Network:
    """A running simulated network."""

    process: subprocess.Popen[str]
    plc: str
    hosts: list[str]

    @classmethod
    def start(cls, accounts: int, records: int, hosts: int) -> Network:
        serve = [*program(), "sim", "serve", "--port", "0", "--json", "--jetstreams", "0", "--relays", "0", "--rate", "none"]
        serve += ["--prepared", "0", "--accounts", str(accounts), "--records", str(records), "--pds", str(hosts)]
        process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout
        servers = {server["server"]: server["host"] for server in json.loads(process.stdout.readline())["servers"]}
        return cls(process, servers.pop("plc"), list(servers.values()))

    @property
    def arguments(self) -> list[str]:
        return ["--development", "--plc", self.plc, "--max-rate", "50", "--retry-seconds", "0"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Measured:
    """The time of a run and of its processors in seconds, and what the ledger said at its end."""

    seconds: float
    processor_seconds: float
    status: dict[str, Any]


def alone(network: Network, archive: Path, *arguments: str) -> Measured:
    """One process."""
    listed = archive.parent / "hosts"
    listed.write_text("\n".join(network.hosts))
    command = [*program(), "backfill", "--to", str(archive), "--hosts", str(listed), "--json"]
    # As many as the tasks of a cluster read together.
    command += ["--concurrent-lists", str(min(len(network.hosts), LISTS_OF_A_TASK * (os.cpu_count() or 1)))]
    before, started = os.times(), time.monotonic()
    ended = subprocess.run([*command, *network.arguments, *arguments], check=True, capture_output=True)
    seconds, after = time.monotonic() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(seconds, used, json.loads(ended.stdout))


PROGRAM = """
import json, sys, time
started = time.monotonic()
import ray, wireproof.ray
ray.init(log_to_driver=False, logging_level="error")
begun = time.monotonic()
archive, hosts, arguments = json.load(open(sys.argv[1]))
run = wireproof.ray.backfill(archive, hosts=hosts, arguments=arguments)
ended = time.monotonic()
print(json.dumps({"program": ended - started, "call": ended - begun, "status": run.status, "attempts": run.attempts,
                  "lost": run.lost, "duplicates": run.duplicates}))
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster of Ray on this machine, with a task for each processor."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    @classmethod
    def start(cls, folder: Path) -> Cluster:
        command = [sys.executable, "-m", "wireproof.ray", "up", "--interface", "lo", "--port", "0", "--store-mib", "100"]
        command += ["--token-file", str(folder / "token"), "--temporary", str(folder / "ray")]
        # Ray lets its workers give way to other programs, here to the simulated hosts.
        environment = os.environ | {"RAY_worker_niceness": "0"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout
        return cls(process, json.loads(process.stdout.readline())["address"], folder)

    def backfill(self, network: Network, archive: Path) -> dict[str, Any]:
        """The same work on the cluster."""
        path, call = self.folder / "program.py", self.folder / "call.json"
        path.write_text(PROGRAM)
        call.write_text(json.dumps([str(archive), network.hosts, network.arguments]))
        command = [sys.executable, "-m", "wireproof.ray", "submit", "--address", self.address]
        command += ["--token-file", str(self.folder / "token"), str(path), str(call)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return json.loads(printed.splitlines()[-1])

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def compare(folder: Path, accounts: int, hosts: int, passes: int) -> dict[str, Any]:
    """One process and a cluster in turn, over the same network; then a run that finds everything stored."""
    network, cluster = Network.start(accounts, SMALL_RECORDS, hosts), Cluster.start(folder)
    single, on_ray = [], []
    try:
        for number in range(passes):
            single.append(alone(network, folder / f"single-{number}"))
            on_ray.append(cluster.backfill(network, folder / f"ray-{number}"))
            assert single[-1].status["stored_count"] == on_ray[-1]["status"]["stored_count"] == accounts
            assert (on_ray[-1]["lost"], on_ray[-1]["duplicates"]) == (0, 0)
            print(f"{single[-1].seconds:.1f} s alone, {on_ray[-1]['program']:.1f} s on Ray", file=sys.stderr)
        present = alone(network, folder / "single-0", "--name", "again")
        assert present.status["present_count"] == accounts
    finally:
        cluster.end()
        network.end()
    return {
        "repositories": accounts,
        "hosts": hosts,
        "bytes": single[0].status["byte_count"],
        "tasks": on_ray[0]["attempts"],
        "single_seconds": [round(run.seconds, 2) for run in single],
        "single_processor_seconds": [round(run.processor_seconds, 2) for run in single],
        "ray_call_seconds": [round(run["call"], 2) for run in on_ray],
        "ray_program_seconds": [round(run["program"], 2) for run in on_ray],
        "present_processor_seconds": round(present.processor_seconds, 2),
    }


def large(folder: Path) -> dict[str, Any]:
    """The time of a processor for larger repositories."""
    accounts, hosts = 400, 20
    network = Network.start(accounts, LARGE_RECORDS, hosts)
    try:
        runs = [alone(network, folder / f"large-{number}") for number in range(3)]
    finally:
        network.end()
    return {
        "repositories": accounts,
        "bytes": runs[0].status["byte_count"],
        "processor_seconds": [round(run.processor_seconds, 2) for run in runs],
    }


def log(folder: Path, entries: int) -> dict[str, Any]:
    """The time in which a process reads the log of a table of this many entries, in a folder."""
    [source] = sorted((folder / "single-0/snapshots/_delta_log").glob("*0.json"))[:1]
    first = [json.loads(line) for line in source.read_text().splitlines()]
    table = folder / "long/snapshots/_delta_log"
    table.mkdir(parents=True)
    for version in range(entries):
        (table / f"{version:020}.json").write_text(_entry(first, version))
    started = time.monotonic()
    assert len(wireproof.Archive(folder / "long").files("snapshots")) == entries
    return {"entries": entries, "seconds": round(time.monotonic() - started, 3)}


def _entry(first: list[dict[str, Any]], version: int) -> str:
    """An entry that adds one file of another name; the first one describes the table."""
    name = hashlib.sha256(str(version).encode()).hexdigest()
    lines = []
    for action in first:
        kind, of = next(iter(action.items()))
        if kind == "commitInfo" or version > 0 and kind in ("protocol", "metaData"):
            continue
        named = {"add": lambda: {"path": f"{of['path'].partition('/')[0]}/{name}.parquet"}, "txn": lambda: {"appId": name}}
        lines.append(json.dumps({kind: of | named[kind]() if kind in named else of}))
    return "".join(f"{line}\n" for line in lines)


def processor() -> str:
    """The name of the processor, and how many there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{name}, {os.cpu_count()} processors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--build", default="release", help="how the command was built, for the document [default: release]")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="wp") as temporary:
        folder = Path(temporary)
        compared = compare(folder, options.accounts, options.hosts, options.passes)
        medians = [statistics.median(compared[f"{what}_seconds"]) for what in ("ray_program", "single")]
        document = {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "processor": processor(),
            "build": options.build,
            "load": load,
            "compared": compared | {"ratio": round(medians[0] / medians[1], 3)},
            "large": large(folder),
            "log": log(folder, LOG_ENTRIES),
        }
    print(json.dumps(document, indent=2))


#: Records of a repository.
SMALL_RECORDS, LARGE_RECORDS = 200, 1000

#: Lists that a task reads at a time, if there are as many.
LISTS_OF_A_TASK = 32

#: Entries of a log, of which a backfill of the whole network has ten times as many.
LOG_ENTRIES = 15_000

if __name__ == "__main__":
    main()
