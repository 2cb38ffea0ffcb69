"""A run of work on a cluster: one task for each file, tried again when its worker ends."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field

from ._work import begin, do, result_name

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ClusterError(RuntimeError):
    """A cluster could not do the work."""


@dataclass(frozen=True)
class Run:
    """What a run has done.

    Attributes:
        files: number of files, each with one result.
        rows: number of rows of the results.
        counts: rows by what is said of them.
        digest: SHA-256 of the names and hashes of all results: equal for equal work, whatever ended meanwhile.
        attempts: number of tasks that this run began.
        lost: number of them whose worker ended, or that took too long.
        duplicates: number of them that did work that another attempt had stored meanwhile.
        present: number of results that were there when their task began: those of an earlier run, or of an attempt whose worker ended
            after it stored them.
    """

    files: int
    rows: int
    counts: dict[str, int]
    digest: str
    attempts: int
    lost: int
    duplicates: int
    present: int


def run(work: Any, files: list[dict[str, Any]], to: str, attempts: int, timeout_seconds: float) -> Run:
    """Does the work on each file, on the cluster to which Ray is connected."""
    import ray  # type: ignore

    check(attempts, timeout_seconds)

    planned = begin(work, files, to)
    if planned is None:
        raise ClusterError(f"{to} has results of other work: take an empty folder")
    tasks = _Tasks(work, to, attempts, timeout_seconds)
    waiting = planned[::-1]
    # A task for each processor, and as many that wait for one.
    window = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    try:
        while waiting or tasks.pending:
            while waiting and len(tasks.pending) < window:
                tasks.begin(waiting.pop())
            waiting += tasks.next()
    finally:
        tasks.cancel()
    return tasks.run(planned)


def check(attempts: int, timeout_seconds: float) -> None:
    """Checks the limits of a run, and that there is a cluster."""
    import ray

    if attempts < 1:
        raise ValueError("argument 'attempts': expected at least 1")
    if timeout_seconds <= 0:
        raise ValueError("argument 'timeout_seconds': expected more than 0")
    if not ray.is_initialized():
        raise ClusterError("Ray is not connected: call ray.init() first; `python -m wireproof.ray up` begins a cluster")


@dataclass
class _Task:
    file: dict[str, Any]
    deadline: float


@dataclass
class _Tasks:
    """The tasks of a run."""

    work: Any
    to: str
    max_attempts: int
    timeout_seconds: float
    #: Tasks under way, by their reference.
    pending: dict[Any, _Task] = field(default_factory=dict)
    #: What the results are, by their name.
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Number of attempts by file.
    attempts: Counter[str] = field(default_factory=Counter)
    lost: int = 0

    def begin(self, file: dict[str, Any]) -> None:
        """Begins a task. Ray does not repeat it: the run does, and counts."""
        import ray

        self.attempts[file["path"]] += 1
        task = ray.remote(do).options(max_retries=0, num_cpus=1)
        reference = task.remote(self.work, file, self.to)
        self.pending[reference] = _Task(file, time.monotonic() + self.timeout_seconds)

    def next(self) -> list[dict[str, Any]]:
        """Waits for a task, at most a second, and returns the files that are to be tried again."""
        import ray

        again = []
        ready, _ = ray.wait(list(self.pending), num_returns=1, timeout=1)
        for reference in ready:
            again += self._end(reference)
        now = time.monotonic()
        for reference, task in list(self.pending.items()):
            if task.deadline < now:
                ray.cancel(reference, force=True)
                del self.pending[reference]
                again.append(self._lose(task.file, f"no result after {self.timeout_seconds:g} s"))
        return again

    def _end(self, reference: Any) -> list[dict[str, Any]]:
        import ray

        task = self.pending.pop(reference)
        try:
            result = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            # What the work itself raised would be raised again.
            raise error.cause from error
        except ray.exceptions.RayError as error:
            return [self._lose(task.file, str(error).splitlines()[0])]
        self.done[result["name"]] = result
        return []

    def _lose(self, file: dict[str, Any], why: str) -> dict[str, Any]:
        self.lost += 1
        count = self.attempts[file["path"]]
        if count >= self.max_attempts:
            raise ClusterError(f"{file['path']}: {count} of {self.max_attempts} attempts failed: {why}")
        return file

    def cancel(self) -> None:
        """Cancels the tasks that are under way."""
        import ray

        for reference in self.pending:
            ray.cancel(reference, force=True)

    def run(self, files: list[dict[str, Any]]) -> Run:
        """What was done."""
        results = [self.done[result_name(self.work, file)] for file in files]
        lines = sorted(f"{result['name']} {result['sha256']}\n" for result in results)
        counts: Counter[str] = Counter()
        for result in results:
            counts.update(result["counts"])
        states = Counter(result["state"] for result in results)
        return Run(
            files=len(files),
            rows=sum(result["rows"] for result in results),
            counts=dict(sorted(counts.items())),
            digest=hashlib.sha256("".join(lines).encode()).hexdigest(),
            attempts=self.attempts.total(),
            lost=self.lost,
            duplicates=states["duplicate"],
            present=states["present"],
        )
