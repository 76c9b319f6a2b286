"""The libraries that METEOR alone needs: an error that says how to install them, and functions compiled once.

Compiled code is kept in tellapart's cache folder, where it is found again by the content of its sources: that
works as well where the package itself lies in a folder that nobody may write to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeVar, cast

from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.storage import cache_folder

HINT = "pip install 'tellapart[meteor]'"

Function = TypeVar("Function", bound=Callable[..., object])


def must_compile() -> bool:
    """Whether the first call will compile, which takes half a minute: nothing is remembered yet."""
    return not any(_folder().rglob("*.nbi"))


def compiled(function: Function) -> Function:
    """The function as machine code, compiled at its first call and remembered on disk for later runs."""
    numba = import_extra("numba", needed_by="METEOR", extra="meteor")
    if not _is_writable(_folder()):
        # Each run compiles again: numba would else remember it beside the source, whatever else has changed.
        return cast("Function", numba.njit(nogil=True)(function))
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = os.fspath(_folder())
    try:
        return cast("Function", numba.njit(cache=True, nogil=True)(function))
    finally:
        numba.config.CACHE_DIR = before


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _folder() -> Path:
    return cache_folder() / "compiled" / _sources()


def source_digest(*names: str) -> str:
    """A digest of source files of this package: what was made by other code is known by another name."""
    content = b"".join((Path(__file__).parent / name).read_bytes() for name in names)
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _sources() -> str:
    """A digest of all that is compiled here: compiled code holds copies of what other files define."""
    contents = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    compiled_ones = [content for content in contents if b"\n@compiled\n" in content]
    return hashlib.sha256(b"".join(compiled_ones)).hexdigest()[:16]


def stem_function() -> Callable[[str], str]:
    """The English Snowball stemmer as the jar has it, which is that of snowballstemmer 2."""
    library = import_extra("snowballstemmer.english_stemmer", needed_by="METEOR", extra="meteor")
    version = metadata.version("snowballstemmer")
    if version.split(".")[0] != "2":
        raise TellapartError(
            f"snowballstemmer {version} cuts some words otherwise than METEOR 1.5 does",
            hint="pip install 'snowballstemmer==2.2.0'",
        )
    # Not `snowballstemmer.stemmer`, which prefers PyStemmer's rules of any version where that is installed.
    return cast("Callable[[str], str]", library.EnglishStemmer().stemWord)
