"""`wireproof.ray.backfill` while processes of the cluster are killed, by schedules that follow from seeds.

Two schedules by default; `cargo xtask soak ray` runs more, and prints what came of each.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from archives import digest, findings
from backfills import Hosts
from network import start

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("ray")

from clusters import Cluster, begin, importing, kill_all, printed, processes, wait_at_most  # noqa: E402

ACCOUNTS, HOSTS, TASKS = 1600, 32, 3

#: Lists that a process reads at a time, so that it takes several turns to read all.
LISTS = 2

FIRST_SEED = int(os.environ.get("WIREPROOF_RAY_SEED", "1"))
SCHEDULES = int(os.environ.get("WIREPROOF_RAY_SCHEDULES", "2"))


@dataclass
class Run:
    """A backfill on a cluster of two nodes, and what was done to it."""

    hosts: Hosts
    archive: Path
    cluster: Cluster
    nodes: list[subprocess.Popen[str]] = field(default_factory=list)
    programs: list[subprocess.Popen[str]] = field(default_factory=list)
    joined: list[subprocess.Popen[str]] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)
    #: Processes of programs before the last one, which may go on for some time.
    earlier: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """Begins a second node and the program."""
        self.begin_node()
        self.begin_program()

    def begin_node(self) -> None:
        """Begins a second node. On a busy machine Ray may give it up, after 30 s: then it is begun again."""
        for _ in range(3):
            self.nodes.append(node := self.cluster.join(1))
            if node.stdout and "joined\n" in iter(node.stdout.readline, ""):
                return
        raise AssertionError("no second node has joined")

    def schedulers(self) -> list[int]:
        return processes(self.nodes[-1].pid, lambda line: "raylet/raylet" in line)

    def begin_program(self) -> None:
        self.earlier |= {*self.workers(), *self.working()}
        call = self.hosts.call(self.archive, tasks=TASKS, concurrent_lists=LISTS, attempts=20)
        self.programs.append(self.cluster.submit(call, start_new_session=True))

    def is_over(self) -> bool:
        return self.programs[-1].poll() is not None

    def workers(self) -> list[int]:
        """The workers of tasks of the last program."""
        roots = [self.cluster.process, *self.nodes]
        found = [pid for root in roots for pid in processes(root.pid, lambda line: "ray::do" in line)]
        return [pid for pid in found if pid not in self.earlier]

    def working(self) -> list[int]:
        """The processes that tasks of the last program have started, also those of a worker that has survived its scheduler."""
        joined = [process.pid for process in self.joined]
        found = processes(1, lambda line: f"--to {self.archive}" in line)
        return [pid for pid in found if pid not in self.earlier and pid not in joined]

    def disturb(self, kind: str, delay: float, place: float) -> None:
        """Waits until all processes of the last program work, a minute at most, as Ray may take longer to notice that a node is gone;
        then some time. Disturbs the run unless it is over. The place, from 0 to 1, says which of several processes is killed."""
        wait_at_most(60, lambda: self.is_over() or len(self.working()) >= TASKS)
        time.sleep(delay)
        if not self.is_over():
            KINDS[kind](self, place)
            self.disturbances.append(kind)

    def kill_one(self, find: Callable[[], list[int]], place: float) -> None:
        found = find()
        for pid in found[int(place * len(found)) :][:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_scheduler(self) -> None:
        """Kills the scheduler of the second node, whose worker may go on, and begins another node."""
        [scheduler] = self.schedulers()
        os.kill(scheduler, signal.SIGKILL)
        self.begin_node()

    def kill_machine(self) -> None:
        """Kills all of the second node, and begins another one."""
        kill_all(self.nodes[-1].pid)
        self.begin_node()

    def restart_program(self) -> None:
        self.kill_program()
        self.begin_program()

    def restart_head(self) -> None:
        """Kills the first node and the program, and begins a cluster again. What the second node runs meanwhile goes on."""
        self.kill_program()
        kill_all(self.cluster.process.pid)
        self.cluster.process.communicate()
        self.cluster = begin(self.cluster.folder, self.cluster.environment)
        self.begin()

    def kill_program(self) -> None:
        os.killpg(self.programs[-1].pid, signal.SIGKILL)
        self.programs[-1].communicate()

    def join(self) -> None:
        """Begins a process that shares the work without a cluster."""
        self.joined.append(self.hosts.begin(self.archive, "--concurrent-lists", str(LISTS)))

    def end(self) -> None:
        for node in self.nodes:
            kill_all(node.pid)
            node.wait()
        # Those of a worker that has survived its scheduler, whose parent is now the first process.
        for pid in processes(1, lambda line: f"--to {self.archive}" in line):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.joined:
            process.kill()
            process.communicate()
        self.cluster.end()


KINDS = {
    "worker": lambda run, place: run.kill_one(run.workers, place),
    "process": lambda run, place: run.kill_one(run.working, place),
    "scheduler": lambda run, _: run.kill_scheduler(),
    "machine": lambda run, _: run.kill_machine(),
    "program": lambda run, _: run.restart_program(),
    "head": lambda run, _: run.restart_head(),
    "join": lambda run, _: run.join(),
}


def schedule(seed: int) -> list[tuple[str, float, float]]:
    """Each kind of disturbance once, in any order, with the time before it and a place."""
    drawn = random.Random(seed)
    return [(kind, drawn.uniform(0.2, 2), drawn.random()) for kind in drawn.sample(list(KINDS), len(KINDS))]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SCHEDULES))
def test_whatever_is_killed_the_archive_is_that_of_one_undisturbed_process(seed: int, command: str, tmp_path: Path) -> None:
    arguments = ["--accounts", str(ACCOUNTS), "--pds", str(HOSTS), "--prepared", "0", "--rate", "none", "--seed", str(seed)]
    hosts = Hosts(command, network := start(command, *arguments), max_rate=10)
    single, archive = tmp_path / "single", tmp_path / "archive"
    hosts.fetch(single)
    run = Run(hosts, archive, begin(tmp_path, importing()))
    try:
        run.begin()
        for kind, delay, place in schedule(seed):
            run.disturb(kind, delay, place)
        result = printed(run.programs[-1])
        for process in run.joined:
            assert process.wait(60) == 0, process.communicate()[1]
    finally:
        run.end()
        traffic = network.end()
    status = result["status"]
    requests = [of for server in traffic["servers"] for of in server["requests"]]
    fetches = sum(of["count"] for of in requests if of["path"] == "/xrpc/com.atproto.sync.getRepo")
    counts = {name: result[name] for name in ("attempts", "lost", "duplicates")}
    counts |= {"programs": len(run.programs), "fetched_again": fetches - 2 * ACCOUNTS}
    print(json.dumps({"seed": seed, "disturbances": run.disturbances} | counts))
    assert len(run.disturbances) >= 3
    assert (status["account_count"], status["done_list_count"], result["duplicates"]) == (ACCOUNTS, HOSTS, 0)
    assert digest(archive) == digest(single)
    assert findings(command, archive)["proved_snapshot_count"] == ACCOUNTS
