"""What is known of a caption word by word: the records that an explanation is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float64
from tellapart.errors import TellapartError
from tellapart.word_penalties import Penalty


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Where the captioner looked when it wrote a word: shares of attention, which together are 1.

    Attributes:
        map: over the places of the grid, which covers the whole picture.
        elsewhere: to what is no place in the picture, by name.
    """

    map: Float64[np.ndarray, "rows columns"]
    elsewhere: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "map": [[round(share, 6) for share in row] for row in self.map.tolist()],
            "elsewhere": {name: round(share, 6) for name, share in self.elsewhere.items()},
        }


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a caption.

    Attributes:
        text: as it is written.
        is_known: whether the captioner could write it.
        penalty: what it costs the captioner.
        closeness_drop: how much farther from its picture the caption is without the word.
        margin_drop: how much less it stands out from the strongest rival; None where there is none.
        look: None where the captioner has no attention.
    """

    text: str
    is_known: bool
    penalty: Penalty
    closeness_drop: float | None
    margin_drop: float | None
    look: Look | None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "word": self.text,
            "known": self.is_known,
            "closeness_drop": rounded(self.closeness_drop),
            "margin_drop": rounded(self.margin_drop),
            **self.penalty.to_json(),
            "attention": self.look.to_json() if self.look else None,
        }


@dataclass(frozen=True, slots=True)
class Rival:
    """A picture that is like the explained one."""

    path: Path
    likeness: float  # cosine with the picture
    closeness: float  # cosine with the caption
    is_near: bool  # so like it that words may not tell them apart

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "image": str(self.path),
            "likeness": rounded(self.likeness),
            "closeness": rounded(self.closeness),
            "nearly_the_same": self.is_near,
        }


@dataclass(frozen=True, slots=True)
class Helpful:
    """A word that would make the caption stand out more, were it added; whether it is true is not asked."""

    word: str
    gain: float  # of the margin

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"word": self.word, "gain": rounded(self.gain)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A caption explained.

    Attributes:
        image: the picture.
        caption: what is explained.
        is_given: whether somebody else wrote it; if not, the captioner did.
        captioner: its name.
        retriever: the name of the one that compares.
        folder: where the rivals are.
        others: how many other pictures are there.
        closeness: cosine of caption and picture.
        margin: how much that is above the cosine with the strongest rival; None where there is no rival.
        rivals: the pictures most like this one, the most alike first.
        words: in the order of the sentence.
        end: what ending there costs the captioner.
        helpful: words of its other candidates that would raise the margin, best first.
        notes: what a person should know.
        problems: one for each file that could not be compared.
    """

    image: Path
    caption: str
    is_given: bool
    captioner: str
    retriever: str
    folder: Path
    others: int
    closeness: float
    margin: float | None
    rivals: tuple[Rival, ...]
    words: tuple[Word, ...]
    end: Penalty
    helpful: tuple[Helpful, ...]
    notes: tuple[str, ...]
    problems: tuple[TellapartError, ...]

    @property
    def strongest(self) -> Rival | None:
        """The rival that the caption comes closest to; of equals the one most like the picture."""
        return max(self.rivals, key=lambda rival: rival.closeness, default=None)

    @property
    def ranking(self) -> list[int]:
        """Places of the words in the sentence, those first that separate most.

        Without rivals, those that bring the caption closest to its picture. Of a single word nothing is
        known.
        """
        drops = [word.closeness_drop if word.margin_drop is None else word.margin_drop for word in self.words]
        known = [(place, drop) for place, drop in enumerate(drops) if drop is not None]
        return [place for place, _ in sorted(known, key=lambda pair: -pair[1])]

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "image": str(self.image),
            "caption": self.caption,
            "given": self.is_given,
            "captioner": self.captioner,
            "retriever": self.retriever,
            "folder": str(self.folder),
            "other_pictures": self.others,
            "closeness": rounded(self.closeness),
            "margin": rounded(self.margin),
            "strongest_rival": str(self.strongest.path) if self.strongest else None,
            "rivals": [rival.to_json() for rival in self.rivals],
            "words": [word.to_json() for word in self.words],
            "ranking": self.ranking,
            "end": self.end.to_json(),
            "helpful": [each.to_json() for each in self.helpful],
            "notes": list(self.notes),
            "problems": [error.problem for error in self.problems],
        }


def rounded(value: float | None) -> float | None:
    """To the digits that mean something."""
    return None if value is None else round(value, 6)
