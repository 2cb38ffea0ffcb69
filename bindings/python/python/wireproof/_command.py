"""The command `wireproof`."""

from __future__ import annotations

import os
import shutil
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


def program() -> list[str]:
    """The beginning of the arguments of a process of the command: the program that `WIREPROOF_COMMAND` names, this module, or
    `wireproof` on the path."""
    named = os.environ.get("WIREPROOF_COMMAND")
    if named is None and hasattr(_wireproof, "run_command"):
        return [sys.executable, "-m", "wireproof._command"]
    found = named or shutil.which("wireproof")
    if found is None:
        raise FileNotFoundError("this module was built without the command, and no `wireproof` is on the path")
    return [found]


if __name__ == "__main__":
    main()
