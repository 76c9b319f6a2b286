"""The rules of the house, held by a test: short files, short functions, words about all that is public."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]

LONGEST_FILE = 400
LONGEST_FUNCTION = 60

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function | ast.Lambda]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function | ast.Lambda):
            yield node


def public(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """What may be used from outside: names without underscore, and what such classes hold."""
    for inner in node.body:
        if isinstance(inner, Definition) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public(inner)


def test_there_is_something_to_look_at() -> None:
    assert len(FILES) > 30
    assert sum(1 for path in FILES for _ in public(parsed(path))) > 100


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    long = [
        function.name
        for function in functions(path)
        if isinstance(function, Function)
        and (function.end_lineno or 0) - function.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_that_is_public_is_described(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), "the module itself"
    assert [node.name for node in public(parsed(path)) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_function_takes_whatever_comes(path: Path) -> None:
    assert [function.lineno for function in functions(path) if function.args.kwarg] == []


def test_every_file_has_a_name_that_says_something() -> None:
    nameless = {"utils", "util", "misc", "common", "helpers", "helper", "base"}
    assert [name for name in NAMES if nameless & {Path(part).stem for part in Path(name).parts}] == []


def texts() -> Iterator[Path]:
    """All text that belongs to the project."""
    folders = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", ".ci")]
    candidates = [path for path in ROOT.iterdir() if path.is_file()]
    candidates += [
        path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()
    ]
    yield from (path for path in candidates if "__pycache__" not in path.parts and is_text(path))


def is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


# In pieces, or this file would break the rule itself.
MACHINE = re.compile(r"(?<![\w.$}])/(?:" + "|".join(["work", "root", "tmp"]) + r")/")


def test_no_text_names_a_folder_of_one_machine() -> None:
    found = []
    for path in texts():
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(lines, 1)
            if MACHINE.search(line)
        ]
    assert found == []
    assert MACHINE.search("see " + "/".join(["", "root", "me"]))
