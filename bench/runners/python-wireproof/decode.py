"""Decodes frames with `wireproof.libipld`, whose functions and types are those of `libipld`."""

from functools import partial

from frames import WITH_BLOCKS
from wireproof.libipld import decode_car, decode_dag_cbor_multi


def decode(frame, verify):
    header, payload = decode_dag_cbor_multi(frame)
    if header.get('t') not in WITH_BLOCKS:
        return ()
    _, blocks = decode_car(payload['blocks'], verify=verify)
    return blocks.values()


# By default the hash of each block is compared with its CID.
VARIANTS = {'verified': partial(decode, verify=True), 'unverified': partial(decode, verify=False)}

DECODED = [
    'key-order', 'duplicate-keys', 'minimal-heads', 'utf8', 'indefinite-lengths', 'float-canonical', 'only-tag-42',
    'link-shape', 'depth-bound',
]

# Without hashes some bytes after the item of a block are not detected, as in libipld.
CHECKS = {'verified': ['cid-sha256', 'trailing-bytes', *DECODED], 'unverified': DECODED}
