"""Verifies commits with the Python SDK `atproto`. libipld decodes and encodes, and the SDK's classes
for the two curves pass the rest to `cryptography`, which is OpenSSL.

The classes take the key's bytes. The SDK's verify_signature takes a did:key, and reads the point twice.
"""

from importlib.metadata import version

from atproto_crypto.algs import P256, Secp256k1
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.hashes import SHA256
from libipld import decode_dag_cbor, encode_dag_cbor

from corpora import read_commits
from shell import log_refusal


class Commits:
    """The signed commits of files, each with its check."""

    def __init__(self, variant, files):
        commits = [commit for path in files for commit in read_commits(path)]
        self.units = len(commits)
        self.bytes = sum(len(commit) for _, commit, _ in commits)
        self.checks = [(curve, prepared(variant, curve, *commit)) for curve, *commit in commits]

    def prove(self):
        counts = dict.fromkeys(('valid_k256', 'valid_p256', 'invalid', 'errors'), 0)
        for index, (curve, check) in enumerate(self.checks):
            try:
                counts[f'valid_{curve}' if check() else 'invalid'] += 1
            except Exception as refusal:
                counts['errors'] += 1
                log_refusal(index, counts['errors'], refusal)
        return {'commits': self.units, **counts}

    def run(self):
        for _, check in self.checks:
            try:
                check()
            except Exception:
                pass  # counted by `prove`


def prepared(variant, curve, commit, point):
    """The measured work of a unit. A unit that cannot be prepared is refused in each pass."""
    try:
        return PREPARE[variant](curve, commit, point)
    except Exception as refusal:
        return refuse(refusal)


def refuse(refusal):
    def check():
        raise refusal

    return check


def prepare_full(curve, commit, point):
    algorithm = ALGORITHMS[curve]

    def check():
        fields = decode_dag_cbor(commit)
        signature = fields.pop('sig')
        return algorithm().verify_signature(point, encode_dag_cbor(fields), signature)

    return check


def prepare_crypto(curve, commit, point):
    algorithm = ALGORITHMS[curve]
    message, signature = cut_signature(commit)
    return lambda: algorithm().verify_signature(point, message, signature)


def prepare_preparsed(curve, commit, point):
    """The part of the SDK's verify_signature after parsing the key; the SDK has no method for it."""
    algorithm = ALGORITHMS[curve]()
    message, signature = cut_signature(commit)
    key = algorithm.get_elliptic_curve_public_key(point)

    def check():
        try:
            key.verify(algorithm._encode_signature(signature), message, ECDSA(SHA256()))
            return True
        except InvalidSignature:
            return False

    return check


def cut_signature(commit):
    """Splits a canonical commit: the message is the same map without the entry `sig`."""
    before, found, rest = commit.partition(SIG_KEY)
    if not found or len(rest) < SIG_LEN:
        raise ValueError('a commit holds a signature of 64 bytes')
    return bytes((before[0] - 1,)) + before[1:] + rest[SIG_LEN:], rest[:SIG_LEN]


ALGORITHMS = {'p256': P256, 'k256': Secp256k1}

# The key `sig` and the head of 64 bytes. It ends in `@`, which no DID holds, so nothing before it in a
# commit can be mistaken for it.
SIG_KEY = b'\x63sig\x58\x40'
SIG_LEN = 64

PREPARE = {'full': prepare_full, 'crypto': prepare_crypto, 'preparsed': prepare_preparsed}

# No `strict-cbor`: integers in more bytes than needed are accepted.
VARIANTS = {variant: ['low-s'] for variant in PREPARE}

ENGINE = f'atproto_crypto on cryptography {version("cryptography")}'
