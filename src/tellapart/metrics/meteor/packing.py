"""A match as one integer, for functions that are compiled.

A match joins a run of words of the reference to a run of words of the candidate: it has a start in the
reference, another in the candidate, both lengths, and the module that found it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.meteor.extras import compiled

Longs = NDArray[np.int64]

EXACT, STEM, SYNONYM, PARAPHRASE = range(4)

START_BITS, LENGTH_BITS, MODULE_BITS = 20, 10, 2
LONGEST = (1 << START_BITS) - 1  # words of a text
LONGEST_PHRASE = (1 << LENGTH_BITS) - 1


@compiled
def grown(numbers: Longs, count: int) -> Longs:
    """The same numbers with room for at least one more."""
    if count < len(numbers):
        return numbers
    larger = np.empty(2 * len(numbers), np.int64)
    for place in range(count):
        larger[place] = numbers[place]
    return larger


@compiled
def packed(start: int, other: int, length: int, other_length: int, module: int) -> int:
    """The parts of a match as one number."""
    return int(
        (np.int64(start) << (START_BITS + 2 * LENGTH_BITS + MODULE_BITS))
        | (np.int64(other) << (2 * LENGTH_BITS + MODULE_BITS))
        | (np.int64(length) << (LENGTH_BITS + MODULE_BITS))
        | (np.int64(other_length) << MODULE_BITS)
        | np.int64(module)
    )


@compiled
def start_of(match: int) -> int:
    """Where the match starts in the reference."""
    return match >> (START_BITS + 2 * LENGTH_BITS + MODULE_BITS)


@compiled
def other_of(match: int) -> int:
    """Where it starts in the candidate."""
    return (match >> (2 * LENGTH_BITS + MODULE_BITS)) & ((1 << START_BITS) - 1)


@compiled
def length_of(match: int) -> int:
    """How many words of the reference it covers."""
    return (match >> (LENGTH_BITS + MODULE_BITS)) & ((1 << LENGTH_BITS) - 1)


@compiled
def other_length_of(match: int) -> int:
    """How many words of the candidate it covers."""
    return (match >> MODULE_BITS) & ((1 << LENGTH_BITS) - 1)


@compiled
def module_of(match: int) -> int:
    """The module that found it."""
    return match & ((1 << MODULE_BITS) - 1)
