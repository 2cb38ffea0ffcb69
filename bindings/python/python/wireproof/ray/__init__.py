"""Archives on Ray: their files as work for all machines of a cluster, with one result whatever ends when.

Needs `pip install wireproof[ray]` on all machines. Connect with `ray.init` first; `python -m wireproof.ray up` begins a cluster.

Each file of an archive is one piece of work, and its result is a Parquet file in the folder `to`, whose name the work gives. It is
stored under a name that must be free, so that a worker may end at any time, and a piece may be done twice: one result
is kept. A run that was ended is started again with the same arguments, and does what is missing.
"""

from __future__ import annotations

import os

from ..archive import Archive
from ._run import ClusterError, Run, run
from ._work import Audit, Reverify, Transform

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["ClusterError", "Run", "audit", "reverify", "transform"]

TABLES = ("events", "ops", "snapshots", "records", "hidden", "plc_ops")


def reverify(
    archive: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    policy: Mapping[str, Any] | None = None,
    attempts: int = 3,
    timeout_seconds: float = 3600,
) -> Run:
    """Judge the events of an archive again, each under the key that is stored with it.

    Args:
        archive: a folder that all machines have, or an address as of `Archive`.
        to: the folder or address of the results, which is of this work alone. They have a row for each event, with the columns of
            `wireproof.spark.reverify`.
        policy: options of `wireproof.Judge`, by name. By default none, as in `archive verify`.
        attempts: how often a file is tried whose worker ends, or takes too long.
        timeout_seconds: how long an attempt may take, with the time that it waits for a processor.

    Returns:
        A `Run`. Its `counts` are of `proved`, `compact`, `unverified CODE` and `refused CODE`.

    Raises:
        ClusterError: Ray is not connected, a file failed in each of its attempts, or `to` has results of other work.
        ArchiveError: a file cannot be read or stored.
        TypeError, ValueError: `policy` has an unknown option or a wrong value.
    """
    opened = Archive(archive)
    work = Reverify(_address(archive), dict(policy or {}), opened._erased())
    return run(work, opened.files("events"), _address(to), attempts, timeout_seconds)


def transform(
    archive: str | os.PathLike[str],
    what: str | Callable[[Any], Any],
    to: str | os.PathLike[str],
    *,
    table: str = "ops",
    columns: Sequence[str] | None = None,
    attempts: int = 3,
    timeout_seconds: float = 3600,
) -> Run:
    """Compute something of each file of a table, without what is hidden.

    Args:
        archive: a folder that all machines have, or an address as of `Archive`.
        what: SQL of DuckDB, in which the rows of the file are the table `rows`, or a function from a `pyarrow.Table` to another one. It
            is applied to each file alone: sums of all files are made of the results. The same rows must give the same result in the
            same order: end SQL with `ORDER BY`, and use neither the clock nor chance.
        to: the folder or address of the results, which is of this work alone. A function is known by its module and name: take
            another folder when it has changed.
        table: the table.
        columns: the columns that are read. By default all.
        attempts: how often a file is tried whose worker ends, or takes too long.
        timeout_seconds: how long an attempt may take, with the time that it waits for a processor.

    Returns:
        A `Run`.

    Raises:
        ClusterError: Ray is not connected, a file failed in each of its attempts, or `to` has results of other work.
        ArchiveError: a file cannot be read or stored, or was replaced after the first run began: begin with another folder.
        Exception: what the function or DuckDB raises.
    """
    work = Transform(_address(archive), what, table, None if columns is None else tuple(columns))
    return run(work, Archive(archive).files(table), _address(to), attempts, timeout_seconds)


def audit(
    archive: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    attempts: int = 3,
    timeout_seconds: float = 3600,
) -> Run:
    """Compare every file of an archive with its name and with the log.

    Args:
        archive: a folder that all machines have, or an address as of `Archive`.
        to: the folder or address of the results, which is of this work alone. They have a row for each file: `file`, `bytes`, `rows`,
            `status`, `code` and `message`.
        attempts: how often a file is tried whose worker ends, or takes too long.
        timeout_seconds: how long an attempt may take, with the time that it waits for a processor.

    Returns:
        A `Run`. Its `counts` are of `intact` and `refused CODE`: `archive/file`, if the bytes have another SHA-256 than the name says;
        `archive/parquet`, if they are no Parquet file; `archive/log`, if the log says another size, number of rows or accounts.

    Raises:
        ClusterError: Ray is not connected, a file failed in each of its attempts, or `to` has results of other work.
        ArchiveError: a log or a file cannot be read, or a result not stored.
    """
    opened = Archive(archive)
    files = [file for table in TABLES for file in opened.files(table)]
    return run(Audit(_address(archive)), files, _address(to), attempts, timeout_seconds)


def _address(path: str | os.PathLike[str]) -> str:
    """An address that means the same on every machine and in every folder."""
    address = os.fspath(path)
    return address if "://" in address else os.path.abspath(address)
