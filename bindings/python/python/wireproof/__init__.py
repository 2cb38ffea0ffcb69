"""Proof at wire speed for signed, content-addressed social data.

    >>> import wireproof
    >>> try:
    ...     wireproof.verify_repo(b"", key="did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme")
    ... except wireproof.CarError as error:
    ...     print(error.code)
    car/truncated

`wireproof.libipld` has the functions of the package `libipld`, `wireproof.nostr` those for Nostr events,
`wireproof.arrow` those for Arrow record batches, `wireproof.ray` and `wireproof.spark` those for archives on a cluster.
"""

from __future__ import annotations

from . import arrow, compat, libipld, nostr
from ._wireproof import (
    CollectionsProof,
    Record,
    RecordProof,
    Repo,
    __version__,
    verify_collections,
    verify_record,
    verify_repo,
)
from .archive import Archive
from .arrow import RecordBatchStream, decode_frames, repository_records, verify_frames, verify_repos
from .errors import ArchiveError, CarError, DecodeError, Rejection, WireproofError

# Streams and accounts.
from ._deliver import deliver
from ._follow import Follow, follow
from ._resolve import resolve_async
from ._wireproof import (
    Event,
    Identity,
    Judge,
    Operation,
    Outcome,
    State,
    read_frames,
    resolve,
    verify_account,
    verify_account_collections,
)
from .errors import IdentityError, NetworkError

__all__ = [
    "Archive",
    "ArchiveError",
    "CarError",
    "CollectionsProof",
    "DecodeError",
    "Record",
    "RecordBatchStream",
    "RecordProof",
    "Rejection",
    "Repo",
    "WireproofError",
    "__version__",
    "arrow",
    "compat",
    "decode_frames",
    "libipld",
    "nostr",
    "repository_records",
    "verify_collections",
    "verify_frames",
    "verify_record",
    "verify_repo",
    "verify_repos",
]
__all__ += [
    "Event",
    "Follow",
    "Identity",
    "IdentityError",
    "Judge",
    "NetworkError",
    "Operation",
    "Outcome",
    "State",
    "deliver",
    "follow",
    "read_frames",
    "resolve",
    "resolve_async",
    "verify_account",
    "verify_account_collections",
]
