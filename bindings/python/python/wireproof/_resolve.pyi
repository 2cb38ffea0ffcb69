from . import Identity

async def resolve_async(
    name: str, *, plc: str | None = None, development: bool = False, development_port: int | None = None
) -> Identity:
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
