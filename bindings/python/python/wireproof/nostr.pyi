from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, final

from .arrow import RecordBatchStream

__all__ = [
    "EventVerdict",
    "batch_from_arrow",
    "batch_to_arrow",
    "decode",
    "decode_batch",
    "decode_events",
    "encode",
    "encode_batch",
    "encode_events",
    "formats",
    "verify_batch",
    "verify_events",
]

@final
class EventVerdict:
    @property
    def verified(self) -> bool: ...
    @property
    def code(self) -> str: ...
    @property
    def id(self) -> str | None: ...
    @property
    def message(self) -> str | None: ...
    def __bool__(self) -> bool: ...

def verify_batch(
    events: Iterable[str | bytes], *, ids: Literal["either", "verbatim", "escaped"] = "either"
) -> list[EventVerdict]: ...
def formats() -> list[str]: ...
def decode(format: str, data: bytes) -> dict[str, Any]: ...
def decode_batch(format: str, data: bytes) -> list[dict[str, Any]]: ...
def encode(format: str, event: Mapping[str, Any]) -> bytes: ...
def encode_batch(format: str, events: Iterable[Mapping[str, Any]]) -> bytes: ...
def verify_events(
    stream: Any,
    format: str = "json",
    *,
    ids: Literal["either", "verbatim", "escaped"] = "either",
    keep: Sequence[str] = (),
) -> RecordBatchStream: ...
def decode_events(
    stream: Any, format: str = "json", *, errors: Literal["raise", "null"] = "raise", keep: Sequence[str] = ()
) -> RecordBatchStream: ...
def encode_events(
    stream: Any, format: str = "json", *, errors: Literal["raise", "null"] = "raise", keep: Sequence[str] = ()
) -> RecordBatchStream: ...
def batch_to_arrow(format: str, data: bytes) -> RecordBatchStream: ...
def batch_from_arrow(format: str, stream: Any) -> bytes: ...
