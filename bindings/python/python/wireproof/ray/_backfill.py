"""A backfill on a cluster: processes of `wireproof backfill` that share an archive, its ledger and the leases of its lists.

A task starts a process, and does not call the library (`Backfill` of the crate `backfill`) in its worker:

- A lease names a process, whose locked file says that it lives. The end of the process, by whatever, ends all of its work and unlocks the
  file, and other processes of the machine take its lists over at once. A worker of Ray lives on after a task.
- The library call runs to its end. Ending the process cancels it at any time, and the ledger makes that safe.
- If the process runs out of memory, the worker is still there, counts the attempt, and says why. The memory of the table of accounts
  goes back to the machine at the end.
- A machine without Ray joins with the same command. `arguments` are its arguments, and its exit codes and messages say how it ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, field

from .._command import program
from ..archive import Archive
from ._run import ClusterError, check

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass(frozen=True)
class Backfill:
    """What a backfill has done.

    Attributes:
        status: what the ledger says at the end, of all runs of this name: the document of `wireproof backfill status --json`.
        tasks: number of tasks that shared the work, each with a process of the command.
        attempts: number of processes that this run began.
        lost: number of them that ended early, or whose worker did.
        duplicates: number of rows of `snapshots` that repeat a revision of an account: of backfills alone 0, whatever ended.
        messages: the last line of each process whose exit code was 1 or 3, each text once: repositories were refused, or lists and
            accounts could not be read. `status` has them.
    """

    status: dict[str, Any]
    tasks: int
    attempts: int
    lost: int
    duplicates: int
    messages: list[str]


@dataclass(frozen=True)
class Work:
    """What the processes are called with. Lines are put into files that each process has for itself."""

    archive: str
    name: str
    hosts: tuple[str, ...] | None
    dids: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    arguments: tuple[str, ...]

    def lines(self, first_host: int) -> dict[str, tuple[str, ...]]:
        """The lines of the files, by the option that names the file. The hosts begin with this one."""
        hosts = self.hosts and self.hosts[first_host:] + self.hosts[:first_host]
        files = {"--hosts": hosts, "--dids": self.dids, "--exclude": self.exclude}
        return {option: lines for option, lines in files.items() if lines is not None}


def run(work: Work, tasks: int | None, concurrent_lists: int | None, attempts: int, timeout_seconds: float) -> Backfill:
    """Runs processes on the cluster to which Ray is connected, until each has found nothing left to do."""
    import ray  # type: ignore

    check(attempts, timeout_seconds)
    count = max(1, int(ray.cluster_resources().get("CPU", 1))) if tasks is None else tasks
    if count < 1:
        raise ValueError("argument 'tasks': expected at least 1")
    processes = _Processes(work, count, concurrent_lists or _share(work.hosts, count), attempts, timeout_seconds)
    try:
        processes.run()
    finally:
        processes.cancel()
    return Backfill(
        status=_status(work),
        tasks=count,
        attempts=processes.attempts.total(),
        lost=processes.lost,
        duplicates=_duplicates(work.archive),
        messages=sorted(processes.messages),
    )


def _share(hosts: tuple[str, ...] | None, tasks: int) -> int:
    """Number of lists that each process reads at a time, so that all are shared evenly from the start, if the hosts are known."""
    return MAX_LISTS if hosts is None else min(MAX_LISTS, max(1, -(-len(hosts) // tasks)))


@dataclass
class _Processes:
    """The processes of a run, each of which a task of Ray starts and waits for."""

    work: Work
    count: int
    lists: int
    max_attempts: int
    timeout_seconds: float
    #: Numbers of processes under way, by the reference of their task.
    pending: dict[Any, int] = field(default_factory=dict)
    #: Number of attempts by number of the process.
    attempts: Counter[int] = field(default_factory=Counter)
    lost: int = 0
    messages: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Begins all, and waits for their ends."""
        import ray

        deadline = time.monotonic() + self.timeout_seconds
        for number in range(self.count):
            self._begin(number)
        while self.pending:
            if time.monotonic() > deadline:
                raise ClusterError(f"not done after {self.timeout_seconds:g} s: the same call goes on")
            ready, _ = ray.wait(list(self.pending), num_returns=1, timeout=1)
            for reference in ready:
                self._end(reference)

    def _begin(self, number: int) -> None:
        """Begins a task. Ray does not repeat it: the run does, and counts."""
        import ray

        self.attempts[number] += 1
        first_host = number * len(self.work.hosts or ()) // self.count
        task = ray.remote(do).options(max_retries=0, num_cpus=1, scheduling_strategy="SPREAD")
        self.pending[task.remote(self.work, first_host, self.lists)] = number

    def _end(self, reference: Any) -> None:
        import ray

        number = self.pending.pop(reference)
        try:
            code, said = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            self._lose(number, str(error).splitlines()[0])
            return
        if code == USAGE:
            raise ValueError("\n".join(said))
        last = said[-1] if said else ""
        if code in (REFUSED, UNREAD):
            self.messages.add(last)
        elif code != DONE:
            self._lose(number, f"exit code {code}: {last}")

    def _lose(self, number: int, why: str) -> None:
        self.lost += 1
        if self.attempts[number] >= self.max_attempts:
            raise ClusterError(f"process {number}: {self.max_attempts} of {self.max_attempts} attempts failed: {why}")
        self._begin(number)

    def cancel(self) -> None:
        """Cancels the tasks that are under way."""
        import ray

        for reference in self.pending:
            ray.cancel(reference, force=True)


def do(work: Work, first_host: int, concurrent_lists: int) -> tuple[int, list[str]]:
    """Runs a process of the command to its end: its exit code, and the last lines that it printed."""
    command = [*program(), "backfill", "--to", work.archive, "--name", work.name]
    command += ["--concurrent-lists", str(concurrent_lists), *work.arguments]
    with contextlib.ExitStack() as opened:
        descriptors = []
        for option, lines in work.lines(first_host).items():
            # A file without a name: of a worker that is killed nothing is left.
            file = opened.enter_context(tempfile.TemporaryFile())
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            file.seek(0)
            descriptors.append(file.fileno())
            command += [option, f"/dev/fd/{file.fileno()}"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            preexec_fn=_ending_with(os.getpid()),
        )
        try:
            return _follow(process)
        finally:
            process.kill()
            process.wait()


def _follow(process: subprocess.Popen[bytes]) -> tuple[int, list[str]]:
    """Passes on what a process prints, and returns its exit code and its last lines."""
    printed = process.stderr
    assert printed
    last: deque[str] = deque(maxlen=MAX_LINES)
    while line := printed.readline(MAX_LINE_BYTES):
        text = line.decode(errors="replace").rstrip()
        print(text, file=sys.stderr, flush=True)
        last.append(text)
    return process.wait(), list(last)


def _ending_with(parent: int) -> Callable[[], None]:
    """What a new process does before its program: it lets Linux kill it when its parent ends, so that the process of a worker that
    is killed does not go on beside the one that replaces it."""
    control = getattr(ctypes.CDLL(None), "prctl", None)

    def end_with_parent() -> None:
        if control is not None:
            control(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return end_with_parent


def _status(work: Work) -> dict[str, Any]:
    """What the ledger says."""
    command = [*program(), "backfill", "status", work.archive, "--name", work.name, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=STATUS_SECONDS, check=False)
    if ended.returncode != 0:
        raise ClusterError(ended.stderr.strip())
    return json.loads(ended.stdout)


def _duplicates(archive: str) -> int:
    """Number of rows of `snapshots` beyond one for each revision of an account."""
    opened = Archive(archive)
    if "snapshots" not in opened.tables():
        return 0
    import duckdb  # type: ignore
    import pyarrow  # type: ignore

    rows = pyarrow.RecordBatchReader.from_stream(opened.scan("snapshots", ["did", "rev"]))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        [(count, distinct)] = connection.execute(COUNT_REVISIONS).fetchall()
    return int(count - distinct)


COUNT_REVISIONS = (
    "SELECT coalesce(sum(n), 0), count(*) FROM (SELECT count(*) AS n FROM rows GROUP BY did, rev)"
)

#: Exit codes of the command.
DONE, REFUSED, USAGE, UNREAD = 0, 1, 2, 3

#: Lists that a process of the command reads at a time by default.
MAX_LISTS = 32

#: Lines of a process that are kept, and the part of a line that is read at a time.
MAX_LINES, MAX_LINE_BYTES = 10, 4096

#: Time within which the ledger must be read.
STATUS_SECONDS = 3600

#: The request to get a signal when the parent ends: `prctl(2)`.
PR_SET_PDEATHSIG = 1
