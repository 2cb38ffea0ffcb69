"""Lookups of accounts for programs with asyncio."""

from __future__ import annotations

from ._wireproof import _Lookup


async def resolve_async(name, *, plc=None, development=False, development_port=None):
    """Resolve a handle or a DID as `resolve` does, without blocking the event loop.

    Cancelling the task ends the lookup.

    Args:
        name: a handle, such as `atproto.com`, or a DID.
        plc: URL of the did:plc directory. Default: https://plc.directory.
        development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
        development_port: port that serves handles under `.test`; implies `development`.

    Returns:
        `Identity`.

    Raises:
        TypeError: an argument has another type.
        ValueError: `name` is neither a handle nor a DID, or `plc` is no URL.
        IdentityError: there is no such account, or it does not claim the handle.
        NetworkError: the directory, the host or the DNS cannot be reached.

    Example:

        >>> import asyncio, wireproof
        >>> asyncio.run(wireproof.resolve_async("alice"))
        Traceback (most recent call last):
        ...
        ValueError: argument 'name': alice: neither a DID nor a handle; a handle has a domain: did you mean alice.bsky.social?
    """
    import asyncio

    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def set_ended() -> None:
        if not ended.done():
            ended.set_result(None)

    lookup = _Lookup(
        lambda: loop.call_soon_threadsafe(set_ended),
        name,
        plc=plc,
        development=development,
        development_port=development_port,
    )
    try:
        await ended
    finally:
        lookup.close()
    return lookup.result()
