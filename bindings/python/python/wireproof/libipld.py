"""The functions of the package `libipld` 3.x, with the hash of each block checked.

Types are those of `libipld`: CIDs are `bytes`, maps are `dict`. Errors are `ValueError` with its words, and have a `code` and an
`offset`.
"""

from __future__ import annotations

from ._wireproof import (
    decode_car,
    decode_cid,
    decode_dag_cbor,
    decode_dag_cbor_multi,
    decode_multibase,
    encode_cid,
    encode_dag_cbor,
    encode_multibase,
)

__all__ = [
    "decode_car",
    "decode_cid",
    "decode_dag_cbor",
    "decode_dag_cbor_multi",
    "decode_multibase",
    "encode_cid",
    "encode_dag_cbor",
    "encode_multibase",
]
