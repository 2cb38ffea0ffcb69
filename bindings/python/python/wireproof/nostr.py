"""Nostr events: verdicts of many at once, and every format in which they are stored or sent.

An event is a `dict` with the keys of NIP-01: `id`, `pubkey`, `created_at`, `kind`, `tags`, `content`, `sig`. As Arrow it is a row with
these columns:

- `id`, `pubkey`, `sig` (text, hexadecimal digits)
- `created_at` (int64, seconds since 1970), `kind` (uint16)
- `tags` (list of lists of large text), `content` (large text)

Functions that read these columns also take binary or fixed-size binary for digits, integers of any width, and every type of lists and
text that pyarrow, Polars, DuckDB and pandas have.
"""

from __future__ import annotations

from ._wireproof import nostr as _nostr
from ._wireproof.nostr import (
    EventVerdict,
    decode,
    decode_batch,
    encode,
    encode_batch,
    formats,
    verify_batch,
)
from .arrow import RecordBatchStream, _names

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

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
    return _nostr.verify_events(stream, format, ids, _names("keep", keep))


def decode_events(
    stream: Any,
    format: str = "json",
    *,
    errors: Literal["raise", "null"] = "raise",
    keep: Sequence[str] = (),
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
    return _nostr.decode_events(stream, format, _has_nulls(errors), _names("keep", keep))


def encode_events(
    stream: Any,
    format: str = "json",
    *,
    errors: Literal["raise", "null"] = "raise",
    keep: Sequence[str] = (),
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
    return _nostr.encode_events(stream, format, _has_nulls(errors), _names("keep", keep))


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
    return _nostr.batch_to_arrow(format, data)


def batch_from_arrow(format: str, stream: Any) -> bytes:
    """Encode events as one batch of a format.

    Args:
        format: the name of a format.
        stream: record batches with the columns of events.

    Raises:
        DecodeError: the format cannot hold an event, or a row is none; with `code`.
        TypeError: an argument has another type, or a column is missing or has another type.
        ValueError: no format has the name; `formats()` has all.

        >>> from wireproof import nostr
        >>> nostr.batch_from_arrow("json", nostr.batch_to_arrow("cbor-packed", b"\\x80"))
        b'[]'
    """
    return _nostr.batch_from_arrow(format, stream)


def _has_nulls(errors: str) -> bool:
    if errors not in ("raise", "null"):
        raise ValueError(f"argument 'errors': {errors!r} is neither 'raise' nor 'null'")
    return errors == "null"
