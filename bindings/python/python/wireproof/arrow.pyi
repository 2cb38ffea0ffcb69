import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, final

from . import Judge
from ._types import Keys, Time

__all__ = [
    "RecordBatchStream",
    "decode_frames",
    "repository_records",
    "verify_frames",
    "verify_repos",
]

@final
class RecordBatchStream:
    @property
    def error(self) -> BaseException | None: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...

def verify_frames(
    stream: Any, judge: Judge | Keys, *, now: Time | None = None, keep: Sequence[str] = ()
) -> RecordBatchStream: ...
def verify_repos(
    stream: Any, keys: Keys, *, batched_keys: bool = False, keep: Sequence[str] = ()
) -> RecordBatchStream: ...
def decode_frames(
    stream: Any,
    *,
    errors: Literal["raise", "skip"] = "raise",
    hashes: Literal["records", "all"] = "records",
) -> RecordBatchStream: ...
def repository_records(car: bytes | os.PathLike[str], key: str, did: str | None = None) -> RecordBatchStream: ...
