"""Which pictures a caption is to tell its own from: hard pools, sets of distractors, and what nobody could.

A pool drawn at random is easy: most of its pictures show something else. CapEnrich (Yao et al. 2023), whose
pool SMILE uses, adds pictures from elsewhere that look like those of the test set.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tellapart.arrays import Float, Int32, Int64
from tellapart.errors import TellapartError
from tellapart.retrievers.neighbours import CELLS, Neighbours, directions, nearest, nearest_others
from tellapart.retrievers.retriever import Watch, unwatched

GROUP = 5  # pictures of a hard pool that are taken together
_KNOWN = 60  # neighbours of each picture that groups are grown from


def hard_pool(
    features: Float[np.ndarray, "n d"], size: int, *, group: int = GROUP, watch: Watch = unwatched
) -> Int64[np.ndarray, " size"]:
    """Rows of `size` pictures that are most similar to each other, group after group; all, if no more.

    The picture whose nearest `group` - 1 others have the highest mean cosine with it is taken together with
    them; then the same among the pictures that are left, until there are enough. The last group may be cut
    short. Of two pictures as crowded the earlier is taken.
    """
    if size < 1 or group < 2:
        raise TellapartError(
            f"a hard pool of {size} pictures in groups of {group} was asked for",
            hint="ask for at least one picture, in groups of two or more",
        )
    if size >= len(features):
        return np.arange(len(features))
    known = nearest_others(features, max(_KNOWN, group - 1), watch=watch)
    left = np.ones(len(features), dtype=bool)
    # Taking pictures away only ever lowers how crowded the others are: the first of the heap whose value
    # is still true is the first of all.
    heap = [(-_crowd(known, row, left, group)[0], row) for row in range(len(features))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < size:
        before, row = heapq.heappop(heap)
        if not left[row]:
            continue
        crowded, others = _crowd(known, row, left, group)
        if len(others) < min(group - 1, int(left.sum()) - 1):
            _look_again(features, known, row, left)  # of many copies all know the same few
            crowded, others = _crowd(known, row, left, group)
        if -crowded > before:
            heapq.heappush(heap, (-crowded, row))
            continue
        left[[row, *others]] = False
        chosen += [row, *others]
    return np.array(chosen[:size])


def _crowd(known: Neighbours, row: int, left: NDArray[np.bool_], group: int) -> tuple[float, Sequence[int]]:
    """Mean cosine of a picture with its nearest that are left, and which these are.

    Where fewer are known than a group takes, each that is missing counts as the opposite of the picture.
    """
    rows = known.rows[row]
    places = np.flatnonzero(left[rows])[: group - 1]
    missing = group - 1 - len(places)
    total = float(known.closeness[row, places].astype(np.float64).sum()) - missing
    return total / (group - 1), rows[places].tolist()


def _look_again(
    features: Float[np.ndarray, "n d"], known: Neighbours, row: int, left: NDArray[np.bool_]
) -> None:
    """Let a picture know its nearest among those that are left."""
    others = np.flatnonzero(left)
    others = others[others != row]
    found = nearest(features[row : row + 1], features[others], known.rows.shape[1])
    count = found.rows.shape[1]
    known.rows[row, :count] = others[found.rows[0]]
    known.closeness[row, :count] = found.closeness[0]


def distractor_sets(
    features: Float[np.ndarray, "m d"], captioned: int, count: int, *, watch: Watch = unwatched
) -> Int32[np.ndarray, "n k"]:
    """For each of the first `captioned` pictures of a pool, the `count` others that are nearest to it."""
    own = np.arange(captioned)
    return nearest(features[:captioned], features, count, own=own, watch=watch).rows


def similar_pictures(
    captioned: Float[np.ndarray, "n d"],
    others: Float[np.ndarray, "m d"],
    each: int,
    *,
    watch: Watch = unwatched,
) -> Int64[np.ndarray, " k"]:
    """Rows of the others that are among the `each` nearest of any captioned picture, in ascending order."""
    return np.unique(nearest(captioned, others, each, watch=watch).rows).astype(np.int64)


def indistinguishable(
    features: Float[np.ndarray, "m d"], digests: Sequence[bytes], captioned: int, *, cosine: float
) -> list[Int64[np.ndarray, " k"]]:
    """For each of the first `captioned` pictures, which of the pool no words could tell it from.

    These are itself, files of the same content, and pictures whose features have at least this cosine with
    its own.
    """
    points = directions(features)
    numbers: dict[bytes, int] = {}
    content = np.array([numbers.setdefault(digest, len(numbers)) for digest in digests])
    found = []
    rows = max(1, CELLS // max(1, len(points)))
    for begin in range(0, captioned, rows):
        some = np.arange(begin, min(begin + rows, captioned))
        alike = points[some] @ points.T >= cosine
        alike |= content[some][:, None] == content
        alike[np.arange(len(some)), some] = True  # even where a feature is all zeros
        found += [np.flatnonzero(row) for row in alike]
    return found
