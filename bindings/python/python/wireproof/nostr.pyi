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
    """What is proved of an event."""
    @property
    def verified(self) -> bool:
        """Whether the id and the signature are right."""
    @property
    def code(self) -> str:
        """`verified`, or the code of the broken rule."""
    @property
    def id(self) -> str | None:
        """The id in hexadecimal; `None` if the event cannot be read."""
    @property
    def message(self) -> str | None:
        """An explanation for a person; `None` if the event is verified."""
    def __bool__(self) -> bool: ...

def verify_batch(
    events: Iterable[str | bytes], *, ids: Literal["either", "verbatim", "escaped"] = "either"
) -> list[EventVerdict]:
    """Verify the ids and signatures of events as JSON, all in one batch. Other Python threads run meanwhile.

    Args:
        events: the events, each a JSON object as `str` or `bytes`.
        ids: which serialization of control characters makes an id: `either`, `verbatim` (NIP-01 to the letter) or `escaped`
            (as nostr-tools and rust-nostr write them).

    Returns:
        A verdict for every event, in their order.

    Raises:
        TypeError: an event is neither `str` nor `bytes`.
        ValueError: `ids` has another value.
    """
def formats() -> list[str]:
    """The names of the formats of events, such as `json` and `cbor-packed`."""
def decode(format: str, data: bytes) -> dict[str, Any]:
    """Decode an event of a format, without verifying it: a `dict` with the keys of NIP-01.

    Args:
        format: the name of a format.
        data: the event.

    Raises:
        DecodeError: the bytes are not one event of the format.
        ValueError: no format has the name; `formats()` has all.
    """
def decode_batch(format: str, data: bytes) -> list[dict[str, Any]]:
    """Decode a batch of events of a format, without verifying them: a `dict` for each, as of `decode`.

    Args:
        format: the name of a format.
        data: the batch, as `encode_batch` makes it, or a file of `wireproof nostr convert --to`.

    Raises:
        DecodeError: the bytes are not a batch of the format.
        ValueError: no format has the name; `formats()` has all.
    """
def encode(format: str, event: Mapping[str, Any]) -> bytes:
    """Encode an event, a `dict` with the keys of NIP-01, in a format.

    Args:
        format: the name of a format.
        event: the event.

    Raises:
        DecodeError: the format cannot hold the event.
        TypeError, ValueError: a key is missing or has a wrong value, or no format has the name.
    """
def encode_batch(format: str, events: Iterable[Mapping[str, Any]]) -> bytes:
    """Encode events in a format as one batch.

    Args:
        format: the name of a format.
        events: the events, as of `encode`.

    Raises:
        DecodeError: the format cannot hold an event.
        TypeError, ValueError: a key is missing or has a wrong value, or no format has the name.
    """
def verify_events(
    stream: Any,
    format: str = "json",
    *,
    ids: Literal["either", "verbatim", "escaped"] = "either",
    keep: Sequence[str] = (),
) -> RecordBatchStream:
    """Verify the ids and signatures of events, and return a row for each, in their order.

    Args:
        stream: record batches with the column `event`, an event of `format` in each row (binary; of JSON text, too), or with the
            columns of events.
        format: the name of a format, for the column `event`.
        ids: which serialization of control characters makes an id: `either`, `verbatim` (NIP-01 to the letter) or `escaped`
            (as nostr-tools and rust-nostr write them).
        keep: names of columns of the input that come before the results, without a copy.

    Returns:
        A stream of the columns of events, and `verified` (bool), `code` (`verified`, or the stable name of the broken rule) and
        `message` (an explanation; null if the event is verified). The columns of an event that cannot be read are null.

    Raises:
        TypeError: an argument has another type, or a column is missing or has another type.
        ValueError: no format has the name, or `keep` names a column of the result.

        >>> import pyarrow
        >>> from wireproof import nostr
        >>> lines = pyarrow.table({"event": ["{}", None]})
        >>> pyarrow.table(nostr.verify_events(lines)).select(["kind", "code"]).to_pylist()
        [{'kind': None, 'code': 'event/unreadable'}, {'kind': None, 'code': 'event/unreadable'}]
    """
def decode_events(
    stream: Any, format: str = "json", *, errors: Literal["raise", "null"] = "raise", keep: Sequence[str] = ()
) -> RecordBatchStream:
    """Decode events into their columns, without verifying them.

    Args:
        stream: record batches with the column `event`, an event of `format` in each row (binary; of JSON text, too).
        format: the name of a format.
        errors: `raise` ends the stream at an event that cannot be read; `null` makes it a row of nulls.
        keep: names of columns of the input that come before the results, without a copy.

    Returns:
        A stream of the columns of events, a row for each of the input.

    Raises:
        DecodeError: an event cannot be read; with `code`, and `offset` in the event. It is raised while the stream is read.
        TypeError, ValueError: as `verify_events` does.

        >>> import pyarrow
        >>> from wireproof import nostr
        >>> line = '{"id":"%s","pubkey":"%s","created_at":5,"kind":1,"tags":[["t","gm"]],"content":"","sig":"%s"}'
        >>> lines = pyarrow.table({"event": [line % ("0" * 64, "1" * 64, "2" * 128)]})
        >>> pyarrow.table(nostr.decode_events(lines)).select(["created_at", "kind", "tags"]).to_pylist()
        [{'created_at': 5, 'kind': 1, 'tags': [['t', 'gm']]}]
    """
def encode_events(
    stream: Any, format: str = "json", *, errors: Literal["raise", "null"] = "raise", keep: Sequence[str] = ()
) -> RecordBatchStream:
    """Encode events in a format, each by itself.

    Args:
        stream: record batches with the columns of events.
        format: the name of a format.
        errors: `raise` ends the stream at an event that the format cannot hold, and at a row that is none; `null` makes it a null.
        keep: names of columns of the input that come before the results, without a copy.

    Returns:
        A stream of the column `event` (large binary; of JSON large text), a row for each of the input.

    Raises:
        DecodeError: the format cannot hold an event, or a row is none; with `code`. It is raised while the stream is read.
        TypeError, ValueError: as `verify_events` does.

        >>> import pyarrow
        >>> from wireproof import nostr
        >>> line = '{"id":"%s","pubkey":"%s","created_at":5,"kind":1,"tags":[],"content":"","sig":"%s"}'
        >>> lines = pyarrow.table({"event": [line % ("0" * 64, "1" * 64, "2" * 128)]})
        >>> packed = pyarrow.table(nostr.encode_events(nostr.decode_events(lines), "cbor-packed"))
        >>> len(packed["event"][0].as_py())
        139
        >>> back = pyarrow.table(nostr.encode_events(nostr.decode_events(packed, "cbor-packed")))
        >>> back["event"].to_pylist() == lines["event"].to_pylist()
        True
    """
def batch_to_arrow(format: str, data: bytes) -> RecordBatchStream:
    """Decode a batch of events of a format into their columns, without verifying them.

    Args:
        format: the name of a format.
        data: the batch, as `encode_batch` makes it, or a file of `wireproof nostr convert --to`.

    Returns:
        A stream of the columns of events, which can be read again.

    Raises:
        DecodeError: the bytes are not a batch of the format.
        ValueError: no format has the name; `formats()` has all.

        >>> import pyarrow
        >>> from wireproof import nostr
        >>> pyarrow.table(nostr.batch_to_arrow("json", b"[]")).num_rows
        0
    """
def batch_from_arrow(format: str, stream: Any) -> bytes:
    r"""Encode events as one batch of a format.

    Args:
        format: the name of a format.
        stream: record batches with the columns of events.

    Raises:
        DecodeError: the format cannot hold an event, or a row is none; with `code`.
        TypeError: an argument has another type, or a column is missing or has another type.
        ValueError: no format has the name; `formats()` has all.

        >>> from wireproof import nostr
        >>> nostr.batch_from_arrow("json", nostr.batch_to_arrow("cbor-packed", b"\x80"))
        b'[]'
    """
