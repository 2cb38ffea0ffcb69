"""The exceptions of the package."""

from __future__ import annotations


class WireproofError(ValueError):
    """Bytes, or what they claim, break a rule.

    Attributes:
        code: the stable name of the rule, as in the list of codes.
        offset: the place in bytes from the start of the input, if there is one.
    """

    code: str
    offset: int | None

    def __init__(self, message: str, code: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.offset = offset

    def __reduce__(self):
        return type(self), (str(self), self.code, self.offset)


class DecodeError(WireproofError):
    """Bytes are not what they should be: not canonical DAG-CBOR, not a frame, not an event."""


class CarError(WireproofError):
    """An archive of blocks is malformed, or a block does not have the hash that its CID names."""


class Rejection(WireproofError):
    """Well-formed content is not proved: a signature, a tree, an operation or a chain is wrong."""


class ArchiveError(OSError):
    """An archive cannot be opened or read.

    Attributes:
        code: the stable name of the fault.
    """

    code: str

    def __init__(self, message: str, code: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)


class IdentityError(WireproofError):
    """A name has no account, or the account does not claim the name.

    Attributes:
        code: `identity/not-found`, `identity/deleted`, `identity/handle` (the account claims another handle or none),
            `identity/name` (no account can have this name), `identity/document` (there is no DID document, or it lacks a key or a server), or
            `identity/answer` (the source gave another answer).
    """


class NetworkError(ConnectionError):
    """A host, the directory or the DNS cannot be reached, a host does not send a repository, or a stream has ended for good.

    Attributes:
        code: `identity/unavailable` (a later attempt may succeed), `network/repository` (the host does not send the repository), or
            `network/stream` (no host is left to follow).
    """

    code: str

    def __init__(self, message: str, code: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)
