"""Events of a stream, for programs with and without asyncio."""

from __future__ import annotations

import atexit
import weakref

from ._wireproof import _Follower


def follow(
    hosts,
    *,
    state=None,
    collections=None,
    dids=None,
    cursor=None,
    plc=None,
    development=False,
    development_port=None,
    queue=1000,
    in_flight=32768,
    workers=None,
    resync=False,
    auto_ack=None,
    stop_seconds=10.0,
    future_window=300.0,
    max_frame_bytes=5_000_000,
    max_blocks_bytes=2_000_000,
    max_sync_blocks_bytes=2_000_000,
    max_ops=200,
    max_record_bytes=1_000_000,
    strict_records=False,
    accept_missing_prev_data=False,
    accept_ops_without_prev=False,
    accept_failed_inversion=False,
    accept_unproved_operations=False,
    accept_since_mismatch=False,
    accept_unproved_deletes=False,
    accept_too_big=False,
    accept_rebase=False,
    accept_any_time=False,
):
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
    options = {
        "state": state,
        "collections": collections,
        "dids": dids,
        "cursor": cursor,
        "plc": plc,
        "development": development,
        "development_port": development_port,
        "queue": queue,
        "in_flight": in_flight,
        "workers": workers,
        "resync": resync,
        "auto_ack": auto_ack,
        "stop_seconds": stop_seconds,
        "future_window": future_window,
        "max_frame_bytes": max_frame_bytes,
        "max_blocks_bytes": max_blocks_bytes,
        "max_sync_blocks_bytes": max_sync_blocks_bytes,
        "max_ops": max_ops,
        "max_record_bytes": max_record_bytes,
        "strict_records": strict_records,
        "accept_missing_prev_data": accept_missing_prev_data,
        "accept_ops_without_prev": accept_ops_without_prev,
        "accept_failed_inversion": accept_failed_inversion,
        "accept_unproved_operations": accept_unproved_operations,
        "accept_since_mismatch": accept_since_mismatch,
        "accept_unproved_deletes": accept_unproved_deletes,
        "accept_too_big": accept_too_big,
        "accept_rebase": accept_rebase,
        "accept_any_time": accept_any_time,
    }
    return Follow(_Follower(hosts, options))


class Follow:
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

    def __init__(self, follower: _Follower) -> None:
        self._follower = follower
        self._without_waiting = 0
        _OPEN.add(self)

    def __iter__(self):
        return self

    def __next__(self):
        return self._follower.take(True)

    def __enter__(self):
        self._follower.start()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Close the stream: acknowledged events are stored, all others come again, and no thread is left.

        It waits for that, at most as long as `stop_seconds`. Closing again does nothing.

        Raises:
            OSError: the state file cannot be written.
        """
        self._follower.close()

    def __aiter__(self):
        return self

    async def __anext__(self):
        follower = self._follower
        try:
            while (event := follower.take(False)) is None:
                self._without_waiting = 0
                await self._wait()
        except StopIteration:
            raise StopAsyncIteration from None
        self._without_waiting += 1
        if self._without_waiting % _EVENTS_IN_A_ROW == 0:
            await _let_others_run()
        return event

    async def __aenter__(self):
        self._follower.start()
        return self

    async def __aexit__(self, *_) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream as `close` does, without blocking the event loop.

        Raises:
            OSError: the state file cannot be written.
        """
        self._follower.stop()
        while not self._follower.has_ended:
            await self._wait()
        self._follower.close()

    @property
    def waiting(self) -> int:
        """Number of events that wait for the program: at most `queue`."""
        return self._follower.sizes[0]

    @property
    def unacknowledged(self) -> int:
        """Number of verified events that are not acknowledged, those that wait included: at most `in_flight`."""
        return self._follower.sizes[1]

    async def _wait(self) -> None:
        """Wait until there is an event, or the run has ended."""
        import asyncio

        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def set_woken() -> None:
            if not woken.done():
                woken.set_result(None)

        self._follower.notify(lambda: loop.call_soon_threadsafe(set_woken))
        await woken


async def _let_others_run() -> None:
    import asyncio

    await asyncio.sleep(0)


def _close_all() -> None:
    """At the end of the interpreter: what is acknowledged must be stored."""
    for follow in list(_OPEN):
        try:
            follow.close()
        except OSError as error:
            import sys

            print(f"wireproof: {error}", file=sys.stderr)


_OPEN: weakref.WeakSet[Follow] = weakref.WeakSet()
atexit.register(_close_all)

#: Events that are taken without waiting before other tasks of the loop get a turn.
_EVENTS_IN_A_ROW = 64
