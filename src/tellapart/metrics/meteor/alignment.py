"""The statistics of captions against references: all matches, the best alignment, and what it covers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.meteor.extras import compiled
from tellapart.metrics.meteor.matches import Lexicon, Table, Texts, all_matches
from tellapart.metrics.meteor.packing import (
    Longs,
    length_of,
    module_of,
    other_length_of,
    other_of,
    start_of,
)
from tellapart.metrics.meteor.score import STATISTICS
from tellapart.metrics.meteor.search import best_alignment
from tellapart.metrics.meteor.words import Ints


@compiled
def _count(
    statistics: Longs, chosen: Longs, candidate: NDArray[np.bool_], reference: NDArray[np.bool_]
) -> None:
    """Fill in the statistics in the order of the jar's line, but for the chunks."""
    statistics[0], statistics[1] = len(candidate), len(reference)
    statistics[2], statistics[3] = candidate.sum(), reference.sum()
    for match in chosen:
        first = 4 + 4 * module_of(match)
        for word in range(other_of(match), other_of(match) + other_length_of(match)):
            statistics[first + 2 * candidate[word]] += 1
        for word in range(start_of(match), start_of(match) + length_of(match)):
            statistics[first + 1 + 2 * reference[word]] += 1
        statistics[21] += other_length_of(match)
        statistics[22] += length_of(match)


@compiled
def align(texts: Texts, table: Table, lexicon: Lexicon, pairs: Ints, modules: int) -> Longs:
    """The statistics of each pair (candidate, reference) of texts, by the first so many modules."""
    statistics = np.zeros((len(pairs), STATISTICS), np.int64)
    heads = np.full(len(table.starts) - 1, -1, np.int32)
    for pair in range(len(pairs)):
        one, two = pairs[pair, 0], pairs[pair, 1]
        candidate = lexicon.function[texts.words[texts.starts[one] : texts.starts[one + 1]]]
        reference = lexicon.function[texts.words[texts.starts[two] : texts.starts[two + 1]]]
        matches = all_matches(texts, table, lexicon, heads, (one, two), modules)
        chosen, chunks = best_alignment(matches, len(candidate), len(reference))
        statistics[pair, 20] = chunks
        _count(statistics[pair], chosen, candidate, reference)
    return statistics
