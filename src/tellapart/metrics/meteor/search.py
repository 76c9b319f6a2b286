"""METEOR's beam search for the best of the matches between two texts, in functions that are compiled.

It equals the jar's in what it sorts by, in the order of what is equal, and in what it drops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.meteor.extras import compiled
from tellapart.metrics.meteor.packing import (
    EXACT,
    Longs,
    length_of,
    module_of,
    other_length_of,
    other_of,
    start_of,
)
from tellapart.metrics.meteor.words import Ints

Words = NDArray[np.uint64]  # sets of words, a bit a word

BEAM = 40
# A partial alignment: what the jar sorts by (more words covered, then fewer chunks, then less distance), the
# next word of the reference, where the last match ended in the candidate, the path that it continues, and
# the place of the match by which it does, or -1.
COVERED, CHUNKS, DISTANCE, NEXT, LAST_END, PARENT, CHOICE, FIELDS = range(8)


@compiled
def _by_start(matches: Longs, words: int) -> tuple[Ints, Longs]:
    """Matches grouped by their start in the reference, within a start in the order they came in."""
    starts = np.zeros(words + 2, np.int32)
    for match in matches:
        starts[start_of(match) + 2] += 1
    for start in range(words):
        starts[start + 2] += starts[start + 1]
    grouped = np.empty_like(matches)
    for match in matches:
        grouped[starts[start_of(match) + 1]] = match
        starts[start_of(match) + 1] += 1
    return starts[:-1], grouped


@compiled
def _coverage(matches: Longs, candidate_words: int, reference_words: int) -> tuple[Ints, Ints]:
    """How many matches touch each word of the candidate and of the reference."""
    candidate = np.zeros(candidate_words, np.int32)
    reference = np.zeros(reference_words, np.int32)
    for match in matches:
        for word in range(start_of(match), start_of(match) + length_of(match)):
            reference[word] += 1
        for word in range(other_of(match), other_of(match) + other_length_of(match)):
            candidate[word] += 1
    return candidate, reference


@compiled
def _definite(starts: Ints, matches: Longs, candidate_words: int) -> Longs:
    """For each word of the reference the match that starts there and competes with no other, or -1."""
    words = len(starts) - 1
    candidate, reference = _coverage(matches, candidate_words, words)
    found = np.full(words, -1, np.int64)
    for start in range(words):
        if starts[start + 1] - starts[start] == 1:
            match = matches[starts[start]]
            alone = True
            for word in range(start, start + length_of(match)):
                alone &= reference[word] == 1
            for word in range(other_of(match), other_of(match) + other_length_of(match)):
                alone &= candidate[word] == 1
            if alone:
                found[start] = starts[start]
    return found


@compiled
def _precedes(one: Longs, two: Longs) -> bool:
    if one[COVERED] != two[COVERED]:
        return bool(one[COVERED] > two[COVERED])
    if one[CHUNKS] != two[CHUNKS]:
        return bool(one[CHUNKS] < two[CHUNKS])
    return bool(one[DISTANCE] < two[DISTANCE])


@compiled
def _copy(numbers: NDArray[Any], to: NDArray[Any]) -> None:
    # A loop is compiled sooner, and runs faster on so few numbers, than an assignment of whole arrays.
    for place in range(len(numbers)):
        to[place] = numbers[place]


@compiled
def _enter(beam: Longs, size: int, path: Longs) -> int:
    """Put a path behind all that are no worse, as a stable sort would; the last may fall out."""
    if size == BEAM and not _precedes(path, beam[size - 1]):
        return size
    place = min(size, BEAM - 1)
    while place > 0 and _precedes(path, beam[place - 1]):
        _copy(beam[place - 1], beam[place])
        place -= 1
    _copy(path, beam[place])
    return min(size + 1, BEAM)


@compiled
def _advance(path: Longs, match: int, choice: int) -> None:
    """Take a match into the path."""
    # The jar adds half of the length of all but exact matches to an integer: single words count nothing.
    length, other_length = length_of(match), other_length_of(match)
    exact = module_of(match) == EXACT
    path[COVERED] += length + other_length if exact else length // 2 + other_length // 2
    if path[LAST_END] != -1 and path[LAST_END] != other_of(match):
        path[CHUNKS] += 1
    path[NEXT] = start_of(match) + length
    path[LAST_END] = other_of(match) + other_length
    path[CHOICE] = choice


@compiled
def _is_used(used: Words, match: int) -> bool:
    for word in range(other_of(match), other_of(match) + other_length_of(match)):
        if (used[word >> 6] >> np.uint64(word & 63)) & np.uint64(1):
            return True
    return False


@compiled
def _branch(beam: Longs, size: int, path: Longs, used: Words, grouped: tuple[Ints, Longs]) -> int:
    """All that can follow a path at its next word: each match that starts there, and none."""
    starts, matches = grouped
    continued = np.empty(FIELDS, np.int64)
    for choice in range(starts[path[NEXT]], starts[path[NEXT] + 1]):
        match = matches[choice]
        if not _is_used(used, match):
            _copy(path, continued)
            _advance(continued, match, choice)
            size = _enter(beam, size, continued)
            # So does the jar: the way goes to those that branch off later, not to this one.
            path[DISTANCE] += abs(start_of(match) - other_of(match))
    if path[LAST_END] != -1:
        path[CHUNKS] += 1
        path[LAST_END] = -1
    path[NEXT] += 1
    return _enter(beam, size, path)


@compiled
def _inherit(beam: Longs, size: int, used: Words, before: Words, matches: Longs) -> None:
    """Give each path the used words of the path that it continues, and those of its new match."""
    for rank in range(size):
        _copy(before[beam[rank, PARENT]], used[rank])
        if beam[rank, CHOICE] >= 0:
            match = matches[beam[rank, CHOICE]]
            for word in range(other_of(match), other_of(match) + other_length_of(match)):
                used[rank, word >> 6] |= np.uint64(1) << np.uint64(word & 63)


@compiled
def best_alignment(found: Longs, candidate_words: int, reference_words: int) -> tuple[Longs, int]:
    """The matches of the best alignment and its number of chunks, by a beam search from left to right."""
    starts, matches = grouped = _by_start(found, reference_words)
    definite = _definite(starts, matches, candidate_words)
    beam, after = np.zeros((BEAM, FIELDS), np.int64), np.zeros((BEAM, FIELDS), np.int64)
    used = np.zeros((2, BEAM, (candidate_words >> 6) + 1), np.uint64)
    trail = np.empty((reference_words, BEAM, 2), np.int32)
    beam[0, LAST_END] = -1
    size = 1
    for word in range(reference_words):
        entered = 0
        for rank in range(size):
            path = beam[rank]
            path[PARENT], path[CHOICE] = rank, -1
            if path[NEXT] > word:
                entered = _enter(after, entered, path)
            elif definite[word] >= 0:
                match = matches[definite[word]]
                _advance(path, match, definite[word])
                path[DISTANCE] += abs(start_of(match) - other_of(match))
                entered = _enter(after, entered, path)
            else:
                entered = _branch(after, entered, path, used[word & 1, rank], grouped)
        _inherit(after, entered, used[1 - (word & 1)], used[word & 1], matches)
        for rank in range(entered):
            trail[word, rank, 0], trail[word, rank, 1] = after[rank, PARENT], after[rank, CHOICE]
        beam, after, size = after, beam, entered
    best = _finished(beam, size)
    return _followed(trail, best, matches), beam[best, CHUNKS]


@compiled
def _finished(beam: Longs, size: int) -> int:
    """Close the last chunk of each path, and find the first of the best."""
    best = 0
    for rank in range(size):
        if beam[rank, LAST_END] != -1:
            beam[rank, CHUNKS] += 1
        if _precedes(beam[rank], beam[best]):
            best = rank
    return best


@compiled
def _followed(trail: NDArray[np.int32], rank: int, matches: Longs) -> Longs:
    """The matches along the way to a path."""
    chosen = np.empty(len(trail), np.int64)
    count = 0
    for word in range(len(trail) - 1, -1, -1):
        if trail[word, rank, 1] >= 0:
            chosen[count] = matches[trail[word, rank, 1]]
            count += 1
        rank = trail[word, rank, 0]
    return chosen[:count]
