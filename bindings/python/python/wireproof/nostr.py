"""Nostr events: verdicts of many at once, and every format in which they are stored or sent.

An event is a `dict` with the keys of NIP-01: `id`, `pubkey`, `created_at`, `kind`, `tags`, `content`, `sig`.
"""

from __future__ import annotations

from ._wireproof.nostr import (
    EventVerdict,
    decode,
    decode_batch,
    encode,
    encode_batch,
    formats,
    verify_batch,
)

__all__ = [
    "EventVerdict",
    "decode",
    "decode_batch",
    "encode",
    "encode_batch",
    "formats",
    "verify_batch",
]
