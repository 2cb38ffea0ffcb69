"""Arrow record batches in and out: verdicts of frames and repositories, and their records as columns.

Input is any object with `__arrow_c_stream__` or `__arrow_c_array__`: a table, batch or reader of pyarrow, a data frame of Polars or
pandas, a relation of DuckDB. Payloads are read where they are, without a copy. Output is a `RecordBatchStream`, which the same
libraries read; its batches are computed when they are asked for, while other Python threads run.
"""

from __future__ import annotations

from . import _wireproof
from ._wireproof import Judge, RecordBatchStream

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any, Literal

    from ._types import Keys, Time

__all__ = [
    "RecordBatchStream",
    "decode_frames",
    "repository_records",
    "verify_frames",
    "verify_repos",
]


def verify_frames(
    stream: Any, judge: Judge | Keys, *, now: Time | None = None, keep: Sequence[str] = ()
) -> RecordBatchStream:
    """Verify frames of `com.atproto.sync.subscribeRepos`, and return a row for each, in their order.

    Args:
        stream: record batches with the column `frame` (binary, large binary or binary view). Frames of an account must be in the
            order of its stream. The column `received` (timestamp, or microseconds since 1970 as int64), if there is one, has the
            time at which each frame is judged, to the second.
        judge: a `Judge`, whose state continues from one stream to the next, or the keys of accounts as a judge takes them, for a
            stream alone. Exceptions of a function of keys end the stream.
        now: the time of the judgement where `received` has none: a `datetime` with a time zone, a `date`, the text of one, or
            microseconds since 1970. By default the clock. Revisions more than five minutes later are refused.
        keep: names of columns of the input that come before the results, without a copy.

    Returns:
        A stream with a batch for each of the input; one of more than 65,536 rows or 256 MiB becomes several. Columns:

        - `seq` (int64), `kind` (`commit`, `sync`, `identity`, `account`, `info`, `error`, `unknown` or `undecodable`), `did`, `rev`: what
          the frame claims, verified or not; null if it does not say
        - `verdict`: `verified`, `refused`, `ignored` or `unchecked`; `code`: its stable name; `verified` (bool)
        - `chain`: of a verified event `intact`, `first-seen`, `broken`, `still-desynchronized`
        - `ops`: of a verified commit a list of structs of `action`, `collection`, `rkey`, `cid` (null for a deletion)
        - `message`: an explanation of `code`, if there is more to say

        A frame that is null is refused as an empty one. An `account` event decides whether later commits of its account are accepted.

    Raises:
        TypeError: an argument has another type, or a column is missing or has another type.
        ValueError: a key is no `did:key`, or `keep` names a column of the result.
        OSError: the state file of the judge cannot be read.

        >>> import pyarrow, wireproof
        >>> frames = pyarrow.table({"frame": [b"not a frame", None]})
        >>> pyarrow.table(wireproof.verify_frames(frames, {})).column("code").to_pylist()
        ['frame/cbor', 'frame/cbor']
    """
    return _wireproof.verify_frames(stream, judge, now, _names("keep", keep))


def verify_repos(
    stream: Any, keys: Keys, *, batched_keys: bool = False, keep: Sequence[str] = ()
) -> RecordBatchStream:
    """Verify repositories, and return a row for each, in their order.

    Args:
        stream: record batches with the column `car` (binary, large binary or binary view): the archive of each repository, as
            `getRepo` gives it. The column `did` (text), if there is one, has the expected accounts; where it is null, and without
            it, the account is the one that the repository names.
        keys: the signing keys of accounts as `did:key` texts: a mapping from DIDs, or a function from a DID to a key or None, which is
            called once for each account.
        batched_keys: whether `keys` is a function that is called once a batch, with a list of DIDs, and returns a mapping or as many
            keys.
        keep: names of columns of the input that come before the results, without a copy.

    Returns:
        A stream with a batch for each of the input; one of more than 65,536 rows or 256 MiB becomes several. Columns: `did`, `rev`,
        `verified` (bool), `code` (`verified`, or the stable name of the broken rule), `message`, `records` (int64, their number), `root`
        (CID of the commit as text). `rev`, `records` and `root` are null unless the repository is verified.

    Raises:
        TypeError: an argument has another type, or a column is missing or has another type.
        ValueError: a key is no `did:key`, or `keep` names a column of the result.

        >>> import pyarrow, wireproof
        >>> repositories = pyarrow.table({"car": [b""]})
        >>> pyarrow.table(wireproof.verify_repos(repositories, {})).column("code").to_pylist()
        ['car/truncated']
    """
    return _wireproof.verify_repos(stream, keys, batched_keys, _names("keep", keep))


def decode_frames(
    stream: Any,
    *,
    errors: Literal["raise", "skip"] = "raise",
    hashes: Literal["records", "all"] = "records",
) -> RecordBatchStream:
    """Decode frames into a row for each operation of their commits. Hashes are checked, signatures and the tree are not.

    Args:
        stream: record batches with the column `frame` (binary, large binary or binary view).
        errors: `raise` ends the stream at a frame that is malformed or null, `skip` leaves it out.
        hashes: `records` compares each record with its CID; `all` also the blocks that the result does not have, the commit and
            nodes of the tree, which takes about twice the time.

    Returns:
        A stream of the columns `seq` (int64), `did`, `rev`, `action` (`create`, `update` or `delete`), `collection`, `rkey`, `cid` (text),
        `record` (large binary, DAG-CBOR), `json` (large text, the record in the JSON of the data model), `frame` (int64, number of
        the frame in the input, from 0). `cid`, `record` and `json` are null for a deletion; `json` also for a record without a
        JSON form, and `record` if the frame lacks it.

    Raises:
        DecodeError: a frame is malformed; with `code`, and `offset` in the frame. It is raised while the stream is read.
        TypeError: an argument has another type, or the column is missing or has another type.

        >>> import pyarrow, wireproof
        >>> frames = pyarrow.table({"frame": [b"not a frame"]})
        >>> pyarrow.table(wireproof.decode_frames(frames, errors="skip")).num_rows
        0
    """
    if errors not in ("raise", "skip"):
        raise ValueError(f"argument 'errors': {errors!r} is neither 'raise' nor 'skip'")
    if hashes not in ("records", "all"):
        raise ValueError(f"argument 'hashes': {hashes!r} is neither 'records' nor 'all'")
    return _wireproof.decode_frames(stream, errors == "skip", hashes == "all")


def repository_records(car: bytes | str | os.PathLike[str], key: str, did: str | None = None) -> RecordBatchStream:
    """Verify a repository, and return its records as columns: those of `Repo.to_arrow`.

    Args:
        car: the archive as `bytes`, or the path of a file (`str` or `os.PathLike`).
        key: the signing key of the account as `did:key`.
        did: the expected account; by default any.

    Returns:
        A stream of the columns `collection`, `rkey`, `cid` (text), `record` (large binary, DAG-CBOR), `json` (large text; null for a
        record without a JSON form), in the order of the paths. It can be read again.

    Raises:
        CarError: the archive is malformed, or a block has another hash.
        Rejection: the signature, the tree or the account is another than expected.
        TypeError, ValueError: an argument has another type, or `key` is no `did:key`.
        OSError: the file cannot be read.

        >>> import wireproof
        >>> try:
        ...     wireproof.repository_records(b"", "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme")
        ... except wireproof.CarError as error:
        ...     print(error.code)
        car/truncated
    """
    return _wireproof.verify_repo(car, key, did=did).to_arrow()


def _names(argument: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"argument '{argument}': expected a sequence of names, not str")
    if len(set(names)) < len(names):
        raise ValueError(f"argument '{argument}': a name is there twice")
    return list(names)
