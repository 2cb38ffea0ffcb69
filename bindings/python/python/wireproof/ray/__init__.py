"""Archives on Ray: filled by a backfill, and their files as work for all machines of a cluster, with one result whatever ends when.

Needs `pip install wireproof[ray]` on all machines. Connect with `ray.init` first; `python -m wireproof.ray up` begins a cluster.

Each file of an archive is one piece of work, and its result is a Parquet file in the folder `to`, whose name the work gives. It is
stored under a name that must be free, so that a worker may end at any time, and a piece may be done twice: one result
is kept. A run that was ended is started again with the same arguments, and does what is missing.

A backfill is processes of the command `wireproof backfill` that share an archive: its ledger says what is done, and its leases let
one of them at a time ask a host.
"""

from __future__ import annotations

import os

from ..archive import Archive
from . import _backfill
from ._backfill import Backfill
from ._run import ClusterError, Run, run
from ._work import Audit, Reverify, Transform

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["Backfill", "ClusterError", "Run", "audit", "backfill", "reverify", "transform"]

TABLES = ("events", "ops", "snapshots", "records", "parts", "part_records", "hidden", "plc_ops", "blobs", "labels")


def backfill(
    archive: str | os.PathLike[str],
    *,
    hosts: Iterable[str] | None = None,
    relay: str | None = None,
    collections: Iterable[str] = (),
    dids: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    contact: str | None = None,
    name: str = "backfill",
    arguments: Iterable[str] = (),
    tasks: int | None = None,
    concurrent_lists: int | None = None,
    attempts: int = 10,
    timeout_seconds: float = 7 * 86_400,
) -> Backfill:
    """Fetch the repositories of all accounts of hosts, verify them, and store them in an archive.

    Each task runs `wireproof backfill` with the same archive and name. A process takes the lease of a host's list before it asks
    the host, so the rate of a host is kept by all of them together, and a process on another machine, with the same archive and
    name and without Ray, shares the work too. Whatever ends, the same call goes on: what is done is in the ledger of the archive.

    Args:
        archive: a folder that all machines have, or an address as of `Archive`. It is created if it is missing.
        hosts: names or URLs of hosts.
        relay: the URL of a relay whose hosts are read, in place of `hosts`; with `collections`, the one that lists their accounts.
        collections: NSIDs: only accounts that have records in them, by the relay.
        dids: only these accounts of the hosts.
        exclude: neither these accounts (DIDs) nor accounts of these hosts (names).
        contact: your e-mail address or a URL, for the operators of the hosts. By default `WIREPROOF_CONTACT` of the workers.
        name: the name of the ledger: another name begins another backfill, which skips what the archive has.
        arguments: further arguments of the command, such as `["--plc-mirror", "/shared/plc.sqlite"]`. Files that they name are on
            all machines.
        tasks: number of processes. By default one for each processor of the cluster.
        concurrent_lists: number of lists that a process reads at a time. By default the hosts by the number of processes, at most
            32.
        attempts: how often a process is begun that ends early, or whose worker does.
        timeout_seconds: how long the run may take.

    A process holds 32 bytes in memory for each account of the archive, and the overhead of the table: for 40 million accounts some
    2 GB. In the folder for temporary files (`TMPDIR`) of its machine lie up to 256 MiB for each list that it reads. Where this
    is too much for a process on each processor, pass the number of machines as `tasks`: a process uses all processors of its
    machine. At the end this program counts the revisions in the archive by DuckDB, which puts on the disk what does not fit in
    memory.

    Returns:
        A `Backfill`. Its `status` has the counts of accounts by what became of them, in all and for each list.

    Raises:
        ClusterError: Ray is not connected, a process ended early in each of its attempts, or the run took too long: the same call
            goes on.
        ArchiveError: the archive cannot be read at the end.
        FileNotFoundError: a worker does not have the command.
        TypeError: an argument that takes several texts is one text.
        ValueError: neither `hosts` nor `relay` is given, or both are; or the message of the command about a wrong argument.
    """
    if (hosts is None) == (relay is None):
        raise ValueError("either 'hosts' or 'relay' is expected")
    listed = ",".join(_texts("collections", collections) or ())
    options = {"--relay": relay, "--collections": listed or None, "--contact": contact}
    named = [argument for option, value in options.items() if value is not None for argument in (option, value)]
    work = _backfill.Work(
        archive=_address(archive),
        name=name,
        hosts=_texts("hosts", hosts),
        dids=_texts("dids", dids),
        exclude=_texts("exclude", exclude),
        arguments=(*named, *(_texts("arguments", arguments) or ())),
    )
    return _backfill.run(work, tasks, concurrent_lists, attempts, timeout_seconds)


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


def _texts(name: str, texts: Iterable[str] | None) -> tuple[str, ...] | None:
    """Several texts, of which one alone would be taken for its letters."""
    if isinstance(texts, str):
        raise TypeError(f"argument '{name}': expected texts, not str")
    return None if texts is None else tuple(texts)
