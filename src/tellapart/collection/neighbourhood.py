"""Whom each picture of a collection has to be told from, and whom no words could tell it from.

Pictures of the same bytes, and pictures whose vectors have a cosine of NEAR or more, are doubles of one
another: they are named as such, and no caption is asked to separate them. All others are rivals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tellapart.arrays import Float32, Int32, Int64
from tellapart.retrievers.neighbours import nearest
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.searching import NEAR

NOBODY = -1
_MORE = 6  # pictures looked at beyond those wanted: some may turn out to be doubles


@dataclass(frozen=True, slots=True)
class Neighbourhoods:
    """Of every picture of a collection, by its row."""

    rivals: Int32[np.ndarray, "n k"]  # rows, the nearest first; NOBODY where there are fewer
    closeness: Float32[np.ndarray, "n k"]  # the cosine with each
    doubles: Mapping[int, tuple[int, ...]]  # rows that no words could tell it from; most pictures have none

    @classmethod
    def nobody(cls, pictures: int) -> Neighbourhoods:
        """Of pictures that are told from none."""
        return cls(np.empty((pictures, 0), np.int32), np.empty((pictures, 0), np.float32), {})

    def rivals_of(self, row: int) -> list[int]:
        """The rows of a picture's rivals, the nearest first."""
        return [rival for rival in self.rivals[row].tolist() if rival != NOBODY]

    def doubles_of(self, row: int) -> tuple[int, ...]:
        """The rows of a picture's doubles."""
        return self.doubles.get(row, ())


def find_neighbourhoods(
    vectors: Float32[np.ndarray, "n d"], contents: Sequence[str], count: int, *, watch: Watch = unwatched
) -> Neighbourhoods:
    """The `count` rivals nearest to each picture, fewer where there are no more, and its doubles.

    Args:
        vectors: where the pictures lie, each of length 1.
        contents: fingerprints of what they are made of.
        count: how many rivals each is to have.
        watch: told how many pictures are done, and of how many.
    """
    first_of: dict[str, int] = {}
    copies: dict[int, list[int]] = {}  # rows of one content, by the first of them; most are alone
    for row, content in enumerate(contents):
        first = first_of.setdefault(content, row)
        if first != row:
            copies.setdefault(first, [first]).append(row)
    firsts = np.fromiter(first_of.values(), np.int64, len(first_of))
    found = _Found.nothing(len(contents), count)
    _look(found, vectors, firsts, np.arange(len(firsts)), count + _MORE, watch)
    doubles: dict[int, tuple[int, ...]] = {}
    for first in found.doubles.keys() | copies.keys():
        rows = copies.get(first, [first])
        found.rivals[rows], found.closeness[rows] = found.rivals[first], found.closeness[first]
        near = {copy for other in found.doubles.get(first, ()) for copy in copies.get(other, (other,))}
        for row in rows:
            doubles[row] = tuple(sorted((near | set(rows)) - {row}))
    return Neighbourhoods(found.rivals, found.closeness, doubles)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is being filled, by rows of the collection."""

    rivals: Int32[np.ndarray, "n k"]
    closeness: Float32[np.ndarray, "n k"]
    doubles: dict[int, tuple[int, ...]]

    @classmethod
    def nothing(cls, pictures: int, count: int) -> _Found:
        """Nobody is known of anybody."""
        return cls(np.full((pictures, count), NOBODY, np.int32), np.zeros((pictures, count), np.float32), {})

    def note(self, row: int, others: Int64[np.ndarray, " m"], closeness: Float32[np.ndarray, " m"]) -> bool:
        """Take down what was seen around a picture; whether it has all the rivals that it is to have."""
        is_double = closeness >= NEAR
        rivals, near = others[~is_double], closeness[~is_double]
        wanted = self.rivals.shape[1]
        taken = min(wanted, len(rivals))
        self.rivals[row, :taken], self.closeness[row, :taken] = rivals[:wanted], near[:wanted]
        if is_double.any():
            self.doubles[row] = tuple(others[is_double].tolist())
        return bool(taken == wanted)


def _look(
    found: _Found,
    vectors: Float32[np.ndarray, "n d"],
    firsts: Int64[np.ndarray, " m"],
    asking: Int64[np.ndarray, " q"],
    around: int,
    watch: Watch,
) -> None:
    """Look at so many pictures around each that asks, and at more where too many of them were doubles.

    `firsts` are the rows of pictures that differ; those who ask are named by their places among them.
    """
    if len(firsts) < 2:
        return
    pool = _rows(vectors, firsts)
    near = nearest(_rows(pool, asking), pool, around, own=asking, distance="dot", watch=watch)
    unserved = [
        place
        for place, rows, closeness in zip(asking.tolist(), near.rows, near.closeness, strict=True)
        if not found.note(int(firsts[place]), firsts[rows], closeness)
    ]
    if unserved and around < len(firsts) - 1:
        _look(found, vectors, firsts, np.array(unserved), 4 * around, unwatched)


def _rows(vectors: Float32[np.ndarray, "n d"], rows: Int64[np.ndarray, " r"]) -> Float32[np.ndarray, "r d"]:
    """Some of the vectors in their order; all of them are no copy, which of a large collection is large."""
    return vectors if len(rows) == len(vectors) else vectors[rows]
