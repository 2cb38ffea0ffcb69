"""Our own Python package as a runner. Its calls are in decode.py and verdicts.py, the protocol in ../python-shell.

The argument is the folder of the package.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / 'python-shell'))
sys.path.append(sys.argv[1])

import decode
import verdicts
import wireproof
from frames import Frames
from shell import serve

serve(
    engine=f'wireproof {wireproof.__version__} in Python',
    version=wireproof.__version__,
    checks={'decode': decode.CHECKS, **verdicts.CHECKS},
    loaders={
        'decode': lambda variant, files: Frames(decode.VARIANTS[variant], files),
        **verdicts.LOADERS,
    },
)
