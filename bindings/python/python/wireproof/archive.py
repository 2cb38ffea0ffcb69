"""Archives of verified history: their tables as Arrow record batches."""

from __future__ import annotations

import os

from ._wireproof import ArchiveReader, RecordBatchStream

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._types import Time

__all__ = ["Archive"]


class Archive:
    """An archive in a folder or an object store, as `wireproof archive` writes it.

    Args:
        uri: a folder as `str` or `os.PathLike`, or an address: `file://`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
            `az://CONTAINER/PREFIX`. Credentials are read from the environment, as by the tools of each store.

    Raises:
        ArchiveError: an `OSError` with a `code`. `archive/missing`: there is no archive. `archive/address`: it is no address of
            one. `archive/settings`: the environment has unusable settings of the store. `archive/store`, `archive/io`: a file
            cannot be read. `archive/log`, `archive/log-gap`, `archive/log-shorter`, `archive/protocol`: the log of a table is
            not whole. `archive/link`: a symbolic link in the archive. `archive/parquet`, `archive/file`,
            `archive/decoded-size`: a file does not have what it should.
        TypeError: `uri` is neither text nor a path.

    Other Python threads run while it reads. It can be used by several threads, pickled (as its address), and used after a
    `fork`, in which a new connection is made.

        >>> import wireproof
        >>> try:
        ...     wireproof.Archive("no/such/folder")
        ... except OSError as error:
        ...     print(error.code)
        archive/missing
    """

    def __init__(self, uri: str | os.PathLike[str]) -> None:
        path = os.fspath(uri)
        if not isinstance(path, str):
            raise TypeError(f"argument 'uri': expected str or os.PathLike[str], not {type(path).__name__}")
        self._uri = path
        self._process = os.getpid()
        self._reader = ArchiveReader(path)

    @property
    def uri(self) -> str:
        """The address that was given."""
        return self._uri

    def tables(self) -> list[str]:
        """The names of the tables that have a row: some of `events`, `ops`, `snapshots`, `records`, `parts`, `part_records`,
        `hidden`, `plc_ops`, `blobs` and `labels`.

        Raises:
            ArchiveError: a log cannot be read.
        """
        return self._open().tables()

    def stats(self) -> dict[str, dict[str, Any]]:
        """The size of each table, from its log: no row is read.

        Returns:
            For the name of each table a dict of `rows`, `files`, `bytes` (of the files), `versions` (entries of the log), and
            `first_day` and `last_day` of the rows as `YYYY-MM-DD`, or None for a table without rows.

        Raises:
            ArchiveError: a log cannot be read.
        """
        return self._open().stats()

    def files(self, table: str) -> list[dict[str, Any]]:
        """The files of a table, from its log, sorted by path: how programs divide the work on an archive.

        Args:
            table: its name.

        Returns:
            For each file a dict of `path` within the archive, `bytes`, `rows`, `day` (`YYYY-MM-DD` or None) and `dids`, the first and
            the last account, or None. A file is never changed, but `archive compact` can replace it at any time.

        Raises:
            ArchiveError: the log cannot be read.
            ValueError: there is no such table.
        """
        return self._open().files(table)

    def scan(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        did: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        files: Sequence[str] | None = None,
    ) -> RecordBatchStream:
        """The rows of a table that are not hidden, read lazily.

        Args:
            table: `events`, `ops`, `snapshots`, `records`, `parts`, `part_records`, `hidden`, `plc_ops`, `blobs` or
                `labels`. Their columns are those of
                the page "Archives"; binary columns are large binary.
            columns: the names of the columns that are read, in this order. By default all.
            did: the account; of `labels`, the rows about it and the rows of which it is the source. Files and row groups without it are
                skipped.
            since: the first time that is read: a `datetime` with a time zone, a `date`, such a text in ISO 8601, or microseconds
                since 1970. It is compared with `received` in `events` and `labels`, `arrival` in `ops`, `fetched` in `snapshots`, `parts`,
                `plc_ops` and `blobs`, `at` in `hidden`, and with `fetched` of their snapshot or part in `records` and `part_records`. Files of other
                days are skipped.
            until: the end of the times: the first one that is not read.
            files: the paths of the files that are read, as `files()` has them. By default all.

        Returns:
            A stream of record batches with `__arrow_c_stream__`, which pyarrow, Polars, DuckDB and pandas read. It is read from
            the start each time, and shows the table as it is then. Rows of a file are in the order of the table. A batch has up to
            8,192 rows, or 1,024 with `frame`, `record`, `op`, `proof` or `label`, and the memory that is used does not grow with the table.

        Rows of hidden and erased accounts and hidden records are left out. `frame` is null where a hidden record is in it. `record`
        of `ops` is read from the frame where it is not stored apart, which takes the time of reading the frames: leave the column
        out if you do not need it.

        Raises:
            ArchiveError: a file cannot be read, or was replaced meanwhile (`archive compact` does): read again.
            ValueError: there is no such table, column or time, or a path is not of the table.
            TypeError: an argument has another type.

        Example:
            ```python
            archive = wireproof.Archive("archive")
            posts = polars.DataFrame(archive.scan("ops", ["did", "rkey", "record"], since="2026-11-24"))
            ```
        """
        if isinstance(columns, str):
            raise TypeError("argument 'columns': expected a sequence of names, not str")
        names = None if columns is None else list(columns)
        if names is not None and not names:
            raise ValueError("argument 'columns': at least one name is expected")
        if isinstance(files, str):
            raise TypeError("argument 'files': expected a sequence of paths, not str")
        paths = None if files is None else list(files)
        return self._open().scan(table, names, did, since, until, paths)

    def _erased(self) -> list[tuple[bytes, list[bytes]]]:
        """The keys under which accounts were erased, each with the hashes of their DIDs."""
        return self._open().erased()

    def _open(self) -> ArchiveReader:
        """The reader of this process: a fork does not have the threads of the process before."""
        if self._process != os.getpid():
            self._reader = ArchiveReader(self._uri)
            self._process = os.getpid()
        return self._reader

    def __reduce__(self) -> tuple[type[Archive], tuple[str]]:
        return type(self), (self._uri,)

    def __repr__(self) -> str:
        return f"Archive({self._uri!r})"
