"""What an audit of captions has found, as records that a command, a page or a program can read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Int64
from tellapart.captioned_folder import CaptionedFolder
from tellapart.errors import TellapartError
from tellapart.judges import Author, Judge
from tellapart.metrics.retrieval import mean_rank, median_rank, recall
from tellapart.retrievers.rivals import Contest, Standing
from tellapart.retrievers.separating import Separating
from tellapart.wording import Wording

EXTREMES = 20  # generic captions that are named


@dataclass(frozen=True, slots=True)
class Recall:
    """How often captions find their pictures; ranks are counted from 1."""

    captions: int
    first: float  # R@1
    five: float  # R@5
    mean_rank: float
    median_rank: float

    @classmethod
    def of(cls, ranks: Int64[np.ndarray, " n"]) -> Recall | None:
        """Of ranks counted from 0; None where there are none."""
        if not len(ranks):
            return None
        mean, median = mean_rank(ranks, ranks_from=1), median_rank(ranks, ranks_from=1)
        return cls(len(ranks), recall(ranks, 1), recall(ranks, 5), mean, median)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "captions": self.captions,
            "R@1": self.first,
            "R@5": self.five,
            "mean_rank": self.mean_rank,
            "median_rank": self.median_rank,
        }


@dataclass(frozen=True, slots=True)
class Recalls:
    """How often captions find their pictures in the whole folder, and among those most like them.

    Twice: in a fair contest a near-duplicate of a picture is as good as the picture, and captions of pictures
    that have nothing but near-duplicates are left out.
    """

    whole: Recall
    nearby: Recall
    fair_whole: Recall | None
    fair_nearby: Recall | None

    @classmethod
    def of(cls, standing: Standing) -> Recalls | None:
        """Of what each caption found; None without captions."""
        whole, nearby = Recall.of(standing.rank), Recall.of(standing.rank_nearby)
        if whole is None or nearby is None:
            return None
        has_rivals = standing.rivals > 0
        return cls(
            whole,
            nearby,
            Recall.of(standing.fair_rank[has_rivals]),
            Recall.of(standing.fair_rank_nearby[has_rivals]),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "whole_folder": self.whole.to_json(),
            "neighbours": self.nearby.to_json(),
            "whole_folder_without_near_duplicates": self.fair_whole and self.fair_whole.to_json(),
            "neighbours_without_near_duplicates": self.fair_nearby and self.fair_nearby.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pictures that are confused."""

    picture: int
    caption: int | None  # row of its caption; None where it has none
    margin: float | None  # how much closer its caption is to it than to the other picture
    words: tuple[Separating, ...]  # which would tell it from the other


@dataclass(frozen=True, slots=True)
class Confused:
    """A picture whose caption finds another one instead, and that other one."""

    own: Side
    found: Side
    likeness: float  # cosine of the two pictures
    is_mutual: bool  # whether the other one's caption also finds this picture


@dataclass(frozen=True, slots=True)
class Audit:
    """What is to be said of the captions of a folder.

    Attributes:
        source: where the captions are from.
        material: pictures and captions brought together.
        judge: who looked for the pictures.
        author: who wrote the captions, where that is known.
        cautions: what a reader must know before believing this judge.
        contest: how captions were held against pictures.
        standing: what each caption found; None where there is but one picture.
        recalls: the same, summed up.
        confused: pictures whose captions find a look-alike, the most alike first, with words that would help.
        astray: pictures whose captions are closest to something else, the farthest astray first.
        wording: what the words of the captions alone tell.
        unknown: for each caption, its words that the judge does not know.
        near_duplicates: groups of pictures that no words could separate, the largest first.
        problems: one for each picture that cannot be read.
        notes: what else a person should know.
    """

    source: Path
    material: CaptionedFolder
    judge: Judge
    author: Author | None
    cautions: tuple[str, ...]
    contest: Contest
    standing: Standing | None
    recalls: Recalls | None
    confused: tuple[Confused, ...]
    astray: tuple[Confused, ...]
    wording: Wording
    unknown: tuple[tuple[str, ...], ...]
    near_duplicates: tuple[tuple[int, ...], ...]
    problems: tuple[TellapartError, ...]
    notes: tuple[str, ...]

    @property
    def missed(self) -> list[int]:
        """Rows of captions that find a picture which words could tell from their own; the worst first."""
        return [] if self.standing is None else self.standing.missed.tolist()

    @property
    def generic(self) -> list[int]:
        """Rows of captions by their entropy, the most generic first, equal captions once."""
        if self.standing is None:
            return []
        order = np.argsort(-self.standing.entropy, kind="stable").tolist()
        first = {self.material.captions[row].words: row for row in reversed(order)}
        return [row for row in order if first[self.material.captions[row].words] == row]

    def fits(self, row: int) -> float:
        """Among how many pictures a caption is torn: the exponential of its entropy."""
        assert self.standing is not None
        return math.exp(self.standing.entropy[row])

    def to_json(self) -> dict[str, Any]:
        """As one JSON object; ranks are counted from 1."""
        material, wording = self.material, self.wording
        return {
            "captions_from": str(self.source),
            "folder": str(material.folder),
            "pictures": len(material.names),
            "captions": len(material.captions),
            "judge": self.judge.to_json(self.author),
            "captioner": self.author and self.author.to_json(),
            "cautions": list(self.cautions),
            "contest": {
                "neighbours": self.contest.neighbours,
                "near_duplicates_from": self.contest.near,
                "temperature": self.contest.temperature,
            },
            "recalls": self.recalls and self.recalls.to_json(),
            "missed": len(self.missed),
            "confused": [self._confused(pair) for pair in self.confused],
            "astray": [self._confused(pair) for pair in self.astray],
            "shared_captions": [
                {"caption": material.captions[rows[0]].caption, "images": self._images(rows)}
                for rows in wording.shared
            ],
            "generic": [
                {
                    "caption": material.captions[row].caption,
                    "entropy": self._entropy(row),
                    "pictures": round(self.fits(row), 3),
                    "unknown_words": list(self.unknown[row]),
                }
                for row in self.generic[:EXTREMES]
            ],
            "openers": [phrase.to_json() for phrase in wording.openers],
            "fragments": [phrase.to_json() for phrase in wording.fragments],
            "repeating": self._images(wording.repeating),
            "broken_off": self._images(wording.broken_off),
            "near_duplicates": [
                [str(material.path(place)) for place in group] for group in self.near_duplicates
            ],
            "captions_left_out": [each.to_json() for each in material.left_out],
            "images_without_captions": [str(material.path(place)) for place in material.uncaptioned],
            "images_with_empty_captions": [str(material.path(place)) for place in material.wordless],
            "problems": [error.problem for error in self.problems],
            "notes": list(self.notes),
            "each": list(self._lines()),
        }

    def _images(self, rows: Sequence[int]) -> list[str]:
        captions = self.material.captions
        return [str(self.material.path(captions[row].picture)) for row in rows]

    def _entropy(self, row: int) -> float:
        assert self.standing is not None
        return round(float(self.standing.entropy[row]), 6)

    def _confused(self, pair: Confused) -> dict[str, Any]:
        return {
            "picture": self._side(pair.own),
            "found": self._side(pair.found),
            "likeness": round(pair.likeness, 6),
            "mutual": pair.is_mutual,
        }

    def _side(self, side: Side) -> dict[str, Any]:
        caption = None if side.caption is None else self.material.captions[side.caption].caption
        return {
            "image": str(self.material.path(side.picture)),
            "caption": caption,
            "margin": None if side.margin is None else round(side.margin, 6),
            "separating_words": [word.to_json() for word in side.words],
        }

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What was found of each caption."""
        for row, captioned in enumerate(self.material.captions):
            line = {
                "image_id": captioned.image_id,
                "image": str(self.material.path(captioned.picture)),
                "caption": captioned.caption,
                "unknown_words": list(self.unknown[row]),
            }
            yield line | self._place(row)

    def _place(self, row: int) -> dict[str, Any]:
        standing = self.standing
        if standing is None:
            return {}
        found = int(standing.found[row])
        return {
            "rank": int(standing.rank[row]) + 1,
            "rank_among_neighbours": int(standing.rank_nearby[row]) + 1,
            "rank_without_near_duplicates": int(standing.fair_rank[row]) + 1,
            "rank_among_neighbours_without_near_duplicates": int(standing.fair_rank_nearby[row]) + 1,
            "score": round(float(standing.score[row]), 6),
            "found": None if found < 0 else str(self.material.path(found)),
            "found_score": None if found < 0 else round(float(standing.found_score[row]), 6),
            "entropy": self._entropy(row),
        }
