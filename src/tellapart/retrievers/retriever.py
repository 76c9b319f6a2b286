"""What a retriever is: pictures and sentences in one space, where what belongs together is close.

Nothing here, nor in the retrievers that ship, imports torch: a search must answer before torch has started.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tellapart.arrays import Float32
from tellapart.errors import TellapartError

Watch = Callable[[int, int], None]  # how many of how many are done


def unwatched(done: int, total: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture and its place in the space, a vector of length 1."""

    path: Path
    vector: Float32[np.ndarray, " d"]


class Retriever(ABC):
    """Places pictures and sentences on one unit sphere; the closer, the better they fit.

    Attributes:
        name: as a user writes it.
        identity: the name with a hash of all that gives vectors their meaning (weights, words, encoder).
        width: numbers of a vector.
    """

    name: str
    identity: str
    width: int

    @abstractmethod
    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        """The place of each picture file, in order; a bad file gives its error in its place."""

    @abstractmethod
    def embed_texts(
        self, sentences: Sequence[str], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """A unit row for each sentence; one of which it knows no word has the place of an unknown word."""

    @abstractmethod
    def unknown_words(self, sentence: str) -> Sequence[str]:
        """Words of the sentence that say nothing to it; an empty sentence has none."""

    def notes(self, sentences: Sequence[str]) -> list[str]:
        """What a reader of their scores must be told of them."""
        strange = sum(bool(self.unknown_words(sentence)) for sentence in sentences)
        if not strange:
            return []
        return [f"{strange} of {len(sentences)} captions hold words that it does not know"]

    def embed_images(
        self, paths: Sequence[str | os.PathLike[str]], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """A unit row for each picture file; a file that cannot be read is an error."""
        expect_several(paths, "pictures")
        listed = [Path(path) for path in paths]
        rows = np.empty((len(listed), self.width), np.float32)
        for row, placed in enumerate(self.place(listed)):
            if isinstance(placed, TellapartError):
                raise placed
            rows[row] = placed.vector
            watch(row + 1, len(listed))
        return rows

    def scores(
        self, sentences: Sequence[str], paths: Sequence[str | os.PathLike[str]], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "sentences pictures"]:
        """The cosine of every sentence with every picture."""
        return np.asarray(self.embed_texts(sentences) @ self.embed_images(paths, watch=watch).T)


def expect_several(things: object, what: str) -> None:
    """One text in the place of several would be taken letter by letter."""
    if isinstance(things, str | bytes | os.PathLike):
        raise TellapartError(
            f"{what} are asked for one by one: {str(things)!r} is no list", hint="write [...] around it"
        )
