from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, final

from ._time import Time

__all__ = [
    "AccountStates",
    "RecordBatchStream",
    "decode_frames",
    "repository_records",
    "verify_frames",
    "verify_repos",
]

_Keys = Mapping[str, str | None] | Callable[[str], str | None] | Callable[[list[str]], Any]

@final
class RecordBatchStream:
    @property
    def error(self) -> BaseException | None: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...

@final
class AccountStates:
    def __new__(cls) -> AccountStates: ...
    def __len__(self) -> int: ...

def verify_frames(
    stream: Any,
    keys: _Keys,
    *,
    state: AccountStates | None = None,
    now: Time | None = None,
    batched_keys: bool = False,
    keep: Sequence[str] = (),
) -> RecordBatchStream: ...
def verify_repos(
    stream: Any,
    keys: _Keys,
    *,
    batched_keys: bool = False,
    keep: Sequence[str] = (),
) -> RecordBatchStream: ...
def decode_frames(
    stream: Any,
    *,
    errors: Literal["raise", "skip"] = "raise",
    hashes: Literal["records", "all"] = "records",
) -> RecordBatchStream: ...
def repository_records(car: bytes, key: str, did: str | None = None) -> RecordBatchStream: ...
