"""The pictures nearest to a picture: contrastive images (Lindh et al. 2018), consensus (m-RNN), hard pools.

Lindh et al. draw the contrastive image of a picture from the 1 % of its split that is nearest by the cosine
of pooled features, itself left out. m-RNN's consensus reranking takes 60 neighbours, by Euclidean distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tellapart.arrays import Float, Float32, Int32, Integer
from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Watch, unwatched

Distance = Literal["cosine", "dot", "euclidean"]

CELLS = 1 << 21  # of the matrix of pictures by pictures, looked at together
_ROWS = 2048  # pictures whose closeness to one other is computed at once in double precision


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pictures nearest to each picture, the nearest first; of two that are as near, the earlier."""

    rows: Int32[np.ndarray, "n k"]
    closeness: Float32[np.ndarray, "n k"]  # the cosine (dot product), or minus the Euclidean distance


def one_in_hundred(pictures: int) -> int:
    """How many of the nearest are Lindh et al.'s candidates: 1 % of the split, and at least one."""
    return max(1, pictures // 100)


def nearest_others(
    features: Float[np.ndarray, "n d"],
    count: int,
    *,
    distance: Distance = "cosine",
    watch: Watch = unwatched,
) -> Neighbours:
    """The nearest of the other pictures, for each picture; all others where they are not more."""
    if len(features) < 2:
        raise TellapartError(
            f"neighbours need two pictures or more, and there are {len(features)}",
            hint="give the features of a whole split",
        )
    return nearest(features, features, count, own=np.arange(len(features)), distance=distance, watch=watch)


def nearest(
    queries: Float[np.ndarray, "n d"],
    pool: Float[np.ndarray, "m e"],
    count: int,
    *,
    own: Integer[np.ndarray, " n"] | None = None,
    distance: Distance = "cosine",
    watch: Watch = unwatched,
) -> Neighbours:
    """The `count` pictures of the pool nearest to each query; all of them where there are no more.

    The same whatever the library of matrix products, and however the pictures are ordered: the product only
    says which pictures come into question, and these are compared in double precision, each in one way. No
    more than a few rows of the matrix of pictures by pictures are ever held.

    Args:
        queries: features of the pictures that ask.
        pool: features of those that are found; one that is all zeros has the cosine 0 with every other.
        count: how many to find for each.
        own: the row of the pool that is the query itself, and is not found.
        distance: what is near: by the angle between two features, or by their Euclidean distance; "dot" is
            the angle of features that have the length 1 already, of which no copy is made then.
        watch: told how many queries are done, and of how many.
    """
    if count < 1:
        raise TellapartError(f"{count} neighbours were asked for", hint="ask for one or more")
    queries, pool, unit = _points(queries, pool, distance)
    count = min(count, len(pool) - (own is not None))
    if count < 1:
        raise TellapartError("there is no picture to be near to", hint="give a larger pool")
    found = Neighbours(np.empty((len(queries), count), np.int32), np.empty((len(queries), count), np.float32))
    for begin, block, slack in _blocks(queries, pool, distance):
        if own is not None:
            block[np.arange(len(block)), own[begin : begin + len(block)]] = -np.inf
        least = np.partition(block, -count, axis=1)[:, -count] - slack
        for row, scores in enumerate(block, start=begin):
            candidates = np.flatnonzero(scores >= least[row - begin])
            closeness = _closeness(queries[row], pool, candidates, distance)
            order = np.argsort(-closeness, kind="stable")[:count]
            found.rows[row] = candidates[order]
            found.closeness[row] = closeness[order] * unit
        watch(begin + len(block), len(queries))
    return found


def draw_contrastive(neighbours: Neighbours, generator: np.random.Generator) -> Int32[np.ndarray, " n"]:
    """A contrastive picture for each picture, drawn uniformly from its neighbours: afresh at each call."""
    pictures, count = neighbours.rows.shape
    return np.asarray(neighbours.rows[np.arange(pictures), generator.integers(0, count, pictures)])


def directions(features: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Features of length 1, in single precision at least; zeros stay zeros. What is no number is an error."""
    values = _finite(features)
    # Divided by the greatest entry first: squares of great or tiny numbers leave the range of the type.
    greatest = np.maximum(values.max(axis=1, initial=0), -values.min(axis=1, initial=0))
    values = values / _or_one(greatest)[:, None]
    values /= _or_one(np.sqrt(np.vecdot(values, values)))[:, None]
    return np.asarray(values)


def _points(
    queries: Float[np.ndarray, "n d"], pool: Float[np.ndarray, "m e"], distance: Distance
) -> tuple[NDArray[Any], NDArray[Any], float]:
    """What is compared on both sides, in one precision, and the unit in which the result is to be given."""
    if queries.shape[1:] != pool.shape[1:]:
        raise TellapartError(
            f"features are of {queries.shape[1:]} and of {pool.shape[1:]} numbers",
            hint="take both from the same encoder",
        )
    both = [queries] if queries is pool else [queries, pool]
    if distance == "cosine":
        both, unit = [directions(features) for features in both], 1.0
    elif distance == "dot":
        both, unit = [_finite(features) for features in both], 1.0
    else:
        both = [_finite(features) for features in both]
        # A power of two, so that nothing is rounded; squares of greater or lesser numbers might overflow.
        power = max(int(np.frexp(np.abs(values).max(initial=0))[1]) for values in both)
        both, unit = [np.ldexp(values, -power) for values in both], 2.0**power
    precision = np.result_type(*both)
    both = [values.astype(precision, copy=False) for values in both]
    return both[0], both[-1], unit


def _finite(features: Float[np.ndarray, "n d"]) -> NDArray[Any]:
    values = features.astype(np.promote_types(features.dtype, np.float32), copy=False)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        raise TellapartError(
            f"the features of picture {bad[0]} (counted from 0) are not all finite",
            hint="NaN or an infinity usually means that the picture could not be encoded: encode it again",
        )
    return values


def _or_one(values: NDArray[Any]) -> NDArray[Any]:
    return np.where(values > 0, values, values.dtype.type(1))


def _blocks(
    queries: NDArray[Any], pool: NDArray[Any], distance: Distance
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """First row, closeness by a matrix product, and how far rounding may have moved two of a row apart.

    By Euclidean distance, closeness is that of a row only: what all its entries share is left out.
    """
    rounding = (queries.shape[1] + 4) * np.finfo(queries.dtype).eps
    lengths = np.einsum("nd,nd->n", pool, pool) if distance == "euclidean" else None
    rows = max(1, CELLS // len(pool))
    for begin in range(0, len(queries), rows):
        asking = queries[begin : begin + rows]
        block = asking @ pool.T
        slack = np.full(len(asking), rounding)
        if lengths is not None:
            block *= 2
            block -= lengths
            slack *= np.einsum("nd,nd->n", asking, asking) + 2 * lengths.max(initial=0)
        yield begin, block, slack.astype(block.dtype)


def _closeness(
    query: NDArray[Any], pool: NDArray[Any], candidates: NDArray[np.intp], distance: Distance
) -> NDArray[np.float64]:
    """In double precision, each pair by itself: equal pictures are equally near."""
    found = np.empty(len(candidates))
    for begin in range(0, len(candidates), _ROWS):
        piece = pool[candidates[begin : begin + _ROWS]].astype(np.float64)
        if distance == "euclidean":
            piece -= query
            closeness = -np.sqrt(np.vecdot(piece, piece))
        else:
            closeness = np.vecdot(piece, query.astype(np.float64))
        found[begin : begin + _ROWS] = closeness
    return found
