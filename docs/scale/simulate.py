"""Simulates a backfill of the whole network by many processes, from measured times: where more of them no longer help, and why.

    python docs/scale/simulate.py            prints the tables
    python docs/scale/simulate.py --write    puts them into docs/scale.md

It computes with `measured.json`, which `measure.py` writes, and with the assumptions below.

The unit of work is a page of 1,000 accounts of a host, as in `wireproof backfill`. A process has some lists at a time, and the pages of
a list follow one another. A page takes the host's pace, and a share of the resources that it has with others:

    host's pace          accounts / limit                         of its list
    network              bytes / rate                             of all processes
    processor            repositories, bytes: measured            of its process
    commit               parts of 128 MiB, a commit each          of all processes: the log of a table has one next entry

Each resource serves pages in the order in which they come, beside the others, so a page ends when the slowest is done.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Costs:
    """What a process needs, by the measurement."""

    #: Seconds of a processor for a repository, and for a byte of it.
    repository_seconds: float
    byte_seconds: float
    #: Seconds for an account whose revision the archive has.
    present_seconds: float
    #: Seconds in which an entry of a log is read and applied.
    entry_seconds: float

    @classmethod
    def of(cls, measured: dict[str, Any]) -> Costs:
        """The costs by repositories of two sizes."""
        small, large = measured["compared"], measured["large"]
        accounts = small["repositories"]
        small_seconds = _median(small["single_processor_seconds"]) / accounts
        large_seconds = _median(large["processor_seconds"]) / large["repositories"]
        small_bytes, large_bytes = (of["bytes"] / of["repositories"] for of in (small, large))
        byte_seconds = max(0.0, large_seconds - small_seconds) / (large_bytes - small_bytes)
        return cls(
            repository_seconds=small_seconds - byte_seconds * small_bytes,
            byte_seconds=byte_seconds,
            present_seconds=small["present_processor_seconds"] / accounts,
            entry_seconds=measured["log"]["seconds"] / measured["log"]["entries"],
        )


@dataclass(frozen=True)
class World:
    """What is assumed of the network and of the store of the archive."""

    large_hosts: int = 86
    large_host_accounts: int = 490_000
    small_hosts: int = 2_000
    small_host_accounts: int = 430
    repository_bytes: int = 481_000
    #: Requests a second that a host allows.
    host_limit: float = 10
    #: Bytes a second of all processes together, as they come over the wire, and their size by that of a repository.
    network_bytes: float = 10e9 / 8
    compression: float = 0.39
    #: Seconds of a request to the store; requests for the entries of one log that it answers a second.
    request_seconds: float = 0.1
    requests_per_second: float = 5_500

    @property
    def hosts(self) -> list[int]:
        """The number of accounts of each host, the largest first."""
        return [self.large_host_accounts] * self.large_hosts + [self.small_host_accounts] * self.small_hosts

    @property
    def repositories(self) -> int:
        return sum(self.hosts)


@dataclass(frozen=True)
class Outcome:
    """What came of a simulated run.

    Attributes:
        seconds: time until the last page is stored.
        busy: share of that time in which the busiest of each kind of resource works, by its name.
        log_reads: requests a second for entries of one log: every process reads every entry.
        lease_requests: requests a second for leases, once half of the lists are done.
        revision_gib: memory for the revisions of all accounts, of all processes.
    """

    seconds: float
    busy: dict[str, float]
    log_reads: float
    lease_requests: float
    revision_gib: float

    @property
    def limit(self) -> str:
        """The name of the resource that decides."""
        return max(self.busy, key=lambda name: self.busy[name])


def simulate(world: World, costs: Costs, processes: int) -> Outcome:
    """A first sweep over all lists."""
    waiting = deque(world.hosts)
    lists_at_a_time = min(MAX_LISTS, max(1, -(-len(waiting) // processes)))
    network, commits, processors = _Resource(), _Resource(), [_Resource() for _ in range(processes)]
    #: Ends of pages: time, a number for the order, process, accounts that its list has left.
    ends: list[tuple[float, int, int, int]] = []
    begun, now = 0, 0.0
    idle = deque(process for _ in range(lists_at_a_time) for process in range(processes))
    half, half_time, hosts_seconds = len(waiting) // 2, 0.0, 0.0
    while waiting or ends:
        while waiting and idle:
            heapq.heappush(ends, (now, begun, idle.popleft(), waiting.popleft()))
            begun += 1
        now, _, process, left = heapq.heappop(ends)
        accounts = min(PAGE_ACCOUNTS, left)
        if accounts == 0:
            idle.append(process)
            half -= 1
            half_time = now if half == 0 else half_time
            continue
        size = accounts * world.repository_bytes
        parts = math.ceil(size / PART_BYTES)
        paced = accounts / world.host_limit
        hosts_seconds = max(hosts_seconds, sum_of_pace(world))
        done = max(
            now + paced,
            network.serve(now, size * world.compression / world.network_bytes),
            processors[process].serve(now, accounts * costs.repository_seconds + size * costs.byte_seconds),
            commits.serve(now, parts * REQUESTS_OF_COMMIT * world.request_seconds),
        )
        heapq.heappush(ends, (done, begun, process, left - accounts))
        begun += 1
    return Outcome(now, {}, 0, 0, 0)
