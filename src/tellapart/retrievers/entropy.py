"""Retrieval entropy: over how many pictures a sentence spreads (UNKT, Eq. 3).

A generic sentence fits many pictures about equally well, and a retriever that is asked with it hesitates. The
paper leaves open which pictures are asked, and how a similarity becomes a probability: here the pool, the
temperature of the softmax and how many of the closest pictures take part are all said by the caller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tellapart.arrays import Bool, Float, Float64
from tellapart.errors import TellapartError
from tellapart.retrievers.distinct import distinct_rows
from tellapart.retrievers.retriever import Watch, unwatched

CELLS = 1 << 22  # of the matrix of sentences by pictures, looked at together
_LEAST = -745.0  # of a logarithm of a double: beyond it a probability is zero


def retrieval_entropy(
    sentences: Float[np.ndarray, "n d"],
    pictures: Float[np.ndarray, "m d"],
    *,
    temperature: float,
    top_n: int | None = None,
    watch: Watch = unwatched,
) -> Float64[np.ndarray, " n"]:
    """H(y, D) of each sentence over the pictures of a pool, in nats: UNKT's Eq. 3.

    p_r(x_i | y) is the softmax over the pool of the dot product (of unit rows: the cosine) divided by the
    temperature. The entropy lies between 0, where one picture takes all, and the logarithm of the number of
    pictures that take part. Sentences that a retriever places at the same point have the same entropy.

    Args:
        sentences: where a retriever places the sentences; one row each.
        pictures: where it places the pictures of the pool.
        temperature: what similarities are divided by. At the one that a retriever was trained with (0.07 for
            those that ship, 0.01 for CLIP) the softmax is the probability that it learnt; far below, one
            picture takes nearly all, and the order of the sentences is another.
        top_n: only so many pictures, the closest to each sentence, take part; None: the whole pool.
        watch: told how many distinct sentences are done, and of how many.
    """
    expect_settings(temperature, top_n)
    if not len(pictures):
        raise TellapartError("the pool has no picture", hint="name a pool with pictures in it")
    first, place = distinct_rows(sentences)
    distinct = sentences[first]
    found = np.empty(len(distinct))
    rows = max(1, CELLS // len(pictures))
    for begin in range(0, len(distinct), rows):
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is named below
            scores = (distinct[begin : begin + rows] @ pictures.T).astype(np.float64)
        _expect_finite(scores, first[begin : begin + rows])
        found[begin : begin + rows] = softmax_entropy(scores, temperature=temperature, top_n=top_n)
        watch(begin + len(scores), len(distinct))
    return np.asarray(found[place])


def softmax_entropy(
    scores: Float64[np.ndarray, "n m"], *, temperature: float, top_n: int | None = None
) -> Float64[np.ndarray, " n"]:
    """The entropy, in nats, of the softmax of each row divided by the temperature.

    With s the scores less the greatest of their row, it is log Σ exp(s/T) - Σ p s/T: no exponential can
    overflow, and no logarithm is taken of a probability that has become zero.
    """
    taken = scores.shape[1] if top_n is None else min(top_n, scores.shape[1])
    if taken < scores.shape[1]:
        scores = np.partition(scores, -taken, axis=1)[:, -taken:]
    with np.errstate(over="ignore"):  # a tiny temperature gives minus infinity, which is cut off
        exponents = np.maximum((scores - scores.max(axis=1, keepdims=True)) / temperature, _LEAST)
    weights = np.exp(exponents)
    total = weights.sum(axis=1)
    entropy = np.log(total) - (weights * exponents).sum(axis=1) / total
    return np.asarray(np.clip(entropy, 0.0, math.log(taken)))


def high_half(values: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Which values belong to the upper half; the others are the lower.

    Equal values stay together, so that a sentence never stands in both halves, and their order does not
    matter: those at the cut all go up or all go down, whichever makes the halves more equal, and up where
    that is the same.
    """
    if not len(values):
        return np.zeros(0, dtype=bool)
    ordered = np.sort(values)
    cut = ordered[len(ordered) // 2]
    above, from_cut = values > cut, values >= cut
    off_above = abs(2 * int(above.sum()) - len(values))
    off_from_cut = abs(2 * int(from_cut.sum()) - len(values))
    return np.asarray(above if off_above < off_from_cut else from_cut)


def expect_settings(temperature: float, top_n: int | None) -> None:
    """An error where no entropy can be measured so."""
    if not math.isfinite(temperature) or temperature <= 0:
        raise TellapartError(
            f"the temperature is {temperature}",
            hint="give a number above 0; the greater, the more alike all pictures are",
        )
    if top_n is not None and top_n < 1:
        raise TellapartError(
            f"the entropy is to be over the {top_n} closest pictures", hint="give 1 or more, or leave it out"
        )


def _expect_finite(scores: Float64[np.ndarray, "n m"], sentences: NDArray[np.intp]) -> None:
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        raise TellapartError(
            f"the similarity of sentence {sentences[row]} and picture {column} (counted from 0) is "
            f"{scores[row, column]}",
            hint="NaN or an infinity means that something failed in the retriever",
        )
