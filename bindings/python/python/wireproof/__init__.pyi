import os
from collections.abc import Iterator, Sequence
from typing import Any, final

from . import arrow as arrow
from . import compat as compat
from . import libipld as libipld
from . import nostr as nostr
from .archive import Archive as Archive
from .arrow import RecordBatchStream as RecordBatchStream
from .arrow import decode_frames as decode_frames
from .arrow import repository_records as repository_records
from .arrow import verify_frames as verify_frames
from .arrow import verify_repos as verify_repos
from .errors import ArchiveError as ArchiveError
from .errors import CarError as CarError
from .errors import DecodeError as DecodeError
from .errors import Rejection as Rejection
from .errors import WireproofError as WireproofError

# Streams and accounts.
from collections.abc import Iterable

from typing_extensions import disjoint_base

from ._deliver import deliver as deliver
from ._follow import Follow as Follow
from ._follow import follow as follow
from ._resolve import resolve_async as resolve_async
from ._types import Keys, Time
from .errors import IdentityError as IdentityError
from .errors import NetworkError as NetworkError

__all__ = [
    "Archive",
    "ArchiveError",
    "CarError",
    "CollectionsProof",
    "DecodeError",
    "Record",
    "RecordBatchStream",
    "RecordProof",
    "Rejection",
    "Repo",
    "WireproofError",
    "__version__",
    "arrow",
    "compat",
    "decode_frames",
    "libipld",
    "nostr",
    "repository_records",
    "verify_collections",
    "verify_frames",
    "verify_record",
    "verify_repo",
    "verify_repos",
]

__version__: str

@final
class Record:
    """A record of an account."""
    @property
    def did(self) -> str:
        """The account."""
    @property
    def path(self) -> str:
        """The collection and the record key, with a slash between."""
    @property
    def collection(self) -> str:
        """The collection."""
    @property
    def rkey(self) -> str:
        """The record key."""
    @property
    def uri(self) -> str:
        """The `at://` URI."""
    @property
    def cid(self) -> str:
        """The CID as text."""
    @property
    def bytes(self) -> bytes:
        """The DAG-CBOR of the record."""
    @property
    def value(self) -> Any:
        """The record as an object, made anew by each access. CIDs are `bytes`.

        Raises:
            DecodeError: the record is not canonical DAG-CBOR.
        """
    def to_json(self) -> str:
        """The JSON of the record.

        Raises:
            DecodeError: the record is not canonical DAG-CBOR, or has no JSON form.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class RecordProof:
    """What an account's repository has at a path: a record, or proof that there is none."""
    @property
    def did(self) -> str:
        """The account."""
    @property
    def rev(self) -> str:
        """The revision of the repository."""
    @property
    def root(self) -> str:
        """The CID of the signed commit as text."""
    @property
    def path(self) -> str:
        """The path."""
    @property
    def record(self) -> Record | None:
        """The record; `None` if the repository has none at the path."""
    @property
    def invalid(self) -> str | None:
        """The rule that the record breaks, if it is signed and not valid."""
    def __bool__(self) -> bool: ...

@final
class CollectionsProof:
    """All records of some collections of an account, and the proof that these collections have no others."""
    @property
    def did(self) -> str:
        """The account."""
    @property
    def rev(self) -> str:
        """The revision of the repository."""
    @property
    def root(self) -> str:
        """The CID of the signed commit as text."""
    @property
    def collections(self) -> tuple[str, ...]:
        """The collections, as they were given."""
    @property
    def records(self) -> tuple[Record, ...]:
        """The records, in the order of their paths."""
    @property
    def invalid(self) -> dict[str, str]:
        """The rules that invalid records break, by the paths of the records."""
    @property
    def identity(self) -> Identity | None:
        """The account, as its DID document describes it: of `verify_account_collections`, otherwise None."""
    @property
    def slice(self) -> bytes | None:
        """The archive of the slice that was downloaded, which proves the same offline; None if it was given."""
    @property
    def received_bytes(self) -> int:
        """Number of bytes that were downloaded."""
    @property
    def whole_repository(self) -> str | None:
        """Why the whole repository was downloaded, if it was: it costs less, or the server has no `getBlocks`."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...

@final
class Repo:
    """A repository that was proved to be whole and signed."""
    @property
    def did(self) -> str:
        """The account."""
    @property
    def rev(self) -> str:
        """The revision."""
    @property
    def root(self) -> str:
        """The CID of the signed commit as text."""
    @property
    def key(self) -> str:
        """The key that signed it, as `did:key`."""
    @property
    def identity(self) -> Identity | None:
        """The account, as its DID document describes it: of a repository of `verify_account`, otherwise None."""
    @property
    def invalid_records(self) -> int:
        """The number of records that are signed and not valid."""
    def records(self, collection: str | None = None, *, progress: bool = False) -> Iterator[Record]:
        """The records in the order of their paths.

        Args:
            collection: only records of this collection, such as `app.bsky.feed.post`. Default: all.
            progress: show a bar of `tqdm`, where that is installed.

        Returns:
            An iterator of `Record`.
        """
    def get(self, path: str) -> Record | None:
        """The record at a path; None if there is none.

        Args:
            path: its collection and record key with a slash between.
        """
    def collections(self) -> dict[str, int]:
        """The number of records of every collection, by its name, in the order of the names."""
    def to_arrow(self, columns: Sequence[str] | None = None, *, threads: int = 1) -> RecordBatchStream:
        """The records as columns, in the order of their paths: an object with `__arrow_c_stream__`.

        Args:
            columns: names of columns, in the order of the stream. Default: all. Without `json` it takes a fraction of the time.
            threads: number of threads that make them.

        Returns:
            A stream of batches of up to 16,384 records, with the columns `collection`, `rkey`, `cid` (text), `record` (large
            binary, DAG-CBOR) and `json` (large text; null for a record that has no JSON form). It can be read again.

        Raises:
            ValueError: if there is no such column, or `threads` is 0.

        ```python
        posts = polars.DataFrame(wireproof.verify_repo(car, key).to_arrow())
        ```
        """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __getitem__(self, key: str, /) -> Record: ...
    def __contains__(self, key: str, /) -> bool: ...

def verify_repo(
    car: bytes | str | os.PathLike[str],
    key: str | None = None,
    *,
    doc: Any = None,
    plc_log: Any = None,
    did: str | None = None,
    strict_records: bool = False,
    threads: int = 1,
) -> Repo:
    """Prove a repository from its CAR archive, as `getRepo` gives it: every hash, the signature, the whole tree, every record.

    Args:
        car: the archive as `bytes`, or the path of a file (`str` or `os.PathLike`), which is mapped and must not change.
        key: the signing key of the account as `did:key`. Exactly one of `key`, `doc` and `plc_log` is given.
        doc: the account's DID document, as JSON or as what `json.loads` gives.
        plc_log: the account's did:plc audit log, as JSON or as what `json.loads` gives, which is proved first.
        did: the expected account; by default the account of `doc` or `plc_log`, else any.
        strict_records: refuse a record that is signed and not valid, instead of counting it in `invalid_records`.
        threads: number of threads that hash a large archive.

    Returns:
        The proved repository. Other Python threads run meanwhile.

    Raises:
        CarError: the archive is malformed, or a block has another hash.
        Rejection: the signature, the tree or the account is another than expected.
        TypeError, ValueError: an argument is of a wrong type or cannot be read.
        OSError: the file cannot be read.

    ```python
    repo = wireproof.verify_repo(pathlib.Path("alice.car"), doc=document)
    for record in repo.records("app.bsky.feed.post"):
        print(record.uri, record.value["text"])
    ```
    """
def verify_record(
    slice: bytes | str | os.PathLike[str],
    path: str,
    key: str | None = None,
    *,
    doc: Any = None,
    plc_log: Any = None,
    did: str | None = None,
    strict_records: bool = False,
) -> RecordProof:
    """Prove a record, or that there is none, from a slice of its repository as `com.atproto.sync.getRecord` gives it.

    Args:
        slice: the archive of the slice, as `bytes`, or the path of a file (`str` or `os.PathLike`).
        path: the `at://` URI of the record, or its collection and record key with a slash between.
        key, doc, plc_log, did, strict_records: as for `verify_repo`. The account in the URI is expected too.

    Returns:
        `RecordProof`, which is true if the record is there.

    Raises:
        CarError, Rejection: as `verify_repo`, or a node on the path is missing.
        TypeError, ValueError: an argument is of a wrong type or cannot be read.
        OSError: the file cannot be read.
    """
def verify_collections(
    slice: bytes | str | os.PathLike[str],
    collections: Iterable[str],
    key: str | None = None,
    *,
    doc: Any = None,
    plc_log: Any = None,
    did: str | None = None,
    strict_records: bool = False,
) -> CollectionsProof:
    """Prove all records of some collections, and that these have no others, from a slice of the repository.

    `wireproof verify ACCOUNT --collection NSID --save slice.car` downloads such a slice, and so does `verify_account_collections`. A whole
    repository is one too.

    Args:
        slice: the archive of the slice, as `bytes`, or the path of a file (`str` or `os.PathLike`).
        collections: names of collections, such as `app.bsky.feed.post`, or `app.bsky.feed.*` for all collections below it.
        key, doc, plc_log, did, strict_records: as for `verify_repo`.

    Returns:
        The proved records.

    Raises:
        CarError, Rejection: as `verify_repo`, or a node that can have keys of the collections is missing.
        TypeError, ValueError: an argument is of a wrong type or cannot be read.
        OSError: the file cannot be read.

    ```python
    proof = wireproof.verify_collections(pathlib.Path("posts.car"), ["app.bsky.feed.post"], doc=document)
    print(len(proof), "posts, and no others, at", proof.rev)
    ```
    """

__all__ += [
    "Event",
    "Follow",
    "Identity",
    "IdentityError",
    "Judge",
    "NetworkError",
    "Operation",
    "Outcome",
    "State",
    "deliver",
    "follow",
    "read_frames",
    "resolve",
    "resolve_async",
    "verify_account",
    "verify_account_collections",
]

@final
class Judge:
    """Verifies frames of `com.atproto.sync.subscribeRepos`: signature, operations, and continuity of each account's commits.

    Judges of several threads run in parallel; calls of one judge follow each other. An `#account` decides whether later commits
    of its account are accepted.

    Args:
        keys: the signing keys: a mapping of DID to did:key text, which is asked in every batch, or a function from a DID to
            its did:key text or None. The function is called once for each account of a batch whose key is not known yet; it
            is called again after an `#identity` of the account, and after a signature that its key did not verify. Frames
            of accounts without a key are refused as `signature/no-key`, and can be judged again.
        state: None for a state in memory, the path of a state file (created if missing), or the `State` of another judge. A
            file gets what changed by `state().save()`, after the outcomes are handled.
        batched_keys: whether `keys` is a function that is called once a batch, with the list of DIDs, and returns a mapping or
            as many keys.
        key_cache_bytes: size in bytes of the cache of prepared keys. Default: 64 MiB, some 47,000 keys.
        future_window: seconds that a revision may be ahead of `now`. Default: 300.
        max_frame_bytes: maximum size of a frame in bytes. Default: 5,000,000.
        max_blocks_bytes: maximum size of the blocks of a `#commit` in bytes. Default: 2,000,000.
        max_sync_blocks_bytes: maximum size of the blocks of a `#sync` in bytes. Default: 2,000,000.
        max_ops: maximum number of operations of a commit. Default: 200.
        max_record_bytes: maximum size of a record in bytes. Default: 1,000,000.
        strict_records: refuse an event with an invalid record: not canonical DAG-CBOR, or not a map.
        accept_missing_prev_data: accept a commit without `prevData`, from before sync 1.1, with the chain `unproved`.
        accept_ops_without_prev: accept updates and deletes that do not say what they replaced, with the chain `unproved`.
        accept_failed_inversion: accept a commit that continues the known state although undoing its operations does not lead back to
            `prevData`, with the chain `unproved`.
        accept_unproved_operations: accept the operations of a signed commit without the tree, with the chain `unproved`: whoever
            sends it may have invented, changed or left out some.
        accept_since_mismatch: accept a commit whose `since` is not the known revision, if `prevData` is the known tree.
        accept_unproved_deletes: accept a delete whose path the blocks do not show.
        accept_too_big: accept a commit that says `tooBig`, whose missing operations stay unknown.
        accept_rebase: accept a commit that says `rebase`.
        accept_any_time: accept an event whose `time` is not a datetime.

    Raises:
        TypeError: if an argument has another type, or there is no such option.
        ValueError: if an option has a value that is not allowed.
        OSError: if the state file cannot be opened, or another process uses it.

    Example:
        >>> import wireproof
        >>> judge = wireproof.Judge(lambda did: None, max_frame_bytes=100)
        >>> [outcome.code for outcome in judge.batch([b"", bytes(200)])]
        ['frame/cbor', 'frame/limit']
    """
    def __new__(
        cls,
        keys: Keys,
        state: State | str | os.PathLike[str] | None = None,
        *,
        batched_keys: bool = False,
        key_cache_bytes: int = 67108864,
        future_window: float = 300.0,
        max_frame_bytes: int = 5000000,
        max_blocks_bytes: int = 2000000,
        max_sync_blocks_bytes: int = 2000000,
        max_ops: int = 200,
        max_record_bytes: int = 1000000,
        strict_records: bool = False,
        accept_missing_prev_data: bool = False,
        accept_ops_without_prev: bool = False,
        accept_failed_inversion: bool = False,
        accept_unproved_operations: bool = False,
        accept_since_mismatch: bool = False,
        accept_unproved_deletes: bool = False,
        accept_too_big: bool = False,
        accept_rebase: bool = False,
        accept_any_time: bool = False,
    ) -> Judge: ...
    def batch(self, frames: Iterable[bytes], now: Time | None = None) -> list[Outcome]:
        """Judge frames in their order, and return their outcomes.

        Frames of one account must be in the order of the stream. A refused frame changes no state.

        Args:
            frames: iterable of `bytes`, each a whole frame: header and payload.
            now: the time: `datetime` with a time zone, ISO text, or int in microseconds since 1970. Default: the clock.

        Returns:
            list of `Outcome`, one for every frame.

        Raises:
            TypeError: if a frame is not `bytes`, or a key is neither text nor None.
            ValueError: if a key is not a did:key, or the time is none.
            OSError: if the state file cannot be read.
            Exception: what the function of the keys raises; nothing is judged then.

        Example:
            >>> import wireproof
            >>> info = bytes.fromhex("a261746523696e666f626f7001a1646e616d656e4f75746461746564437572736f72")
            >>> [outcome] = wireproof.Judge({}).batch([info], now="2026-07-01T00:00:00Z")
            >>> outcome.kind, outcome.code
            ('info', 'unchecked')
        """
    def state(self) -> State:
        """The state of the accounts, which other judges can share.

        Returns:
            `State`.

        Example:
            >>> import wireproof
            >>> first = wireproof.Judge({})
            >>> second = wireproof.Judge({}, first.state())
            >>> second.state() is first.state()
            True
        """

@final
class State:
    """What judges know of accounts: the newest verified commit of each, and whether its commits are accepted.

    `Judge.state()` returns it, and `Judge(keys, state)` takes it: judges with the same state continue each other's chains. An
    account belongs to one judge at a time.

    Example:
        >>> import wireproof
        >>> state = wireproof.Judge({}).state()
        >>> state.path, state.rev("did:web:example.com"), state.is_active("did:web:example.com")
        (None, None, True)
    """
    @property
    def path(self) -> os.PathLike[str] | None:
        """The state file, or None."""
    def rev(self, did: str) -> str | None:
        """Revision of the newest verified commit of an account; None before the first.

        Args:
            did: the account.

        Raises:
            OSError: if the state file cannot be read.

        Example:
            >>> import wireproof
            >>> wireproof.Judge({}).state().rev("did:web:example.com") is None
            True
        """
    def is_desynchronized(self, did: str) -> bool:
        """Whether an account missed an event that was not made up for: its repository must be fetched again.

        Args:
            did: the account.

        Raises:
            OSError: if the state file cannot be read.

        Example:
            >>> import wireproof
            >>> wireproof.Judge({}).state().is_desynchronized("did:web:example.com")
            False
        """
    def is_active(self, did: str) -> bool:
        """Whether commits of an account are accepted.

        Args:
            did: the account.

        Raises:
            OSError: if the state file cannot be read.

        Example:
            >>> import wireproof
            >>> wireproof.Judge({}).state().is_active("did:web:example.com")
            True
        """
    def set_active(self, did: str, active: bool) -> None:
        """Set whether commits of an account are accepted.

        Args:
            did: the account.
            active: whether they are accepted.

        Raises:
            OSError: if the state file cannot be read.

        Example:
            >>> import wireproof
            >>> state = wireproof.Judge({}).state()
            >>> state.set_active("did:web:example.com", False)
            >>> state.is_active("did:web:example.com")
            False
        """
    def clear(self) -> None:
        """Forget all accounts, as before the first frame. A judge keeps its keys.

        Raises:
            ValueError: if the state is in a file.

        Example:
            >>> import wireproof
            >>> state = wireproof.Judge({}).state()
            >>> state.set_active("did:web:example.com", False)
            >>> state.clear()
            >>> state.is_active("did:web:example.com")
            True
        """
    def save(self, cursors: dict[str, int] | None = None) -> None:
        """Write the changes since the last call to the state file; nothing without a file.

        Call it after you have handled the outcomes: a later judge with the file ignores the same commits as old.

        Args:
            cursors: sequence numbers by the name of a stream, written in the same transaction.

        Raises:
            OSError: if they cannot be written.
            ValueError: if there are cursors, and no file.

        Example:
            >>> import wireproof
            >>> wireproof.Judge({}).state().save()
        """
    def cursor(self, stream: str) -> int | None:
        """The cursor of a stream in the state file; None if there is none.

        Args:
            stream: its name, as given to `save`.

        Raises:
            OSError: if the state file cannot be read.

        Example:
            >>> import wireproof
            >>> wireproof.Judge({}).state().cursor("wss://relay.example.com") is None
            True
        """

@disjoint_base
class Outcome:
    """The verdict about one frame, and what the frame says.

    Immutable, and can be pickled. Its parts become Python objects when they are asked for.

    Example:
        >>> import wireproof
        >>> [outcome] = wireproof.Judge({}).batch([b"not a frame"])
        >>> outcome.code, outcome.verdict, outcome.verified, outcome.ops
        ('frame/cbor', 'refused', False, ())
    """
    @property
    def code(self) -> str:
        """Stable name of the verdict: `verified`, `verified/broken`, `signature/wrong`, ..."""
    @property
    def verified(self) -> bool:
        """Whether the frame is proved to be its account's."""
    @property
    def verdict(self) -> str:
        """`verified`, `ignored`, `refused`, `unchecked` or `unknown-key`."""
    @property
    def kind(self) -> str:
        """`commit`, `sync`, `identity`, `account`, `info`, `error`, `unknown` or `undecodable`; `resync` of a repository
        that `follow` fetched.
        """
    @property
    def seq(self) -> int | None:
        """Sequence number at the host, or None."""
    @property
    def did(self) -> str | None:
        """The account, or None. Proved only if `verified`."""
    @property
    def rev(self) -> str | None:
        """Revision of the commit, or None. Proved only if `verified`."""
    @property
    def time(self) -> str | None:
        """The time that the frame states, as text, or None. Never proved."""
    @property
    def chain(self) -> str | None:
        """How a verified frame continues the known state of its account: `intact`, `first-seen`, `broken`, `still-
        desynchronized` or `unproved`; otherwise None.
        """
    @property
    def message(self) -> str | None:
        """Explanation of `code` for a person, or None."""
    @property
    def ops(self) -> tuple[Operation, ...]:
        """Tuple of the operations of a verified commit; otherwise empty."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Event(Outcome):
    """An event of a stream: an `Outcome` with its host, its bytes and its acknowledgement.

    Immutable. It can be pickled, but only the original can be acknowledged.

    ```python
    for event in wireproof.follow("bsky.network", state="state.sqlite"):
        store(event)
        event.ack()
    ```
    """
    @property
    def host(self) -> str:
        """Origin of the host that sent it; of a `resync`, name of the server that sent the repository."""
    @property
    def received(self) -> float:
        """Time of arrival, in seconds since 1970."""
    @property
    def frame(self) -> bytes:
        """Bytes of the frame as received; of the CAR archive for a `resync`."""
    def ack(self) -> bool:
        """Acknowledge the event: the cursor may move past it, once all before it are acknowledged too.

        It may be called at any time, from any thread, and again. Events that were verified together come again together, if one
        of them was not acknowledged.

        Returns:
            Whether it counts; False once `follow` is closed or has ended: a later run gets the event again.

        Raises:
            RuntimeError: the event was pickled, or is of the process that forked this one.
        """

@final
class Operation:
    """One operation of a verified commit on a record.

    Immutable, and can be pickled.

    ```python
    for operation in outcome.ops:
        print(operation.action, operation.path, operation.record)
    ```
    """
    @property
    def action(self) -> str:
        """`create`, `update` or `delete`."""
    @property
    def path(self) -> str:
        """`collection/rkey`."""
    @property
    def collection(self) -> str:
        """The collection, such as `app.bsky.feed.post`."""
    @property
    def rkey(self) -> str:
        """The record key."""
    @property
    def cid(self) -> str | None:
        """CID of the record as text; None for a delete."""
    @property
    def record(self) -> Any:
        """The record as Python objects, made at the first access, the same object each time: maps as `dict`, links as the
        `bytes` of their CIDs. None for a delete, and for a record that is invalid: not canonical DAG-CBOR, or not a
        map.
        """
    @property
    def record_bytes(self) -> bytes | None:
        """The DAG-CBOR of the record as `bytes`, whose hash is that of `cid`; None for a delete."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Identity:
    """An account, as its DID document describes it, with its handle checked both ways.

    Immutable, and can be pickled.

    ```python
    identity = wireproof.resolve("atproto.com")
    print(identity.did, identity.handle, identity.pds, identity.signing_key)
    ```
    """
    @property
    def did(self) -> str:
        """The account."""
    @property
    def handle(self) -> str | None:
        """The handle in lower case that leads to the DID and that the document claims, or None."""
    @property
    def handle_error(self) -> str | None:
        """Why there is no handle, or None."""
    @property
    def pds(self) -> str | None:
        """URL of the server that hosts the account, or None."""
    @property
    def signing_key(self) -> str | None:
        """did:key text of the key that signs the repository, or None."""
    @property
    def document(self) -> dict[str, Any]:
        """The parts of the DID document that the protocol uses, as a new dict in its form: `id`, `alsoKnownAs`, `verificationMethod`,
        `service`. `alsoKnownAs` is a claim.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def resolve(
    name: str, *, plc: str | None = None, development: bool = False, development_port: int | None = None
) -> Identity:
    """Resolve a handle or a DID to its account, and check the handle both ways.

    A handle must lead to a DID whose document claims the handle; otherwise it is refused. An account that is given by its DID
    is resolved whether or not its handle is right. Nothing is kept for the next call.

    Args:
        name: a handle, such as `atproto.com`, or a DID.
        plc: URL of the did:plc directory. Default: https://plc.directory.
        development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
        development_port: port that serves handles under `.test`; implies `development`.

    Returns:
        `Identity`.

    Raises:
        TypeError: if an argument has another type.
        ValueError: if `name` is neither a handle nor a DID, or `plc` is no URL.
        IdentityError: if there is no such account, or it does not claim the handle.
        NetworkError: if the directory, the host or the DNS cannot be reached.

    Example:
        >>> import wireproof
        >>> wireproof.resolve("alice")
        Traceback (most recent call last):
        ...
        ValueError: argument 'name': alice: neither a DID nor a handle; a handle has a domain: did you mean alice.bsky.social?
    """
def verify_account(
    account: str,
    *,
    host: str | None = None,
    strict_records: bool = False,
    threads: int = 1,
    max_bytes: int = 536870912,
    max_seconds: float = 300.0,
    max_silent_seconds: float = 30.0,
    min_rate: int = 4096,
    plc: str | None = None,
    development: bool = False,
    development_port: int | None = None,
) -> Repo:
    """Prove the repository of an account end to end, as `wireproof verify HANDLE` does: the handle, the DID, its document, and the
    repository that the server of the account sends, under the key in the document.

    A handle must lead to a DID whose document claims the handle. The download goes to a temporary file without a name, which is
    mapped while the `Repo` lives. A host has 5 seconds and `max_silent_seconds` to begin its answer. Other Python threads run
    meanwhile; Ctrl-C ends the lookup and the download.

    Args:
        account: a handle, such as `atproto.com`, a DID, the `at://` URI of an account, or the URL of its profile.
        host: name or URL of a mirror or relay to download from. The proof is the same. Default: the account's own server.
        strict_records: refuse a record that is signed and not valid, instead of counting it in `invalid_records`.
        threads: number of threads that hash a large archive.
        max_bytes: maximum size of the repository in bytes. Default: 512 MiB.
        max_seconds: maximum time of the download in seconds, at most 86,400. Default: 300.
        max_silent_seconds: maximum time in seconds for which the host may send nothing, at most 3,600. Default: 30.
        min_rate: minimum rate of the download in bytes a second in its first ten seconds; twice as much in the next ten, and so
            on. Default: 4,096.
        plc: URL of the did:plc directory, which is trusted for the keys of its accounts. Default: https://plc.directory.
        development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
        development_port: port that serves handles under `.test`; implies `development`.

    Returns:
        The proved repository, as of `verify_repo`. Its `identity` is the account.

    Raises:
        TypeError: if an argument has another type.
        ValueError: if `account` names no account, or an option has a value that is not allowed.
        IdentityError: if there is no such account, it does not claim the handle, or its document has no key or no server.
        NetworkError: if the directory, the DNS or the host cannot be reached, or the host does not send the repository within the
            limits.
        CarError: if the archive is malformed, or a block has another hash.
        Rejection: if the signature, the tree or the account is another than expected.
        OSError: if the temporary file cannot be written.

    Example:
        >>> import wireproof
        >>> wireproof.verify_account("alice")
        Traceback (most recent call last):
        ...
        ValueError: argument 'account': alice: neither a DID nor a handle; a handle has a domain: did you mean alice.bsky.social?

    ```python
    repo = wireproof.verify_account("atproto.com")
    print(repo.identity.handle, repo.did, repo.rev, len(repo))
    ```
    """
def verify_account_collections(
    account: str,
    collections: Iterable[str],
    *,
    host: str | None = None,
    strict_records: bool = False,
    max_bytes: int = 536870912,
    max_seconds: float = 300.0,
    max_silent_seconds: float = 30.0,
    min_rate: int = 4096,
    plc: str | None = None,
    development: bool = False,
    development_port: int | None = None,
) -> CollectionsProof:
    """Prove all records of some collections of an account end to end: the handle, the DID, its document, and the part of the repository
    that proves these records complete. Only this part is downloaded, where that costs less than the whole repository.

    Args:
        account: as for `verify_account`.
        collections: names of collections, such as `app.bsky.feed.post`, or `app.bsky.feed.*` for all collections below it.
        host, strict_records, max_bytes, max_seconds, max_silent_seconds, min_rate, plc, development, development_port: as for
            `verify_account`. The limits are for all requests together.

    Returns:
        The proved records. `slice` proves them again offline, with `verify_collections`.

    Raises:
        TypeError, ValueError, IdentityError, NetworkError, CarError: as `verify_account`.
        Rejection: as `verify_account`, or the server withholds a part of the proof.

    ```python
    proof = wireproof.verify_account_collections("atproto.com", ["app.bsky.feed.post"])
    for post in proof:
        print(post.uri, post.value["text"])
    ```
    """
def read_frames(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Read the frames of a captured file in their order, as `wireproof frames verify` does.

    The file begins with the number of frames; each frame follows its length: 32 bits each, the highest byte first. It is mapped, so
    that it takes no memory whatever its size, and must not change meanwhile. Its structure is checked at once; the frames are
    judged by `Judge.batch`.

    Args:
        path: the file, as `str` or `os.PathLike`.

    Returns:
        An iterator of frames as `bytes`, which `operator.length_hint` counts. Threads may share it.

    Raises:
        TypeError: if `path` is neither text nor a path.
        OSError: if the file cannot be read.
        DecodeError: if the file does not consist of the frames that it states, with the code `frame/file`, and `offset` in the file.

    Example:
        >>> import pathlib, tempfile, wireproof
        >>> path = pathlib.Path(tempfile.mkdtemp(), "frames.bin")
        >>> path.write_bytes(bytes.fromhex("00000002" "00000003 616263" "00000000"))
        15
        >>> list(wireproof.read_frames(path))
        [b'abc', b'']

    ```python
    judge, frames = wireproof.Judge(keys), wireproof.read_frames("firehose-frames.bin")
    while batch := list(itertools.islice(frames, 512)):
        for outcome in judge.batch(batch):
            print(outcome.seq, outcome.did, outcome.code)
    ```
    """
