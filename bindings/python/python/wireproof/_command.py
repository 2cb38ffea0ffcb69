"""The command `wireproof`."""

from __future__ import annotations

import os
import signal
import sys

from . import _wireproof


def main() -> None:
    """Run the command with the arguments of the process, and end the process with its exit code."""
    run = getattr(_wireproof, "run_command", None)
    if run is None:
        sys.exit("wireproof: this module was built without the command")
    # As in a program of its own: the command decides what an interrupt does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = run(sys.argv)
    # Threads of a run that was cut short do not hold up the end.
    os._exit(code)
