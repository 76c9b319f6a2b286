"""A picture whose caption is being chosen: whom it is told from, what came into question, what was tried."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tellapart.arrays import Bool, Float32, Float64
from tellapart.captioning import Candidate
from tellapart.collection.gathering import Picture
from tellapart.data.small_words import UNFINISHED
from tellapart.reranking.agreement import agreement
from tellapart.reranking.margin import Terms, choose, margins
from tellapart.retrievers.distinct import dot_products


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a caption that finds its picture."""

    by: str  # how its candidates came about
    candidates: int  # that came into question then, those of earlier attempts included
    margin: float | None  # of the one that was chosen; None where there is no rival
    found: bool

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        margin = None if self.margin is None else round(self.margin, 4)
        return {"by": self.by, "candidates": self.candidates, "margin": margin, "found": self.found}


@dataclass(slots=True)
class Case:
    """A picture, the places of it and its rivals, and what has been tried for it so far.

    A caption that a rival could have as well, and is closer to, is left to that one where there is another:
    two pictures that are alike would else be called the same, neither of them being found by it. One that
    breaks off ("a dog with a") because no more words may follow is left aside too.
    """

    row: int
    picture: Picture
    places: Float32[np.ndarray, "p d"]  # its own first
    of_rivals: Sequence[Container[str]] = ()  # captions that came into question first for each rival
    drawn: Sequence[str] = ()  # captions drawn by chance, with which a good one agrees; none if not asked for
    most_words: int | None = None  # where captions are cut off
    candidates: list[Candidate] = field(default_factory=list)  # best first, once they were judged
    attempts: list[Attempt] = field(default_factory=list)
    closeness: Float64[np.ndarray, "c p"] = field(init=False)  # of each candidate to each place

    def __post_init__(self) -> None:
        self.closeness = np.empty((0, len(self.places)))

    @property
    def has_rivals(self) -> bool:
        """Whether there is anything to be told from."""
        return len(self.places) > 1

    @property
    def is_found(self) -> bool:
        """Whether the caption chosen last finds the picture among its rivals."""
        return bool(self.attempts) and self.attempts[-1].found

    @property
    def unread(self) -> list[str]:
        """Captions that are not yet held against the places."""
        return [candidate.caption for candidate in self.candidates[len(self.closeness) :]]

    def add(self, candidates: Sequence[Candidate], *, by: str) -> None:
        """Let further captions come into question; one that does already counts once."""
        known = {candidate.caption for candidate in self.candidates}
        for candidate in candidates:
            if candidate.caption not in known:
                known.add(candidate.caption)
                self.candidates.append(replace(candidate, by=by))

    def is_found_by(self, vector: Float32[np.ndarray, " d"]) -> bool:
        """Whether a caption that lies there would find the picture among its rivals."""
        return not self.has_rivals or bool(margins(self._closeness(vector[None]))[0] > 0)

    def judge(self, vectors: Float32[np.ndarray, "n d"], terms: Terms, *, by: str) -> None:
        """Put all candidates in order, given where the unread ones lie, and note how it went.

        With nobody to be told from, every margin is without bound: the captioner's own favourite comes first
        or, where captions were drawn, the one that agrees with them and is close to the picture.
        """
        if len(vectors):
            self.closeness = np.concatenate([self.closeness, self._closeness(vectors)])
        likely = np.array([candidate.logprob for candidate in self.candidates])
        lengths = np.array([len(candidate.caption.split()) + 1 for candidate in self.candidates])
        # Not the first that finds the picture: what no rival could be called either is often not true of it.
        agreed = self._agreement()
        found = choose(self.closeness, likely, lengths, terms, self._taken() | self._broken_off(), agreed)
        self.closeness = self.closeness[found.order]
        bare = margins(self.closeness)
        self.candidates = [
            replace(
                self.candidates[place],
                closeness=own,
                margin=margin if math.isfinite(margin) else None,
                agreement=None if agreed is None else round(float(agreed[place]), 4),
            )
            for place, own, margin in zip(
                found.order.tolist(), self.closeness[:, 0].tolist(), bare.tolist(), strict=True
            )
        ]
        # A tie is lost: a reader who wavers between two pictures has not found one.
        best = self.candidates[0].margin
        self.attempts.append(Attempt(by, len(self.candidates), best, best is None or best > 0))

    def _agreement(self) -> Float64[np.ndarray, " c"] | None:
        """How far each candidate agrees with what was drawn."""
        return agreement([one.caption for one in self.candidates], self.drawn) if self.drawn else None

    def _taken(self) -> Bool[np.ndarray, " c"]:
        """Which candidates a rival could have as well that is closer to them."""
        closer = self.closeness[:, 1:] > self.closeness[:, :1]
        shared = np.zeros(closer.shape, bool)
        for place, captions in enumerate(self.of_rivals):
            shared[:, place] = [candidate.caption in captions for candidate in self.candidates]
        return np.asarray((closer & shared).any(axis=1))

    def _broken_off(self) -> Bool[np.ndarray, " c"]:
        """Which candidates end in the middle; none where the captioner's own favourite is asked for."""
        if not (self.has_rivals or self.drawn):
            return np.zeros(len(self.candidates), bool)
        words = [one.caption.split() for one in self.candidates]
        return np.array([len(each) == self.most_words and each[-1] in UNFINISHED for each in words], bool)

    def _closeness(self, vectors: Float32[np.ndarray, "n d"]) -> Float64[np.ndarray, "n p"]:
        return np.asarray(dot_products(vectors.astype(np.float64), self.places.astype(np.float64)))
