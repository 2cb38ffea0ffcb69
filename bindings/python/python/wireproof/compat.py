"""Other packages on the functions of this one."""

from __future__ import annotations

import sys

from . import libipld


def install() -> None:
    """Make `import libipld` give `wireproof.libipld`.

    Call it before the first `import atproto`.

    Raises:
        RuntimeError: if another `libipld` is loaded already, as its functions are in use then.
    """
    loaded = sys.modules.get("libipld")
    if loaded is not None and loaded is not libipld:
        raise RuntimeError("libipld is loaded already: call install() before the first import of atproto")
    sys.modules["libipld"] = libipld
