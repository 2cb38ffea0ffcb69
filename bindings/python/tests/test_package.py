"""The package has the types, the documentation and the version that it states."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wireproof
from stub_docstrings import docstring, documented, module_of, with_docstrings
from wireproof import _wireproof

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


@pytest.mark.parametrize("name", [*MODULES, "wireproof._deliver", "wireproof._follow", "wireproof._resolve", "wireproof._wireproof"])
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


STUBS = sorted(Path(wireproof.__file__).parent.glob("*.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_what_a_stub_has_is_documented_there_as_at_run_time(stub: Path) -> None:
    names = {name for name, _, _ in documented(stub)}
    assert [name for name, _, value in documented(stub) if not docstring(value)] == []
    assert with_docstrings(stub) == stub.read_text(), "run stub_docstrings.py over the stubs"
    module = importlib.import_module(module_of(stub))
    for public in getattr(module, "__all__", []):
        value = getattr(module, public)
        if getattr(value, "__module__", "").startswith("wireproof") and public not in names:
            # It is taken from a module that has it in its own stub or source.
            assert docstring(value), public


OPTIONS = _wireproof._policy_defaults()


def test_options_are_named_with_their_defaults() -> None:
    signatures = [inspect.signature(wireproof.Judge), inspect.signature(wireproof.follow)]
    for signature in signatures:
        kinds = {parameter.kind for parameter in signature.parameters.values()}
        assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
        assert {name: signature.parameters[name].default for name in OPTIONS} == OPTIONS
        assert {signature.parameters[name].kind for name in OPTIONS} == {inspect.Parameter.KEYWORD_ONLY}
    judge = signatures[0].parameters
    wireproof.Judge({}, **{name: of.default for name, of in judge.items() if of.kind is of.KEYWORD_ONLY})
    for name, value in OPTIONS.items():
        wireproof.Judge({}, **{name: value})
        wireproof.follow("bsky.network", **{name: value}).close()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_documented_in_the_class_and_typed_in_the_stub(name: str) -> None:
    of_judge, of_follow = (re.search(rf"\n +{name}: (.*)", of.__doc__) for of in (wireproof.Judge, wireproof.follow))
    assert of_judge and of_follow and of_judge[1].split()[:6] == of_follow[1].split()[:6]
    kind = {bool: "bool", int: "int", float: "float"}[type(OPTIONS[name])]
    for stub in ("__init__.pyi", "_follow.pyi"):
        text = (Path(wireproof.__file__).parent / stub).read_text()
        assert f" {name}: {kind} = {OPTIONS[name]}," in text


def test_an_unknown_option_is_a_type_error_that_names_it() -> None:
    for call in (lambda: wireproof.Judge({}, accept_all=True), lambda: wireproof.follow("bsky.network", accept_all=True)):
        with pytest.raises(TypeError, match="'accept_all'"):
            call()


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
