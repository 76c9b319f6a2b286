"""METEOR's resources: where they are found, and an index of them that is made once and mapped afterwards.

The index is known by the SHA-256 of what it was made from. To hash 68 MB at every start would be slow, so a
note remembers the hash by the files' places, sizes, inodes and times; whatever changes a file changes those.
An index is used only if the checksums of all its parts are right, and made again otherwise.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.meteor.extras import HINT, source_digest, stem_function
from tellapart.metrics.meteor.index import Index, Watch, build_index
from tellapart.metrics.meteor.normalizer import Normalizer
from tellapart.metrics.meteor.words import Ints, Rows, Synonyms
from tellapart.storage import cache_folder, new_folder, write_text

JAR = "meteor-1.5.jar"
PARAPHRASES = "paraphrase-en.gz"
ABANDONED = 3600  # seconds after which nobody is writing an index any more
LAYOUT = source_digest("index.py", "words.py")  # an index that other code laid out is another

_ARRAYS = (
    "functions", "stems", "synset_starts", "synsets", "base_starts", "bases",
    "node_words", "node_children", "table_starts", "table",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourceFiles:
    """The two files that hold all METEOR knows about English."""

    jar: Path
    paraphrases: Path


@dataclass(frozen=True, slots=True)
class PhraseTree:
    """All phrases of the paraphrase table as paths from node 0, and the paraphrases under each."""

    words: Ints  # (nodes,): the word on the edge that leads to a node
    children: Ints  # (nodes + 1,): where the children of a node begin
    table: Rows  # node -> the nodes of its paraphrases


@dataclass(frozen=True, slots=True)
class Resources:
    """What METEOR knows about English."""

    normalizer: Normalizer
    numbers: dict[str, int]  # of the words that any list knows
    functions: NDArray[np.bool_]
    stems: Ints  # the keys of the words' stems
    synonyms: Synonyms
    phrases: PhraseTree


def unwatched(done: int, total: int) -> None:
    """Show no progress."""


def find_resources(path: Path | None = None) -> ResourceFiles:
    """The files in a folder that the user names, or else in the installed pycocoevalcap."""
    if path is None:
        found = importlib.util.find_spec("pycocoevalcap")
        places = [Path(place) / "meteor" for place in (found and found.submodule_search_locations) or ()]
        problem, hint = "METEOR's resources are not there: pycocoevalcap is not installed", HINT
    else:
        places = [path]
        problem = f"{path}: no METEOR resources there"
        hint = f"name a folder that holds {JAR}, and {PARAPHRASES} beside it or in its folder data"
    for place in places:
        for folder in (place / "data", place):
            files = ResourceFiles(place / JAR, folder / PARAPHRASES)
            if files.jar.is_file() and files.paraphrases.is_file():
                return files
        problem = f"{place}: METEOR's resources are not there, or not whole"
    raise TellapartError(problem, hint=hint)


def load_resources(files: ResourceFiles, *, watch: Watch = unwatched) -> Resources:
    """The resources, mapped from the index; the first time they are read and indexed, which takes a while."""
    stem_function()  # the index holds stems: a stemmer of another version must not meet it
    folder = cache_folder() / "meteor"
    with _explained(folder):
        place = folder / fingerprint(files)
        index = _open_index(place)
        if index is None:
            _sweep(folder)
            built = build_index(files.jar, files.paraphrases, watch=watch)
            with new_folder(place) as temporary:
                _write_index(temporary, built)
            index = _open_index(place) or built
    return _resources(index)


def _sweep(folder: Path) -> None:
    """Remove what was left half written by a program that was killed; another may be writing right now."""
    for left in folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # the other has finished meanwhile
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TellapartError(
            f"{error.filename or folder}: METEOR's resources cannot be read or indexed ({error.strerror})",
            hint="the index needs 100 MB of disk space; TELLAPART_CACHE names another folder for it",
        ) from error


def content_hash(files: ResourceFiles) -> str:
    """What the two files hold, as a hash."""
    digest = hashlib.sha256()
    for file in (files.jar, files.paraphrases):
        with file.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def fingerprint(files: ResourceFiles) -> str:
    """What an index of these files is known by; their content is hashed only if they are not known yet."""
    folder = cache_folder() / "meteor"
    stamps = []
    for file in (files.jar, files.paraphrases):
        stamp = file.stat()
        stamps.append(
            [os.fspath(file.resolve()), stamp.st_size, stamp.st_ino, stamp.st_mtime_ns, stamp.st_ctime_ns]
        )
    note = folder / "known" / hashlib.sha256(json.dumps([LAYOUT, stamps]).encode()).hexdigest()[:32]
    if note.is_file() and len(known := note.read_text(encoding="ascii", errors="replace")) == 32:
        return known
    found = hashlib.sha256(f"{LAYOUT}\n{content_hash(files)}".encode()).hexdigest()[:32]
    write_text(note, found)
    return found


def _write_index(folder: Path, index: Index) -> None:
    for name, array in index.arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    (folder / "words.txt").write_bytes("\n".join(index.words).encode("utf-8"))
    (folder / "prefixes.json").write_text(json.dumps(index.prefixes), encoding="utf-8")
    sums = {file.name: _checksum(file) for file in sorted(folder.iterdir())}
    (folder / "checksums.json").write_text(json.dumps(sums), encoding="utf-8")


def _open_index(folder: Path) -> Index | None:
    """The index in that folder, or None if there is none that is whole."""
    try:
        sums: Any = json.loads((folder / "checksums.json").read_text(encoding="utf-8"))
        if {*sums} != {*(f"{name}.npy" for name in _ARRAYS), "words.txt", "prefixes.json"}:
            return None
        if any(_checksum(folder / name) != expected for name, expected in sums.items()):
            return None
        arrays = {
            # As a plain array: compiled code knows no other kind.
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in _ARRAYS
        }
        words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
        return Index(words, json.loads((folder / "prefixes.json").read_text(encoding="utf-8")), arrays)
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as handle:
        while block := handle.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _resources(index: Index) -> Resources:
    numbers = {word: number for number, word in enumerate(index.words)}
    arrays: dict[str, Any] = dict(index.arrays)
    return Resources(
        normalizer=Normalizer(index.prefixes),
        numbers=numbers,
        functions=arrays["functions"],
        stems=arrays["stems"],
        synonyms=Synonyms(
            numbers,
            synsets=Rows(arrays["synset_starts"], arrays["synsets"]),
            bases=Rows(arrays["base_starts"], arrays["bases"]),
        ),
        phrases=PhraseTree(
            arrays["node_words"],
            arrays["node_children"],
            Rows(arrays["table_starts"], arrays["table"]),
        ),
    )
