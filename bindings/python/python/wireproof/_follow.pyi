import os
from collections.abc import AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import Any

from . import Event

def follow(
    hosts: str | Iterable[str],
    *,
    state: str | os.PathLike[str] | None = None,
    collections: str | Iterable[str] | None = None,
    dids: str | Iterable[str] | None = None,
    cursor: str | int | None = None,
    plc: str | None = None,
    development: bool = False,
    development_port: int | None = None,
    queue: int = 1000,
    in_flight: int = 32768,
    workers: int | None = None,
    resync: bool = False,
    auto_ack: bool | None = None,
    stop_seconds: float = 10.0,
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
) -> Follow:
    """Follow the event stream of a relay or PDS: every event verified, in order for each account, at least once.

    The result is an iterator, to be used in a `with` block, and an asynchronous one, for `async with` and `async for`. Leaving
    the block closes it. The connection is opened when the first event is asked for. Reports about the connection go to the
    logger `wireproof` of the module `logging`, when events are asked for.

    Args:
        hosts: a host name or URL, or an iterable of them; the next one is used when one fails.
        state: path of a state file (`str` or `os.PathLike`), created if missing, which keeps cursors and account states. The
            next run with it resumes before the first event that was not acknowledged; acknowledged ones that were received
            together with it may come again. Default: None, nothing is kept.
        collections: iterable of collections, such as `app.bsky.feed.post`, or `app.bsky.graph.*` for a prefix: operations in
            others are left out, and commits without any. Default: all.
        dids: iterable of DIDs or handles whose events are wanted. Default: all accounts.
        cursor: where to start with a host that has no stored cursor: `live` (the default), `oldest`, or after a sequence number.
        plc: URL of the did:plc directory. Default: https://plc.directory.
        development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
        development_port: port that serves handles under `.test`; implies `development`.
        queue: maximum number of events that wait for the program. While it is full nothing more is verified, and the host has
            to wait.
        in_flight: maximum number of events that are received and not acknowledged; at it nothing more is received.
        workers: number of verifying threads. Default: one per core.
        resync: fetch and verify the repository of an account that missed an event. It is delivered as an event of the kind
            `resync`, with all records as operations, between the events before and after it.
        auto_ack: acknowledge an event when the next one is asked for. Default: True without a state, otherwise False.
        stop_seconds: maximum time in seconds in which it ends.
        future_window: seconds that a revision may be ahead of the clock. Default: 300.
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

    Returns:
        `Follow`.

    Raises:
        TypeError: an argument has another type, or there is no such option.
        ValueError: an argument has a value that is not allowed.

    Example:

        >>> import wireproof
        >>> with wireproof.follow("http://localhost:1", development=True) as events:
        ...     pass
        >>> list(events)
        []
    """

class Follow(Iterator[Event], AsyncIterator[Event]):
    """Verified events of a stream: what `follow` returns.

    Iterating gives `Event`. If the run fails, all events before are given, then iterating raises: `NetworkError` if no host is
    left, `IdentityError` if an account of `dids` does not exist, `OSError` if the state file cannot be read or written, and
    `RuntimeError` otherwise, such as for a clock that is wrong.

    Ctrl-C ends the wait for an event with `KeyboardInterrupt`. A process that forks keeps its run, and its child cannot use it;
    the child can call `follow` itself, with another state.

    Example:

        >>> import wireproof
        >>> events = wireproof.follow("http://localhost:1", development=True)
        >>> events.close()
        >>> next(events, None) is None
        True
    """
    def __init__(self, follower: Any) -> None: ...
    def __iter__(self) -> Follow: ...
    def __next__(self) -> Event: ...
    def __enter__(self) -> Follow: ...
    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    def close(self) -> None:
        """Close the stream: acknowledged events are stored, all others come again, and no thread is left.

        It waits for that, at most as long as `stop_seconds`. Closing again does nothing.

        Raises:
            OSError: the state file cannot be written.
        """
    def __aiter__(self) -> Follow: ...
    async def __anext__(self) -> Event: ...
    async def __aenter__(self) -> Follow: ...
    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...
    async def aclose(self) -> None:
        """Close the stream as `close` does, without blocking the event loop.

        Raises:
            OSError: the state file cannot be written.
        """
    @property
    def waiting(self) -> int:
        """Number of events that wait for the program: at most `queue`."""
    @property
    def unacknowledged(self) -> int:
        """Number of verified events that are not acknowledged, those that wait included: at most `in_flight`."""
