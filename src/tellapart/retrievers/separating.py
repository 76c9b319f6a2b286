"""Words that would tell a picture from another one that its caption finds instead.

A word separates two pictures where a caption that says it too moves closer to the one than to the other. Any
word that pulls the right way would do for that, true or not, so only words come into question that somebody
used of pictures that look like the one. And the more of them did, the more it counts: what most pictures like
it show is likely there as well. Whether it is, only somebody who looks can say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tellapart.arrays import Float32
from tellapart.retrievers.retriever import Retriever


@dataclass(frozen=True, slots=True)
class Separating:
    """A word, and what saying it too would change."""

    word: str
    gain: float  # in the margin by which the caption stands closer to its own picture than to the other
    margin: float  # then; above 0 it stands closer to its own

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"word": self.word, "gain": round(self.gain, 6), "margin": round(self.margin, 6)}


def separating_words(
    caption: str,
    candidates: Mapping[str, int],
    retriever: Retriever,
    *,
    own: Float32[np.ndarray, " d"],
    other: Float32[np.ndarray, " d"],
    count: int,
) -> tuple[Separating, ...]:
    """The words that separate best, the best first; only such as widen the margin at all.

    They are ordered by gain x log(1 + n), with n captions of similar pictures that use the word.

    Args:
        caption: what is said so far; "" where nothing is, which is as close to the one as to the other.
        candidates: words, none of them in the caption, with the number of captions that use each.
        retriever: who is to tell the pictures apart.
        own: where it places the caption's own picture.
        other: where it places the other one.
        count: how many words.
    """
    known = [word for word in sorted(candidates) if not retriever.unknown_words(word)]
    if not known:
        return ()
    said = retriever.embed_texts([caption, *(f"{caption} {word}".strip() for word in known)])
    before, *after = (said.astype(np.float64) @ (own.astype(np.float64) - other)).tolist()
    if not caption:
        before = 0.0
    found = [
        Separating(word, margin - before, margin)
        for word, margin in zip(known, after, strict=True)
        if margin > before
    ]
    found.sort(key=lambda each: -each.gain * math.log1p(candidates[each.word]))
    return tuple(found[:count])
