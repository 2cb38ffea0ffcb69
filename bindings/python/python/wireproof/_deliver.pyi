import os
import threading
from collections.abc import Iterable

def deliver(
    hosts: str | Iterable[str],
    *,
    to: str | Iterable[str],
    state: str | os.PathLike[str],
    dids: str | Iterable[str] | None = None,
    collections: str | Iterable[str] | None = None,
    cursor: str | int | None = None,
    restart: str | int | None = None,
    backfill: bool = False,
    all_from: str | Iterable[str] | None = None,
    ops: bool = False,
    events: int | None = None,
    verify: str = "full",
    workers: int | None = None,
    metrics: str | None = None,
    webhook_secret: str | os.PathLike[str] | None = None,
    plc: str | None = None,
    development: bool = False,
    development_port: int | None = None,
    stop: threading.Event | None = None,
) -> dict[str, int]: ...
