"""Pictures that a caption confuses, in pairs, with the words that would separate them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tellapart.arrays import Float32, Int64
from tellapart.audit_findings import Confused, Side
from tellapart.captioned_folder import WHOLE, Captioned
from tellapart.data.text import words
from tellapart.metrics.detail import FUNCTION_WORDS
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.retrievers.rivals import Standing
from tellapart.retrievers.separating import separating_words

SPEAKERS = 20  # captioned pictures like one, from whose captions its words are taken
WORDS = 5  # that are named for a picture

_Spoken = tuple[int, int | None]  # a picture and the row of its caption, where it has one


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Captions and where a retriever places them and their pictures."""

    captions: Sequence[Captioned]
    texts: Float32[np.ndarray, "n d"]  # of the captions
    pictures: Float32[np.ndarray, "m d"]  # of all pictures of the folder
    retriever: Retriever

    @property
    def own(self) -> Int64[np.ndarray, " n"]:
        """The picture of each caption."""
        return np.array([captioned.picture for captioned in self.captions], np.int64)

    def vocabulary(self, picture: int, caption: int | None, other: int | None) -> dict[str, int]:
        """Words that might be said of a picture, and how many captions of pictures like it say each.

        What else the file says of the picture itself counts as well. What its caption says already does not,
        nor what is said of the other picture: that is true of it, too.

        Args:
            picture: of which they are to be said.
            caption: row of its caption, where it has one.
            other: row of the caption of the picture that it is to be told from.
        """
        own = self.own
        closeness = np.where(own == picture, -np.inf, self.pictures[own] @ self.pictures[picture])
        nearest = np.argsort(-closeness, kind="stable")[:SPEAKERS]
        heard = [self.captions[row].words for row in nearest.tolist() if closeness[row] > -np.inf]
        said = {word for row in (caption, other) if row is not None for word in self.captions[row].words}
        if caption is not None:
            heard += [tuple(words(text, WHOLE)) for text in self.captions[caption].others]
        counts = Counter(word for spoken in heard for word in set(spoken))
        return {word: count for word, count in counts.items() if word not in said and _is_telling(word)}


def confused_pairs(
    surroundings: Surroundings,
    standing: Standing,
    rows: Sequence[int],
    *,
    watch: Watch = unwatched,
) -> tuple[Confused, ...]:
    """The pictures of some captions, each with the one that its caption finds, and words for both.

    Args:
        surroundings: the captions and their pictures.
        standing: what they find.
        rows: of the captions, such as `choose` chooses.
        watch: told how many are done, and of how many.
    """
    of_picture = {
        captioned.picture: row for row, captioned in reversed(list(enumerate(surroundings.captions)))
    }
    found = []
    for done, row in enumerate(rows, start=1):
        picture, other = surroundings.captions[row].picture, int(standing.found[row])
        other_caption = of_picture.get(other)
        is_mutual = other_caption is not None and standing.found[other_caption] == picture
        found.append(
            Confused(
                _side(surroundings, (picture, row), (other, other_caption)),
                _side(surroundings, (other, other_caption), (picture, row)),
                float(standing.likeness[row]),
                bool(is_mutual and standing.fair_rank[other_caption] > 0),
            )
        )
        watch(done, len(rows))
    return tuple(found)


def choose(captions: Sequence[Captioned], standing: Standing, count: int) -> tuple[list[int], list[int]]:
    """Captions to be shown: those that find a look-alike, and those that are farthest astray.

    No two pictures are shown twice, whichever of them has the caption that finds the other.
    """
    seen: set[frozenset[int]] = set()
    chosen: tuple[list[int], list[int]] = [], []
    for rows, order in zip(chosen, (standing.mistaken, standing.missed), strict=True):
        for row in order.tolist():
            pair = frozenset((captions[row].picture, int(standing.found[row])))
            if len(rows) < count and pair not in seen:
                seen.add(pair)
                rows.append(row)
    return chosen


def _side(surroundings: Surroundings, own: _Spoken, against: _Spoken) -> Side:
    vectors = surroundings.pictures
    (picture, caption), (other, other_caption) = own, against
    text, margin = "", None
    if caption is not None:
        text = surroundings.captions[caption].caption
        margin = float(surroundings.texts[caption] @ (vectors[picture] - vectors[other]))
    found = separating_words(
        text,
        surroundings.vocabulary(picture, caption, other_caption),
        surroundings.retriever,
        own=vectors[picture],
        other=vectors[other],
        count=WORDS,
    )
    return Side(picture, caption, margin, found)


def _is_telling(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and any(map(str.isalpha, word))
