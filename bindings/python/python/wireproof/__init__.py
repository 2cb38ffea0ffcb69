"""Proof at wire speed for signed, content-addressed social data.

    >>> import wireproof
    >>> try:
    ...     wireproof.verify_repo(b"", key="did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme")
    ... except wireproof.CarError as error:
    ...     print(error.code)
    car/truncated

`wireproof.libipld` has the functions of the package `libipld`, `wireproof.nostr` those for Nostr events.
"""

from __future__ import annotations

from . import compat, libipld, nostr
from ._wireproof import Record, RecordProof, Repo, __version__, verify_record, verify_repo
from .errors import ArchiveError, CarError, DecodeError, Rejection, WireproofError

__all__ = [
    "ArchiveError",
    "CarError",
    "DecodeError",
    "Record",
    "RecordProof",
    "Rejection",
    "Repo",
    "WireproofError",
    "__version__",
    "compat",
    "libipld",
    "nostr",
    "verify_record",
    "verify_repo",
]
