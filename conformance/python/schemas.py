"""The schemas of the formats, and the compilers that are installed beside this Python."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/formats/nostr"


def compiler(name):
    return Path(sys.executable).parent / name
