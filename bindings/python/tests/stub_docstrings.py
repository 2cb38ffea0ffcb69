"""Copies the docstrings of the package at run time into its stubs.

`python bindings/python/tests/stub_docstrings.py bindings/python/python/wireproof`, over the installed package, writes them into
the stubs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def module_of(stub: Path) -> str:
    """The module of a stub."""
    return "wireproof" if stub.stem == "__init__" else f"wireproof.{stub.stem}"


def documented(stub: Path) -> Iterator[tuple[str, ast.AST, Any]]:
    """The public classes, functions, methods and properties of a stub: name, node, and what has the name at run time."""
    module = importlib.import_module(module_of(stub))
    for node in ast.parse(stub.read_text()).body:
        if not isinstance(node, DEFINITIONS) or node.name.startswith("_"):
            continue
        value = getattr(module, node.name)
        yield node.name, node, value
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, DEFINITIONS) and not member.name.startswith("_"):
                yield f"{node.name}.{member.name}", member, inspect.getattr_static(value, member.name)


def with_docstrings(stub: Path) -> str:
    """The text of a stub with these docstrings and no others."""
    lines = stub.read_text().splitlines()
    # From the end, so that the numbers of the lines before stay.
    for _, node, value in reversed(list(documented(stub))):
        text = docstring(value)
        if text is None:
            continue
        first = node.body[0]
        has_one = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        indent = " " * (node.col_offset + 4)
        if isinstance(node, ast.ClassDef):
            start = first.lineno - 1 if has_one else _first_line(first) - 1
            lines[start : first.end_lineno if has_one else start] = _literal(text, indent)
        elif has_one:
            lines[first.lineno - 1 : first.end_lineno] = _literal(text, indent)
        else:
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            lines[first.lineno - 1 : first.end_lineno] = [head, *_literal(text, indent)]
    return "\n".join(lines) + "\n"


def docstring(value: Any) -> str | None:
    """The docstring of something itself, not of a class before it."""
    text = getattr(value, "__doc__", None)
    return None if text is None else inspect.cleandoc(text)


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _literal(text: str, indent: str) -> list[str]:
    quote = 'r"""' if "\\" in text else '"""'
    first, *rest = text.splitlines()
    if not rest:
        return [f'{indent}{quote}{first}"""']
    return [f"{indent}{quote}{first}", *(f"{indent}{line}" if line else "" for line in rest), f'{indent}"""']


DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.pyi")):
        path.write_text(with_docstrings(path))
