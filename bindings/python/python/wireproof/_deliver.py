"""A stream into destinations."""

from __future__ import annotations

from ._wireproof import _deliver


def deliver(
    hosts,
    *,
    to,
    state,
    dids=None,
    collections=None,
    cursor=None,
    restart=None,
    backfill=False,
    all_from=None,
    ops=False,
    events=None,
    verify="full",
    workers=None,
    metrics=None,
    webhook_secret=None,
    plc=None,
    development=False,
    development_port=None,
    stop=None,
):
    """Deliver the event stream of a relay or PDS, verified, into destinations, as `wireproof follow --to` does.

    The call blocks until `events` are delivered or `stop` is set; Ctrl-C ends it too. Other Python threads run meanwhile. What
    was received is then delivered or kept in `state`, and the next call continues there, even after a crash. The
    repository of an account that missed an event is fetched, verified and delivered. Messages go to the logger `wireproof` of the
    module `logging`.

    Args:
        hosts: a host name or URL, or an iterable of them; the next one is used when one fails.
        to: URI of a destination, or an iterable of them: `sqlite:FILE`, `postgres://…`, `file:///FOLDER`, `https://…` (a webhook),
            `ws://ADDRESS:PORT` (a server for clients), `kafka://…`, `nats://…`.
        state: path of a folder (`str` or `os.PathLike`), created if missing, for cursors, keys, account states and undelivered
            events.
        dids: iterable of DIDs or handles whose events are wanted. Default: all accounts.
        collections: iterable of collections, such as `app.bsky.feed.post`, or `app.bsky.graph.*` for a prefix. Default: all.
        cursor: where to start with a host that has no stored cursor: `live` (the default), `oldest`, or after a sequence number.
        restart: ignore the stored cursor, and start here; histories are fetched again.
        backfill: deliver all records of the accounts in `dids` before their new events. Without `dids`, the first host lists the
            accounts with records in `collections`.
        all_from: servers all of whose accounts are delivered, old records and new.
        ops: deliver a flat line for every operation, instead of one line for a commit.
        events: number of events after which the call returns. Default: never.
        verify: level of proof: `full`, `signature` or `none`.
        workers: number of verifying threads. Default: one per core.
        metrics: address, such as `127.0.0.1:9464`, that serves Prometheus metrics at `/metrics`.
        webhook_secret: path of a file with the secret that signs webhooks.
        plc: URL of the did:plc directory. Default: https://plc.directory.
        development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
        development_port: port that serves handles under `.test`; implies `development`.
        stop: a `threading.Event`: the call returns once it is set.

    Returns:
        Number of events by their code, such as `{"verified": 1200}`.

    Raises:
        TypeError: an argument has another type.
        ValueError: an argument has a value that is not allowed, or does not fit the others. A message names options as the command
            does: `--to` is `to`.
        NetworkError: no host answers.
        OSError: the state or a destination cannot be opened or written.
        KeyboardInterrupt: Ctrl-C, after an orderly end.

    Example:

        >>> import wireproof
        >>> wireproof.deliver("bsky.network", to="parquet:records", state="state")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: --to: expected file:///FOLDER, sqlite:///FILE, ...

    ```python
    wireproof.deliver("bsky.network", dids=["atproto.com"], backfill=True, to="sqlite:posts.db", state="state")
    ```
    """
    options = {
        "to": to,
        "state": state,
        "dids": dids,
        "collections": collections,
        "cursor": cursor,
        "restart": restart,
        "backfill": backfill,
        "all_from": all_from,
        "ops": ops,
        "events": events,
        "verify": verify,
        "workers": workers,
        "metrics": metrics,
        "webhook_secret": webhook_secret,
        "plc": plc,
        "development": development,
        "development_port": development_port,
        "stop": stop,
    }
    return _deliver(hosts, options)
