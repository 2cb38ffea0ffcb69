"""The package has the types, the documentation and the version that it states."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wireproof

MODULES = [
    "wireproof",
    "wireproof.archive",
    "wireproof.arrow",
    "wireproof.compat",
    "wireproof.errors",
    "wireproof.libipld",
    "wireproof.nostr",
]

#: Those that need other packages.
CLUSTER_MODULES = ["wireproof.ray", "wireproof.spark"]


@pytest.mark.parametrize("name", [*MODULES, "wireproof._follow", "wireproof._resolve", "wireproof._wireproof"])
def test_examples_run(name: str) -> None:
    if name in ("wireproof.arrow", "wireproof.nostr"):
        pytest.importorskip("pyarrow")
    tested = doctest.testmod(importlib.import_module(name))
    assert tested.failed == 0


@pytest.mark.parametrize("name", [*MODULES, *CLUSTER_MODULES])
def test_everything_public_is_documented(name: str) -> None:
    if name in CLUSTER_MODULES:
        pytest.importorskip("pyarrow")
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        value = getattr(module, public)
        if inspect.ismodule(value) or isinstance(value, str):
            continue
        assert value.__doc__, public
        if inspect.isclass(value) and value.__module__.startswith("wireproof") and not issubclass(value, Exception):
            for member, of_class in vars(value).items():
                if not member.startswith("_"):
                    assert of_class.__doc__, f"{public}.{member}"


def test_the_stubs_are_those_of_the_modules(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest")
    allowed = tmp_path / "allowed"
    # The native module is private: its names are checked where they are public.
    allowed.write_text("wireproof\\._wireproof\nwireproof\\._wireproof\\..*\n")
    root = Path(wireproof.__file__).parent.parent
    arguments = ["-m", "mypy.stubtest", "wireproof", "--allowlist", str(allowed), "--ignore-unused-allowlist"]
    environment = os.environ | {"MYPYPATH": str(root), "PYTHONPATH": str(root)}
    checked = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout


def test_the_version_is_that_of_the_command(command: str) -> None:
    printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert wireproof.__version__ in printed


def test_the_import_loads_nothing_that_is_not_needed() -> None:
    program = "import sys; before = set(sys.modules); import wireproof; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    libraries = {"asyncio", "typing", "numpy", "pandas", "polars", "pyarrow", "json", "tqdm"}
    assert libraries.isdisjoint(loaded.split())


def test_a_second_interpreter_in_the_process_is_refused() -> None:
    program = """
import wireproof
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
result = interpreters.run_string(other, "import wireproof")
print(result)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    assert "ImportError" in said and "support" in said and "subinterpreters" in said, said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_decodes(exported) -> None:
    wireproof.libipld.decode_car(exported.car)
    child = os.fork()
    if child == 0:
        proved = wireproof.verify_repo(exported.car, exported.key)
        os._exit(0 if len(proved) == 300 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_command_is_the_named_one_that_of_the_module_or_the_one_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from wireproof import _command

    monkeypatch.setenv("WIREPROOF_COMMAND", "/named")
    assert _command.program() == ["/named"]
    monkeypatch.delenv("WIREPROOF_COMMAND")
    monkeypatch.setattr(_command._wireproof, "run_command", print, raising=False)
    assert _command.program() == [sys.executable, "-m", "wireproof._command"]
    monkeypatch.delattr(_command._wireproof, "run_command")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no `wireproof` is on the path"):
        _command.program()
    (tmp_path / "wireproof").touch(0o755)
    assert _command.program() == [str(tmp_path / "wireproof")]


def test_a_module_without_the_command_says_so_as_a_program() -> None:
    if hasattr(wireproof._wireproof, "run_command"):
        pytest.skip("the module has the command")
    ended = subprocess.run([sys.executable, "-m", "wireproof._command"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "wireproof: this module was built without the command\n")
