"""What METEOR knows about single words: keys by which it compares them, and their WordNet synsets."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

# WordNet's rules of detachment in the order in which the jar tries them: nouns, verbs, adjectives.
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"), ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
    ("ing", ""), ("er", ""), ("est", ""), ("er", "e"), ("est", "e"),
)  # fmt: skip


def key_of(word: str) -> int:
    """Java's hash of a string. METEOR takes words of the same hash for the same word, rare as that is."""
    data = word.encode("utf-16-le", "surrogatepass")
    key = 0
    for unit in struct.unpack(f"<{len(data) // 2}H", data):
        key = (31 * key + unit) & 0xFFFFFFFF
    return key - (1 << 32) if key >> 31 else key


@dataclass(frozen=True, slots=True)
class Rows:
    """Lists of numbers, one a row, laid end to end."""

    starts: Ints  # (rows + 1,)
    values: Ints

    def row(self, number: int) -> list[int]:
        """The numbers of one row."""
        found: list[int] = self.values[self.starts[number] : self.starts[number + 1]].tolist()
        return found


@dataclass(frozen=True, slots=True)
class Synonyms:
    """WordNet's synsets, and the base forms of words with irregular inflection; rows go by word number."""

    numbers: Mapping[str, int]
    synsets: Rows
    bases: Rows

    def of(self, word: str) -> list[int]:
        """The synsets of a word and of its base form, in ascending order; two words that share one match."""
        number = self.numbers.get(word)
        own = [] if number is None else self.synsets.row(number)
        bases = [] if number is None else self.bases.row(number)
        if not bases:
            base = self._regular_base(word)
            bases = [] if base is None else [base]
        return sorted({*own, *(synset for base in bases for synset in self.synsets.row(base))})

    def _regular_base(self, word: str) -> int | None:
        """The first word with synsets that a rule of detachment leads to."""
        if word.endswith("ss") or len(word) <= 2:
            return None
        for ending, replacement in _ENDINGS:
            if word.endswith(ending):
                number = self.numbers.get(word[: -len(ending)] + replacement)
                if number is not None and self.synsets.starts[number] < self.synsets.starts[number + 1]:
                    return number
        return None
