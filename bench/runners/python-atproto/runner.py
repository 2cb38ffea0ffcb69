"""The Python SDK `atproto` as a runner. The calls of the peer are in decode.py and sigs.py, the protocol in ../python-shell.

There is no task `hostile` here: the SDK reads a repository with CAR.from_bytes, which hashes nothing, and has no call
that verifies a commit, a tree or a repository.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / 'python-shell'))

import decode
import sigs
from frames import Frames
from shell import serve

serve(
    engine=f'{decode.ENGINE}; {sigs.ENGINE}',
    version=decode.VERSION,
    checks={'decode': decode.CHECKS, 'sigs': sigs.VARIANTS},
    loaders={
        'decode': lambda variant, files: Frames(decode.VARIANTS[variant], files),
        'sigs': sigs.Commits,
    },
)
