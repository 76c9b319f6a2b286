"""The nearest of many vectors: by blocks of matrix products, or by FAISS; both give the same answer.

Matrix products round differently as their shape changes, so a score would depend on how many others were
computed with it. Here they only choose candidates, with room for their rounding; those are scored again, each
by itself, and it is these scores that are compared and returned. Ties go to whoever stands first in the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from tellapart.arrays import Float32, Int64
from tellapart.errors import TellapartError
from tellapart.extras import import_extra

KINDS = ("auto", "exact", "faiss")
FAISS_BEYOND = 100_000  # vectors up to which "auto" takes no notice of FAISS
BLOCK = 16_384  # vectors a product
_AT_ONCE = 1 << 22  # scores held at a time
_MORE = 16  # vectors that FAISS is asked for beyond those wanted, to see where rounding may matter


@dataclass(frozen=True, slots=True)
class Pool:
    """What is searched: rows of a matrix of unit vectors, in an order of one's own.

    Several places may share a row, and rows that stand nowhere are not searched: a file of vectors need not
    be written anew whenever a picture comes or goes.
    """

    vectors: Float32[np.ndarray, "rows d"]
    rows: Int64[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Int64[np.ndarray, " m"]) -> Float32[np.ndarray, "m d"]:
        """The vectors at those places."""
        return np.asarray(self.vectors[self.rows[places]])

    def block(self, first: int, last: int) -> Float32[np.ndarray, "m d"]:
        """The vectors from one place to before another; where they lie together, none is copied."""
        rows = self.rows[first:last]
        if len(rows) and bool((np.diff(rows) == 1).all()):
            return np.asarray(self.vectors[rows[0] : rows[-1] + 1])
        return np.asarray(self.vectors[rows])


@dataclass(frozen=True, slots=True)
class Nearest:
    """For each query, the places of the nearest vectors, best first, with their scores."""

    places: Int64[np.ndarray, "q k"]
    scores: Float32[np.ndarray, "q k"]


def pool_of(vectors: Float32[np.ndarray, "n d"]) -> Pool:
    """All rows of a matrix, in its order."""
    return Pool(vectors, np.arange(len(vectors)))


def nearest(queries: Float32[np.ndarray, "q d"], pool: Pool, k: int, *, kind: str = "auto") -> Nearest:
    """The k vectors of the pool nearest to each query, or all where there are fewer.

    Args:
        queries: unit vectors.
        pool: what to search.
        k: how many, at least 1.
        kind: "exact", "faiss" (an extra), or "auto": FAISS where it is installed and the pool is large.
    """
    if k < 1:
        raise TellapartError(f"the {k} nearest were asked for", hint="ask for 1 or more")
    if kind not in KINDS:
        raise TellapartError(f"no index is called {kind!r}", hint=f"there are: {', '.join(KINDS)}")
    if kind == "auto":
        kind = "faiss" if len(pool) > FAISS_BEYOND and find_spec("faiss") else "exact"
    return nearest_by_faiss(queries, pool, k) if kind == "faiss" else nearest_by_blocks(queries, pool, k)


def nearest_by_blocks(
    queries: Float32[np.ndarray, "q d"], pool: Pool, k: int, *, block: int = BLOCK
) -> Nearest:
    """Exact, by products of all queries with a block of the pool at a time."""
    wanted = min(k, len(pool))
    together = max(1, _AT_ONCE // (wanted + min(block, len(pool)) + 1))
    found = [
        _best(some, pool, wanted, *_candidates(some, pool, wanted, block))
        for some in _groups(queries, together)
    ]
    return _joined(found, wanted)


def nearest_by_faiss(queries: Float32[np.ndarray, "q d"], pool: Pool, k: int) -> Nearest:
    """Exact as well: FAISS compares every query with the whole pool."""
    faiss = import_extra("faiss", needed_by="the index 'faiss'", extra="faiss")
    wanted = min(k, len(pool))
    if not wanted or not len(queries):
        return _joined([], wanted, len(queries))
    vectors = np.ascontiguousarray(pool.block(0, len(pool)))
    slack = _slack(vectors.shape[1])
    count = min(len(pool), wanted + _MORE)
    undecided = np.arange(len(queries))
    found_queries, found_places = [], []
    while len(undecided):
        some = np.ascontiguousarray(queries[undecided])
        scores, places = faiss.knn(some, vectors, count, metric=faiss.METRIC_INNER_PRODUCT)
        worst = scores[:, wanted - 1] - slack
        # Where even the last of them might still be among the best, others like it may have been left out.
        sure = (scores[:, -1] < worst) | (count == len(pool))
        rows, columns = np.nonzero((scores >= worst[:, None]) & sure[:, None])
        found_queries.append(undecided[rows])
        found_places.append(places[rows, columns].astype(np.int64))
        undecided = undecided[~sure]
        count = min(len(pool), 4 * count)
    return _best(queries, pool, wanted, np.concatenate(found_queries), np.concatenate(found_places))


def _groups(queries: Float32[np.ndarray, "q d"], size: int) -> Iterator[Float32[np.ndarray, "m d"]]:
    for first in range(0, len(queries), size):
        yield queries[first : first + size]


def _joined(found: list[Nearest], wanted: int, queries: int = 0) -> Nearest:
    places = [each.places for each in found] or [np.empty((queries, wanted), np.int64)]
    scores = [each.scores for each in found] or [np.empty((queries, wanted), np.float32)]
    return Nearest(np.concatenate(places), np.concatenate(scores))


def _slack(width: int) -> float:
    """How far below the last of the best by one kind of rounding the last by another can be.

    A product of unit vectors is off by at most width x 2^-24; two of them on each side of a comparison.
    """
    return 4 * (width + 2) * 2.0**-24


def _candidates(
    queries: Float32[np.ndarray, "q d"], pool: Pool, wanted: int, block: int
) -> tuple[Int64[np.ndarray, " c"], Int64[np.ndarray, " c"]]:
    """Numbers of queries and places that go together: all pairs that may be among the best."""
    best = np.full((len(queries), wanted), -np.inf, np.float32)
    found_queries, found_places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for first in range(0, len(pool) if wanted else 0, block):
        scores = queries @ pool.block(first, min(first + block, len(pool))).T
        both = np.concatenate([best, scores], axis=1)
        best = np.partition(both, -wanted, axis=1)[:, -wanted:]
        lowest = best.min(axis=1, keepdims=True) - _slack(queries.shape[1])
        rows, columns = np.nonzero(scores >= lowest)
        found_queries.append(rows)
        found_places.append(columns + first)
    return np.concatenate(found_queries), np.concatenate(found_places)


def _best(
    queries: Float32[np.ndarray, "q d"],
    pool: Pool,
    wanted: int,
    numbers: Int64[np.ndarray, " c"],
    places: Int64[np.ndarray, " c"],
) -> Nearest:
    """The best candidates of each query, by scores that nothing but the two vectors decides."""
    scores = np.empty(len(places), np.float32)
    step = max(1, _AT_ONCE // max(1, queries.shape[1]))
    for first in range(0, len(places), step):
        part = slice(first, first + step)
        scores[part] = np.vecdot(pool.take(places[part]), queries[numbers[part]])
    order = np.lexsort((places, -scores, numbers))
    starts = np.searchsorted(numbers[order], np.arange(len(queries)))
    chosen = order[starts[:, None] + np.arange(wanted)]
    return Nearest(places[chosen], scores[chosen])
