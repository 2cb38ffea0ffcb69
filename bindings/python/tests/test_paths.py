"""A path is text or an `os.PathLike`, wherever one is an argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wireproof
from conftest import Exported

PACKAGE = Path(wireproof.__file__).parent


class Located:
    """An `os.PathLike` that is no `Path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


FORMS = {"str": str, "Path": Path, "PathLike": Located}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    return FORMS[request.param]


def test_verify_repo(form, exported: Exported) -> None:
    assert len(wireproof.verify_repo(form(exported.path), exported.key)) == 300


def test_verify_record(form, exported: Exported) -> None:
    proof = wireproof.verify_record(form(exported.path), "app.test.none/self", exported.key)
    assert proof.record is None and proof.did == exported.did


def test_verify_collections(form, exported: Exported) -> None:
    proof = wireproof.verify_collections(form(exported.path), ["app.test.none"], exported.key)
    assert len(proof) == 0


def test_repository_records(form, exported: Exported) -> None:
    assert "rkey: Utf8" in repr(wireproof.repository_records(form(exported.path), exported.key))


def test_read_frames(form, frames: Path) -> None:
    assert len(list(wireproof.read_frames(form(frames)))) == 300


def test_judge(form, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    assert wireproof.Judge({}, form(path)).state().path == path


def test_follow(form, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with wireproof.follow("http://localhost:1", state=form(path), development=True):
        pass
    assert path.exists()


def test_deliver(form, tmp_path: Path) -> None:
    state, secret = tmp_path / "state", tmp_path / "secret"
    state.write_text("no folder")
    secret.write_text("a secret of at least 24 bytes\n")
    with pytest.raises(OSError, match="state"):
        wireproof.deliver(
            "http://localhost:1",
            to="http://localhost:1/hook",
            state=form(state),
            webhook_secret=form(secret),
            development=True,
        )


def test_archive(form, tmp_path: Path) -> None:
    with pytest.raises(wireproof.ArchiveError) as missing:
        wireproof.Archive(form(tmp_path / "none"))
    assert missing.value.code == "archive/missing"


@pytest.mark.parametrize("name", ["reverify", "transform", "audit"])
def test_archives_on_ray(form, name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    ray = pytest.importorskip("wireproof.ray")
    to = form(tmp_path / "to")
    arguments = [form(tmp_path / "none"), *(["SELECT 1", to] if name == "transform" else [to])]
    with pytest.raises(wireproof.ArchiveError) as missing:
        getattr(ray, name)(*arguments)
    assert missing.value.code == "archive/missing"


def test_ray_makes_the_same_address_of_every_form(form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    ray = pytest.importorskip("wireproof.ray")
    called = []
    monkeypatch.setattr(ray._backfill, "run", lambda work, *_: called.append(work))
    ray.backfill(form(tmp_path), hosts=["pds.example.com"])
    assert [work.archive for work in called] == [str(tmp_path)]
    assert ray._address(form(tmp_path)) == str(tmp_path)


def test_archives_on_spark(form, tmp_path: Path) -> None:
    spark = pytest.importorskip("wireproof.spark")
    with pytest.raises(wireproof.ArchiveError) as missing:
        spark.reverify(None, form(tmp_path / "none"))
    assert missing.value.code == "archive/missing"


def test_no_other_function_takes_a_path_and_none_takes_one_form_alone() -> None:
    found = {}
    for source in sorted(PACKAGE.rglob("*.py*")):
        if source.suffix in (".py", ".pyi") and not (source.suffix == ".py" and source.with_suffix(".pyi").exists()):
            found |= path_arguments(source)
    assert set(found) == TESTED
    for name, annotation in found.items():
        assert re.search(r"\bstr \| os\.PathLike\[str\]", annotation), f"{name}: {annotation}"


def path_arguments(source: Path) -> dict[str, str]:
    """The arguments of public functions that are paths, with their annotations."""
    found = {}

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, child.name)
            elif isinstance(child, ast.FunctionDef) and (not child.name.startswith("_") or child.name in CONSTRUCTORS):
                arguments = child.args
                for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
                    if "PathLike" in annotation:
                        name = owner if child.name in CONSTRUCTORS else child.name
                        module = source.parent.name if source.stem == "__init__" else source.stem
                        found[f"{module}.{name}.{argument.arg}"] = annotation

    visit(ast.parse(source.read_text()), "")
    return found


CONSTRUCTORS = ("__init__", "__new__")

#: The arguments whose forms are tested above.
TESTED = {
    "wireproof.verify_repo.car",
    "wireproof.verify_record.slice",
    "wireproof.verify_collections.slice",
    "wireproof.read_frames.path",
    "wireproof.Judge.state",
    "_follow.follow.state",
    "_deliver.deliver.state",
    "_deliver.deliver.webhook_secret",
    "arrow.repository_records.car",
    "archive.Archive.uri",
    "spark.reverify.archive",
    "ray.backfill.archive",
    "ray.reverify.archive",
    "ray.reverify.to",
    "ray.transform.archive",
    "ray.transform.to",
    "ray.audit.archive",
    "ray.audit.to",
}
