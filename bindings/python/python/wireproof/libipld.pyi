from typing import Any

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

def decode_car(data: bytes, *, verify: bool = True) -> tuple[dict[str, Any], dict[bytes, Any]]:
    """Decode a CAR archive of DAG-CBOR blocks: its header, and each block by the bytes of its CID.

    Args:
        data: the archive as `bytes`.
        verify: compare the SHA-256 of each block with its CID, and each length with what it frames. `False` is what libipld does.

    Raises:
        CarError: the archive is malformed, or a block has another hash.
    """
def decode_cid(data: str | bytes | bytearray) -> dict[str, Any]:
    """Decode a CID from its text or its bytes: `version`, `codec`, and `hash` with `code`, `size` and `digest`.

    Raises:
        ValueError: it is not a CID.
    """
def decode_dag_cbor(data: bytes) -> Any:
    """Decode one DAG-CBOR item: maps as `dict`, links as the `bytes` of their CIDs.

    Raises:
        DecodeError: the bytes are not exactly one canonical item.
        RecursionError: it has more containers inside each other than Python allows.
    """
def decode_dag_cbor_multi(data: bytes) -> list[Any]:
    """Decode DAG-CBOR items that follow each other, such as the header and the payload of a frame.

    Raises:
        DecodeError: an item is not canonical.
    """
def decode_multibase(data: str) -> tuple[str, bytes]:
    """Decode multibase text: the code of its base, and the bytes.

    Raises:
        ValueError: the base is unknown, or the text is not of it.
    """
def encode_cid(data: str | bytes | bytearray) -> str:
    """Encode a CID as text: base32 for version 1, base58 for version 0.

    Raises:
        ValueError: it is not a CID.
    """
def encode_dag_cbor(data: Any) -> bytes:
    """Encode an object as canonical DAG-CBOR. `bytes` that are a CID become a link.

    Raises:
        ValueError: the object, or something in it, has no form in DAG-CBOR.
        RecursionError: it has more containers inside each other than Python allows.
    """
def encode_multibase(code: str, data: str | bytes | bytearray) -> str:
    """Encode bytes, or the UTF-8 of text, as multibase. `code` is the letter of the base.

    Raises:
        ValueError: the base is unknown, or `data` is of another type.
    """
