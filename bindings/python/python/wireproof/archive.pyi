import os
from collections.abc import Sequence
from typing import Any

from ._types import Time
from .arrow import RecordBatchStream

__all__ = ["Archive"]

class Archive:
    def __init__(self, uri: str | os.PathLike[str]) -> None: ...
    @property
    def uri(self) -> str: ...
    def tables(self) -> list[str]: ...
    def stats(self) -> dict[str, dict[str, Any]]: ...
    def files(self, table: str) -> list[dict[str, Any]]: ...
    def scan(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        did: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        files: Sequence[str] | None = None,
    ) -> RecordBatchStream: ...
    def _erased(self) -> list[tuple[bytes, list[bytes]]]: ...
    def __reduce__(self) -> tuple[type[Archive], tuple[str]]: ...
