"""Builds the package with maturin, and puts the command `wireproof` into the wheel.

`WIREPROOF_COMMAND` names a command that is built already, for another target for example. Without it cargo builds one for this
machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin

PACKAGE = Path(__file__).resolve().parent.parent
WORKSPACE = PACKAGE.parent.parent
SCRIPTS = PACKAGE / "wireproof.data" / "scripts"

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_sdist(sdist_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.build_sdist(sdist_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _place_command()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _place_command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def _place_command() -> None:
    """Copies the command to the place from which maturin takes it."""
    command = os.environ.get("WIREPROOF_COMMAND") or _build_command()
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    shutil.copy2(command, SCRIPTS / Path(command).name)


def _build_command() -> Path:
    if not (WORKSPACE / "crates" / "cli").is_dir():
        raise RuntimeError("the sources of the command are missing: set WIREPROOF_COMMAND to one that is built")
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    build = ["cargo", "build", "--locked", "--release", "-p", "wireproof-cli"]
    subprocess.run(build, cwd=WORKSPACE, check=True)
    return target / "release" / ("wireproof.exe" if sys.platform == "win32" else "wireproof")
