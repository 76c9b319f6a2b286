"""METEOR's word lists and its table of 5 million paraphrases, read once and laid out as arrays.

The phrases of the table become paths of one tree: a text is looked up word by word, from each of its words
on, and every node that is reached is a phrase. Nodes are numbered level by level and, within a level, in
the order of their parents and words, so that the children of a node stand side by side.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.meteor.extras import stem_function
from tellapart.metrics.meteor.words import Ints, key_of

Arrays = dict[str, NDArray[np.int32] | NDArray[np.bool_]]
Watch = Callable[[int, int], None]

BLOCK = 1 << 23  # bytes of the paraphrase table that are worked on at a time

FUNCTION_WORDS = "function/english.words"
PREFIXES = "nonbreaking/english.prefixes"
SYNSETS = "synonym/english.synsets"
EXCEPTIONS = "synonym/english.exceptions"


@dataclass(frozen=True, slots=True)
class Index:
    """Everything METEOR needs to know, as lists of words and arrays by name."""

    words: list[str]
    prefixes: dict[str, bool]  # abbreviation -> whether its dot stays only before a number
    arrays: Arrays


class _Numbers(dict[bytes, int]):
    """Numbers things in the order in which they are first asked for."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number


@dataclass(frozen=True, slots=True)
class _Table:
    """Pairs of phrases by number, in the table's order, and the phrases themselves."""

    phrases: list[bytes]
    references: Ints
    paraphrases: Ints


def build_index(jar: Path, paraphrases: Path, *, watch: Watch) -> Index:
    """Read the lists in the jar and the table of paraphrases."""
    lists = _read_lists(jar)
    total = paraphrases.stat().st_size
    table = _read_table(paraphrases, lambda done: watch(done // 2, total))  # which is half of the work
    spelled = {
        word: word.decode("utf-8", "replace") for words in _phrase_words(table.phrases) for word in words
    }
    with _explained(jar):
        words, arrays = _dictionary(lists, set(spelled.values()))
    watch(total * 3 // 4, total)
    numbers = {word: number for number, word in enumerate(words)}
    tree = _tree(table, {word: numbers[spelling] for word, spelling in spelled.items()})
    watch(total, total)
    return Index(words, _read_prefixes(lists[PREFIXES]), arrays | tree)


def _dictionary(lists: dict[str, str], table_words: set[str]) -> tuple[list[str], Arrays]:
    """All words that any list knows, in order, and what is known of each."""
    synsets = {word: line.split() for word, line in _pairs(lists[SYNSETS])}
    bases: dict[str, list[str]] = {}
    for base, forms in _pairs(lists[EXCEPTIONS]):
        for form in forms.split():
            bases.setdefault(form, []).append(base)
    functions = set(lists[FUNCTION_WORDS].splitlines())
    known = set(table_words)
    for more in (synsets, bases, *bases.values(), functions):
        # The normalizer parts words at underscores: nothing can look up an entry of several words.
        known.update(word for word in more if "_" not in word)
    words = sorted(known)
    numbers = {word: number for number, word in enumerate(words)}
    stem = stem_function()
    arrays: Arrays = {
        "functions": np.array([word in functions for word in words], np.bool_),
        "stems": np.array([key_of(stem(word)) for word in words], np.int32),
    }
    arrays["synset_starts"], arrays["synsets"] = _rows(map(int, synsets.get(word, ())) for word in words)
    arrays["base_starts"], arrays["bases"] = _rows(
        (numbers[base] for base in bases.get(word, ()) if base in numbers) for word in words
    )
    return words, arrays


@contextmanager
def _explained(jar: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError) as error:
        raise TellapartError(
            f"{jar}: METEOR's word lists cannot be read from it ({error})",
            hint="it should be meteor-1.5.jar as pycocoevalcap 1.2 has it: install that again",
        ) from error


def _read_lists(jar: Path) -> dict[str, str]:
    with _explained(jar), zipfile.ZipFile(jar) as archive:
        return {
            name: archive.read(name).decode("utf-8")
            for name in (FUNCTION_WORDS, PREFIXES, SYNSETS, EXCEPTIONS)
        }


def _read_prefixes(text: str) -> dict[str, bool]:
    entries = (line.split() for line in text.splitlines())
    return {
        entry[0]: entry[1:2] == ["#NUMERIC_ONLY#"]
        for entry in entries
        if entry and not entry[0].startswith("#")
    }


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Lines two by two: a key and what belongs to it."""
    lines = text.splitlines()
    return zip(lines[::2], lines[1::2], strict=False)


def _rows(rows: Iterable[Iterable[int]]) -> tuple[Ints, Ints]:
    starts, values = [0], list[int]()
    for row in rows:
        values.extend(row)
        starts.append(len(values))
    return np.array(starts, np.int32), np.array(values, np.int32)


def _read_table(path: Path, watch: Callable[[int], None]) -> _Table:
    """Three lines an entry: a probability, which METEOR ignores, a phrase and its paraphrase."""
    numbers = _Numbers()
    references: list[Ints] = []
    paraphrases: list[Ints] = []
    for lines in _blocks(path, watch):
        references.append(np.array(list(map(numbers.__getitem__, lines[1::3])), np.int32))
        paraphrases.append(np.array(list(map(numbers.__getitem__, lines[2::3])), np.int32))
    if not references:
        raise _damaged(path, "it is empty")
    return _Table(list(numbers), np.concatenate(references), np.concatenate(paraphrases))


def _blocks(path: Path, watch: Callable[[int], None]) -> Iterator[list[bytes]]:
    """The table's lines, whole entries at a time."""
    with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as stream:
        rest = b""
        try:
            while block := stream.read(BLOCK):
                lines = (rest + block).split(b"\n")
                whole = (len(lines) - 1) // 3 * 3
                rest = b"\n".join(lines[whole:])
                watch(raw.tell())
                if whole:
                    yield lines[:whole]
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(path, str(error)) from error
    if rest:
        yield _last_entry(path, rest)


def _last_entry(path: Path, rest: bytes) -> list[bytes]:
    lines = rest.split(b"\n")
    if len(lines) != 3 or not lines[2]:
        raise _damaged(path, "its last entry is not whole")
    return lines


def _damaged(path: Path, why: str) -> TellapartError:
    return TellapartError(
        f"{path}: METEOR's table of paraphrases cannot be read ({why})",
        hint="it should be paraphrase-en.gz as pycocoevalcap 1.2 has it: install that again",
    )


def _phrase_words(phrases: list[bytes], *, together: int = 1 << 17) -> Iterator[list[bytes]]:
    """The words of all phrases, many phrases at a time."""
    for first in range(0, len(phrases), together):
        yield b" ".join(phrases[first : first + together]).split()


def _tree(table: _Table, numbers: dict[bytes, int]) -> Arrays:
    """All phrases as paths from node 0, and under the node of each phrase the nodes of its paraphrases."""
    lengths = np.array([len(phrase.split()) for phrase in table.phrases], np.int32)
    flat = np.concatenate(
        [np.array(list(map(numbers.__getitem__, words)), np.int32) for words in _phrase_words(table.phrases)]
    )
    starts = np.cumsum(lengths) - lengths
    width = int(flat.max(initial=0)) + 1
    ends = np.zeros(len(lengths), np.int32)
    words, parents = [np.zeros(1, np.int32)], [np.zeros(0, np.int32)]
    count = 1
    for depth in range(int(lengths.max())):
        longer = np.flatnonzero(lengths > depth)
        edges = ends[longer] * np.int64(width) + flat[starts[longer] + depth]
        distinct, places = np.unique(edges, return_inverse=True)
        parents.append((distinct // width).astype(np.int32))
        words.append((distinct % width).astype(np.int32))
        ends[longer] = count + places
        count += len(distinct)
    children = 1 + np.searchsorted(np.concatenate(parents), np.arange(count + 1))
    references = ends[table.references]
    order = np.argsort(references, kind="stable")  # METEOR tries paraphrases in the order of the table
    return {
        "node_words": np.concatenate(words),
        "node_children": children.astype(np.int32),
        "table_starts": np.searchsorted(references[order], np.arange(count + 1)).astype(np.int32),
        "table": ends[table.paraphrases[order]],
    }
