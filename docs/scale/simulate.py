"""Simulates a backfill of the whole network by many processes, from measured times: where more of them no longer help, and why.

    python docs/scale/simulate.py            prints the tables of docs/scale.md
    python docs/scale/simulate.py --write    puts them into the page

It computes with `measured.json`, which `measure.py` writes, and with the assumptions in `World`.

The unit of work is a page of 1,000 accounts of a host, as in `wireproof backfill`. A process has some lists at a time, and the
pages of a list follow one another. A page needs

    pace         a request for each account, at the rate that the host allows
    processor    the measured time for its repositories and bytes, of its process
    network      its bytes, compressed, of the bandwidth of all processes
    commits      an entry of a table's log for each part of 128 MiB: one process at a time adds the next one
    log          a request of every process for each of these entries

and ends with the slowest of them. What is shared is served in the order of the requests.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import re
import statistics
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class World:
    """What is assumed of the network, of the store, and of the machines."""

    #: Accounts of each large host, and of each small one.
    large_hosts: int = 86
    large_host_accounts: int = 490_000
    small_hosts: int = 2_000
    small_host_accounts: int = 430
    repository_bytes: int = 481_000
    #: Size on the wire by size.
    compression: float = 0.39
    #: Requests a second that a host allows.
    host_limit: float = 10
    #: Bytes a second of all processes together.
    network_bytes: float = 10e9 / 8
    #: Seconds of a request to the store, and requests a second that it answers for one log.
    request_seconds: float = 0.1
    requests_per_second: float = 5_500
    #: Bytes of repositories that are stored together.
    part_bytes: int = 128 << 20

    def hosts(self) -> list[int]:
        """The number of accounts of each host, the largest first."""
        return [self.large_host_accounts] * self.large_hosts + [self.small_host_accounts] * self.small_hosts

    def repositories(self) -> int:
        return sum(self.hosts())

    def parts(self, accounts: int) -> int:
        """Number of commits for the accounts of a page."""
        return math.ceil(accounts * self.repository_bytes / self.part_bytes)


@dataclass(frozen=True)
class Costs:
    """What a process needs, by the measurement."""

    #: Seconds of a processor for a repository, and for a byte of it.
    repository_seconds: float
    byte_seconds: float
    #: Seconds of a processor for an account whose revision the archive has.
    present_seconds: float
    #: Seconds in which an entry of a log is read from a folder.
    entry_seconds: float

    @classmethod
    def of(cls, measured: dict[str, Any]) -> Costs:
        """The costs by repositories of two sizes."""
        small, large = measured["compared"], measured["large"]
        small_seconds = statistics.median(small["single_processor_seconds"]) / small["repositories"]
        large_seconds = statistics.median(large["processor_seconds"]) / large["repositories"]
        small_bytes, large_bytes = (of["bytes"] / of["repositories"] for of in (small, large))
        byte_seconds = (large_seconds - small_seconds) / (large_bytes - small_bytes)
        return cls(
            repository_seconds=small_seconds - byte_seconds * small_bytes,
            byte_seconds=byte_seconds,
            present_seconds=small["present_processor_seconds"] / small["repositories"],
            entry_seconds=measured["log"]["seconds"] / measured["log"]["entries"],
        )

    def seconds(self, accounts: int, world: World) -> float:
        """Seconds of a processor for repositories of the mean size."""
        return accounts * (self.repository_seconds + self.byte_seconds * world.repository_bytes)


@dataclass(frozen=True)
class Outcome:
    """What came of a simulated sweep: its seconds, and the share of them in which the busiest of each resource worked."""

    seconds: float
    busy: dict[str, float]

    @property
    def limit(self) -> str:
        """The resource that decides."""
        return max(self.busy, key=lambda name: self.busy[name])


@dataclass
class Resource:
    """What serves one page after the other."""

    free_at: float = 0
    busy: float = 0

    def serve(self, now: float, seconds: float) -> float:
        """The end of a service that is requested now."""
        self.free_at = max(self.free_at, now) + seconds
        self.busy += seconds
        return self.free_at


def simulate(world: World, costs: Costs, processes: int) -> Outcome:
    """The first sweep over all lists."""
    waiting = deque(world.hosts())
    lists_at_a_time = min(MAX_LISTS, -(-len(waiting) // processes))
    free = deque(process for _ in range(lists_at_a_time) for process in range(processes))
    network, commits, log = Resource(), Resource(), Resource()
    processors = [Resource() for _ in range(processes)]
    #: Pages that begin: when, a number for the order, the process, the accounts that are left of the list.
    pages: list[tuple[float, int, int, int]] = []
    now, number = 0.0, 0
    while waiting or pages:
        while waiting and free:
            heapq.heappush(pages, (now, number := number + 1, free.popleft(), waiting.popleft()))
        now, _, process, left = heapq.heappop(pages)
        if left == 0:
            free.append(process)
            continue
        accounts = min(PAGE_ACCOUNTS, left)
        wire_bytes = accounts * world.repository_bytes * world.compression
        parts = world.parts(accounts)
        done = max(
            now + accounts / world.host_limit,
            processors[process].serve(now, costs.seconds(accounts, world)),
            network.serve(now, wire_bytes / world.network_bytes),
            commits.serve(now, parts * REQUESTS_OF_A_COMMIT * world.request_seconds),
            log.serve(now, parts * processes / world.requests_per_second),
        )
        heapq.heappush(pages, (done, number := number + 1, process, left - accounts))
    busy = {
        "pace of the largest host": max(world.hosts()) / world.host_limit,
        "processors": max(processor.busy for processor in processors),
        "network": network.busy,
        "commits": commits.busy,
        "reads of the log": log.busy,
    }
    return Outcome(now, {name: seconds / now for name, seconds in busy.items()})


def lease_requests(world: World, processes: int) -> float:
    """Requests a second for leases when the small hosts are done: who has no list asks for each of the others every 15 s."""
    idle = max(0, processes - world.large_hosts)
    return idle * world.large_hosts * REQUESTS_OF_A_REFUSED_LEASE / POLL_SECONDS


def revisions_gib(world: World, processes: int) -> float:
    """Memory of all processes for the revisions of the archive's accounts."""
    return processes * world.repositories() * REVISION_BYTES / 2**30


def arithmetic(world: World, costs: Costs) -> str:
    """What the whole network needs, one resource at a time."""
    count = world.repositories()
    parts = sum(world.parts(min(PAGE_ACCOUNTS, accounts)) * -(-accounts // PAGE_ACCOUNTS) for accounts in world.hosts())
    wire = count * world.repository_bytes * world.compression
    pace = world.large_hosts * world.host_limit
    commits = parts * REQUESTS_OF_A_COMMIT * world.request_seconds / HOUR
    rows = [
        ("repositories", f"{count / 1e6:.1f} million of {world.large_hosts + world.small_hosts:,} hosts"),
        ("bytes", f"{count * world.repository_bytes / 1e12:.1f} TB, {wire / 1e12:.1f} TB on the wire"),
        ("pace of the largest host", f"{world.large_host_accounts / world.host_limit / HOUR:.1f} h, whatever the processes"),
        ("all large hosts at once", f"{pace:,.0f} repositories/s, {pace * wire / count * 8 / 1e9:.2f} Gbit/s"),
        ("processors", f"{costs.seconds(count, world) / HOUR:.0f} core-hours"),
        ("network at 10 Gbit/s", f"{wire / world.network_bytes / HOUR:.1f} h"),
        ("commits of a table", f"{parts:,}, one after the other: {commits:.1f} h"),
        ("reading the log of a table", f"{parts * costs.entry_seconds:.0f} s of a processor, of each process"),
        ("a second run, where nothing has changed", f"{count * costs.present_seconds / 60:.0f} min of a processor"),
    ]
    return table(["resource", "for the whole network"], rows)


def simulated(worlds: dict[str, World], costs: Costs) -> str:
    """The sweeps, by the number of processes."""
    text = ""
    for title, world in worlds.items():
        rows = []
        for processes in PROCESSES:
            outcome = simulate(world, costs, processes)
            rate = world.repositories() / outcome.seconds
            share = f"{outcome.limit}, {100 * outcome.busy[outcome.limit]:.0f} %"
            asked = f"{lease_requests(world, processes):,.0f}"
            memory = f"{revisions_gib(world, processes):,.0f} GiB"
            rows.append((f"{processes:,}", f"{outcome.seconds / HOUR:.1f} h", f"{rate:,.0f}", share, asked, memory))
        heads = ["processes", "time", "repositories/s", "busiest", "requests/s for leases", "memory for revisions"]
        text += f"{title}:\n\n{table(heads, rows)}\n"
    return text.rstrip("\n") + "\n"


def measurement(measured: dict[str, Any], costs: Costs) -> str:
    """What was measured."""
    compared, large, log = measured["compared"], measured["large"], measured["log"]
    rows = [
        ("one process", _spread(compared["single_seconds"], "s")),
        (f"`wireproof.ray.backfill`, {compared['tasks']} tasks: the call", _spread(compared["ray_call_seconds"], "s")),
        ("the program with it, from `import ray` on", _spread(compared["ray_program_seconds"], "s")),
        ("program with Ray to one process, medians", f"{compared['ratio']:.3f}"),
        ("processor, a repository", f"{1e3 * costs.repository_seconds:.2f} ms"),
        ("… and its bytes", f"{1 / costs.byte_seconds / 1e6:.0f} MB/s"),
        ("processor, an account that is stored already", f"{1e6 * costs.present_seconds:.0f} µs"),
        ("an entry of a log, read from a folder", f"{1e6 * costs.entry_seconds:.0f} µs"),
    ]
    sizes = [of["bytes"] / of["repositories"] / 1e3 for of in (compared, large)]
    lines = [
        f"{measured['date']}, {measured['processor']}, load {measured['load']} at the start; build: {measured['build']}.",
        f"{compared['repositories']:,} repositories of {sizes[0]:.0f} kB on {compared['hosts']} simulated hosts, which share the",
        f"processors; {len(compared['single_seconds'])} runs of each, in turn. Processor times also by {large['repositories']} repositories of",
        f"{sizes[1]:.0f} kB, and a log of {log['entries']:,} entries.",
    ]
    return "\n".join(lines) + "\n\n" + table(["", "median (all)"], rows)


def _spread(values: list[float], unit: str) -> str:
    return f"{statistics.median(values):.1f} {unit} ({', '.join(f'{value:.1f}' for value in values)})"


def table(heads: list[str], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(text: str, measured: dict[str, Any]) -> str:
    """A page with the tables between its marks."""
    costs = Costs.of(measured)
    parts = {
        "arithmetic": arithmetic(World(), costs),
        "measured": measurement(measured, costs),
        "simulated": simulated(WORLDS, costs),
    }
    for name, content in parts.items():
        marked = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if not marked.search(text):
            raise ValueError(f"the page has no marks of `{name}`")
        text = marked.sub(lambda found, content=content: f"{found[1]}{content}{found[2]}", text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    measured = json.loads(MEASURED.read_text())
    if options.write:
        PAGE.write_text(page(PAGE.read_text(), measured))
        return
    costs = Costs.of(measured)
    print(arithmetic(World(), costs), measurement(measured, costs), simulated(WORLDS, costs), sep="\n")


FOLDER = Path(__file__).resolve().parent
MEASURED, PAGE = FOLDER / "measured.json", FOLDER.parent / "scale.md"

WORLDS = {
    "With the limits that hosts have": World(),
    "If hosts allowed a hundred times as much": replace(World(), host_limit=1_000),
    "If they did, and a page were one commit": replace(World(), host_limit=1_000, part_bytes=1 << 30),
}

PROCESSES = (1, 4, 16, 64, 250, 1_000)

PAGE_ACCOUNTS = 1_000

#: Lists that a process reads at a time.
MAX_LISTS = 32

#: A commit asks for the next entry, which is missing, and puts it. Records and snapshots are tables of their own.
REQUESTS_OF_A_COMMIT = 2

#: A process that does not get a lease lists the leases and reads the last one; it asks again after this time at most.
REQUESTS_OF_A_REFUSED_LEASE, POLL_SECONDS = 2, 15

#: Bytes of memory for an account: a half of a hash, a revision, and the free places of the table.
REVISION_BYTES = 48

HOUR = 3600

if __name__ == "__main__":
    main()
