"""Consensus: how much a caption agrees with what was said of similar pictures (m-RNN, section 8.2).

The consensus of a hypothesis is its mean similarity to those m captions of the nearest training pictures that
are most like it, so that captions of neighbours that show something else do not count. The authors' code sums
instead of averaging; as all hypotheses of an image are held against the same captions, their order is the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tellapart.arrays import Float64
from tellapart.errors import TellapartError
from tellapart.reranking.pieces import Piece, plan_pieces

PAIRS = 1 << 17  # of a hypothesis and a caption that are compared together

Similarity = Callable[[Sequence[Piece]], Iterable[Float64[np.ndarray, "_ _"]]]
"""How like each hypothesis of a piece is to each caption that its image is compared with, piece by piece."""


def mean_of_best(similarities: Float64[np.ndarray, "h c"], best: int) -> Float64[np.ndarray, " h"]:
    """The mean of the greatest values of each row; of all where there are no more, 0 where there are none."""
    if best < 1:
        raise TellapartError(
            f"the consensus of the {best} most similar captions was asked for", hint="ask for one or more"
        )
    count = min(best, similarities.shape[1])
    if not count:
        return np.zeros(len(similarities))
    # In order, so that sums do not hang on the order of the captions.
    return np.asarray(np.sort(similarities, axis=1)[:, -count:].mean(axis=1))


def consensus_scores(
    hypotheses: Sequence[int], captions: Sequence[int], similarity: Similarity, *, best: int
) -> list[Float64[np.ndarray, " _"]]:
    """The consensus of every hypothesis of every image.

    Args:
        hypotheses: how many each image has.
        captions: how many captions its neighbours have together.
        similarity: of hypotheses with those captions.
        best: m, how many of the captions count.
    """
    found: list[list[Float64[np.ndarray, " _"]]] = [[] for _ in hypotheses]
    for pieces in plan_pieces(hypotheses, captions, pairs=PAIRS):
        for piece, similarities in zip(pieces, similarity(pieces), strict=True):
            found[piece.image].append(mean_of_best(similarities, best))
    return [np.concatenate(parts) if parts else np.zeros(0) for parts in found]


def mutual_consensus(
    captions: Sequence[int], similarity: Similarity, *, best: int
) -> list[Float64[np.ndarray, " _"]]:
    """The consensus of the neighbours' own captions with one another, each with all the rest.

    By which Devlin et al. (2015) caption a picture without a captioner. A caption that two people wrote is
    two captions; one that has no other beside it agrees with none.
    """

    def with_others(pieces: Sequence[Piece]) -> Iterable[Float64[np.ndarray, "_ _"]]:
        for piece, similarities in zip(pieces, similarity(pieces), strict=True):
            rows, columns = similarities.shape
            is_other = np.arange(columns) != np.arange(piece.begin, piece.end)[:, None]
            yield similarities[is_other].reshape(rows, columns - 1)

    return consensus_scores(captions, captions, with_others, best=best)


def best_first(scores: Float64[np.ndarray, " h"]) -> Sequence[int]:
    """Places of hypotheses by their scores, the best first; of two as good, the earlier. NaN comes last."""
    greatest = np.abs(scores[np.isfinite(scores)]).max(initial=0.0)
    # What differs by rounding alone is as good: the order of a sum must not choose a caption.
    compared = np.round(scores / greatest, 12) if greatest else scores
    return [int(place) for place in np.argsort(-compared, kind="stable")]
