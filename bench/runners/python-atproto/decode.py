"""Decodes frames with libipld, the decoder of the Python SDK `atproto`.

It is called directly: the SDK's Frame.from_bytes and CAR.from_bytes make the same two calls and wrap the
results, and its message models cost additional time.
"""

from importlib.metadata import version

from frames import WITH_BLOCKS
from libipld import decode_car, decode_dag_cbor, decode_dag_cbor_multi


def decode_frame(frame):
    """The documented call: the library splits the CAR and decodes every block, into a dict by CID."""
    header, payload = decode_dag_cbor_multi(frame)
    if header.get('t') not in WITH_BLOCKS:
        return ()
    _, blocks = decode_car(payload['blocks'])
    return blocks.values()


def decode_frame_split_by_hand(frame):
    """The CAR is split in Python and the library is called once a block, which is faster."""
    header, payload = decode_dag_cbor_multi(frame)
    if header.get('t') not in WITH_BLOCKS:
        return ()
    return decode_blocks(payload['blocks'])


def decode_blocks(car):
    header_len, offset = read_varint(car, 0)
    offset, end = offset + header_len, len(car)
    if decode_dag_cbor(car[offset - header_len : offset])['version'] != 1:
        raise ValueError('not a CAR of version 1')
    values = []
    while offset < end:
        length, start = read_varint(car, offset)
        offset = start + length
        prefix = car[start : start + 4]
        if length < CID_LEN or offset > end or prefix not in CID_PREFIXES:
            raise ValueError('a section of the CAR is not a whole block with a CID of version 1 and SHA-256')
        is_dag_cbor = prefix == DAG_CBOR_CID
        values.append(decode_dag_cbor(car[start + CID_LEN : offset]) if is_dag_cbor else NOT_DECODED)
    return values


def read_varint(data, offset):
    number = shift = 0
    while (byte := data[offset]) >= 0x80:
        number |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
    return number | byte << shift, offset + 1


CID_LEN = 36
DAG_CBOR_CID = b'\x01\x71\x12\x20'
RAW_CID = b'\x01\x55\x12\x20'
CID_PREFIXES = (DAG_CBOR_CID, RAW_CID)
NOT_DECODED = object()  # stands for a block in which nothing is counted

VARIANTS = {'unverified': decode_frame, 'unverified/split-by-hand': decode_frame_split_by_hand}

# Links are read, but bytes after the CID in a link are not detected, hence no `link-shape`; single-precision floats
# are accepted, hence no `float-canonical`. The bound on depth is Python's own recursion limit.
BLOCK_CHECKS = ['key-order', 'duplicate-keys', 'utf8', 'indefinite-lengths', 'only-tag-42', 'depth-bound']

# In `decode_car` some bytes after the item of a block are not detected.
CHECKS = {'unverified': BLOCK_CHECKS, 'unverified/split-by-hand': [*BLOCK_CHECKS, 'trailing-bytes']}

VERSION = version('atproto')
ENGINE = f'libipld {version("libipld")}, the decoder of atproto {VERSION}, called directly'
