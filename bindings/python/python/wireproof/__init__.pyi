import os
from collections.abc import Iterator
from typing import Any, final

from . import compat as compat
from . import libipld as libipld
from . import nostr as nostr
from .errors import ArchiveError as ArchiveError
from .errors import CarError as CarError
from .errors import DecodeError as DecodeError
from .errors import Rejection as Rejection
from .errors import WireproofError as WireproofError

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

__version__: str

@final
class Record:
    @property
    def did(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def collection(self) -> str: ...
    @property
    def rkey(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def cid(self) -> str: ...
    @property
    def bytes(self) -> bytes: ...
    @property
    def value(self) -> Any: ...
    def to_json(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class RecordProof:
    @property
    def did(self) -> str: ...
    @property
    def rev(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def record(self) -> Record | None: ...
    @property
    def invalid(self) -> str | None: ...
    def __bool__(self) -> bool: ...

@final
class Repo:
    @property
    def did(self) -> str: ...
    @property
    def rev(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def invalid_records(self) -> int: ...
    def records(self, collection: str | None = None, *, progress: bool = False) -> Iterator[Record]: ...
    def get(self, path: str) -> Record | None: ...
    def collections(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __getitem__(self, key: str, /) -> Record: ...
    def __contains__(self, key: str, /) -> bool: ...

def verify_repo(
    car: bytes | os.PathLike[str],
    key: str | None = None,
    *,
    doc: Any = None,
    plc_log: Any = None,
    did: str | None = None,
    strict_records: bool = False,
    threads: int = 1,
) -> Repo: ...
def verify_record(
    slice: bytes | os.PathLike[str],
    path: str,
    key: str | None = None,
    *,
    doc: Any = None,
    plc_log: Any = None,
    did: str | None = None,
    strict_records: bool = False,
) -> RecordProof: ...
