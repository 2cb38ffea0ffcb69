"""Functions that the tests let a cluster do: importable by its processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wireproof.ray._work import Reverify


def die_once(marker: str, pid: int) -> None:
    """Kills a process, unless that was done before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(pid, signal.SIGKILL)


def kills_its_executor(marker: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow` that passes batches on, and once kills the executor of its process."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            die_once(marker, executor())
            yield batch

    return pass_on


def executor() -> int:
    """The process of Java that started this one."""
    pid = os.getpid()
    while "CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_text():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


class KillsItsWorker(Reverify):
    """As `Reverify`, but the worker that does it first is killed before its result is stored."""

    def result(self, file: dict[str, Any]) -> Any:
        verdicts = super().result(file)
        die_once(os.environ["WIREPROOF_TEST_MARKER"], os.getpid())
        return verdicts


class AlwaysDies(Reverify):
    """As `Reverify`, but no worker survives it."""

    def result(self, file: dict[str, Any]) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def slowly(rows: Any) -> Any:
    """The rows, after some time."""
    time.sleep(0.5)
    return rows


def fails(rows: Any) -> Any:
    """Nothing."""
    raise ValueError(f"{rows.num_rows} rows are of no use")


@dataclass(frozen=True)
class Raised:
    """What calls have raised."""

    messages: list[str]


def raised(*calls: Callable[[], Any]) -> Raised:
    """Makes calls, each of which must raise."""
    messages = []
    for call in calls:
        try:
            call()
        except (RuntimeError, ValueError) as error:
            messages.append(f"{type(error).__name__}: {error}")
        else:
            raise AssertionError(f"call {len(messages)} raises nothing")
    return Raised(messages)
