"""How captions stand among the pictures of a folder: what each finds, and against whom.

Pictures that a retriever hardly tells apart are no fair rivals: words could not separate them. So there are
two ranks of everything: one among all pictures, and a fair one, for which the best of a picture and its
near-duplicates stands for it, and the others of them leave.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.arrays import Bool, Float32, Float64, Int64
from tellapart.errors import TellapartError
from tellapart.retrievers.distinct import distinct_rows
from tellapart.retrievers.entropy import expect_settings, softmax_entropy
from tellapart.retrievers.retriever import Watch, unwatched

CELLS = 1 << 22  # of the matrix of captions by pictures, looked at together


@dataclass(frozen=True, slots=True)
class Contest:
    """How captions are held against pictures."""

    neighbours: int = 10  # pictures most like a caption's own, among which it is ranked again
    near: float = 0.99  # cosine from which on two pictures are near-duplicates
    temperature: float = 0.07  # what cosines are divided by before their softmax, for the entropy

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise TellapartError(f"{self.neighbours} neighbours were asked for", hint="ask for 1 or more")
        expect_settings(self.temperature, None)


@dataclass(frozen=True, slots=True)
class Standing:
    """What each caption found; all in the order of the captions, ranks counted from 0.

    Attributes:
        score: cosine with its own picture.
        rank: how many others of all pictures score at least as high.
        rank_nearby: the same among the neighbours of its picture.
        fair_rank: how many pictures that are no near-duplicates of its own score at least as high as the best
            of these.
        fair_rank_nearby: the same among the neighbours, near-duplicates being none.
        rivals: how many pictures are no near-duplicates of its own.
        found: the rival that scores highest; -1 where there is none.
        found_score: its cosine.
        likeness: cosine of the caption's own picture with that rival.
        entropy: over how many pictures it spreads, in nats.
    """

    score: Float32[np.ndarray, " n"]
    rank: Int64[np.ndarray, " n"]
    rank_nearby: Int64[np.ndarray, " n"]
    fair_rank: Int64[np.ndarray, " n"]
    fair_rank_nearby: Int64[np.ndarray, " n"]
    rivals: Int64[np.ndarray, " n"]
    found: Int64[np.ndarray, " n"]
    found_score: Float32[np.ndarray, " n"]
    likeness: Float32[np.ndarray, " n"]
    entropy: Float64[np.ndarray, " n"]

    @property
    def missed(self) -> Int64[np.ndarray, " k"]:
        """Captions that find a rival before their own picture, those that are farthest from it first."""
        rows = self._missed()
        return np.asarray(rows[np.argsort(self.score[rows] - self.found_score[rows], kind="stable")])

    @property
    def mistaken(self) -> Int64[np.ndarray, " k"]:
        """The same captions, those first that find what looks most like their own picture."""
        rows = self._missed()
        return np.asarray(rows[np.argsort(-self.likeness[rows], kind="stable")])

    def _missed(self) -> Int64[np.ndarray, " k"]:
        return np.flatnonzero((self.fair_rank > 0) & (self.found >= 0))


def hold_against(
    captions: Float32[np.ndarray, "n d"],
    pictures: Float32[np.ndarray, "m d"],
    own: Int64[np.ndarray, " n"],
    contest: Contest,
    *,
    watch: Watch = unwatched,
) -> Standing:
    """Hold each caption against all pictures, and against those most like its own.

    No more than a few rows of the matrix of captions by pictures are ever held. A picture that is there twice
    ties with itself exactly; ties count against the caption.

    Args:
        captions: where a retriever places them; unit rows.
        pictures: where it places the pictures; unit rows.
        own: the row of each caption's picture.
        contest: against how many, and what counts as the same picture.
        watch: told how many captions are done, and of how many.
    """
    first, place = distinct_rows(pictures)
    distinct, copies = (pictures[first], place) if len(first) < len(place) else (pictures, None)
    parts = []
    step = max(1, CELLS // max(1, len(pictures)))
    for begin in range(0, len(own), step):
        mine = own[begin : begin + step]
        scores = _spread(captions[begin : begin + step] @ distinct.T, copies)
        _expect_finite(scores, begin)
        closeness = _spread(pictures[mine] @ distinct.T, copies)
        parts.append(_standing(scores, closeness, mine, contest))
        watch(begin + len(mine), len(own))
    return _joined(parts)


def _spread(products: Float32[np.ndarray, "n k"], place: NDArray[np.intp] | None) -> NDArray[np.float32]:
    """Products with distinct pictures as those with all."""
    return products if place is None else products[:, place]


def _standing(
    scores: Float32[np.ndarray, "n m"],
    closeness: Float32[np.ndarray, "n m"],
    own: Int64[np.ndarray, " n"],
    contest: Contest,
) -> Standing:
    rows = np.arange(len(own))
    score = scores[rows, own]
    near = closeness >= contest.near
    near[rows, own] = True
    is_other = np.ones_like(near)
    is_other[rows, own] = False
    best = np.where(near, scores, -np.inf).max(axis=1)
    rivals = np.where(near, -np.inf, scores)
    found = rivals.argmax(axis=1)
    found_score = rivals[rows, found]
    return Standing(
        score=score,
        rank=_beaten_by(scores, score, is_other),
        rank_nearby=_nearby(scores, score, closeness, is_other, contest.neighbours),
        fair_rank=_beaten_by(scores, best, ~near),
        fair_rank_nearby=_nearby(scores, best, closeness, ~near, contest.neighbours),
        rivals=np.count_nonzero(~near, axis=1),
        found=np.where(near.all(axis=1), -1, found),
        found_score=found_score.astype(np.float32),
        likeness=closeness[rows, found],
        entropy=softmax_entropy(scores.astype(np.float64), temperature=contest.temperature),
    )


def _beaten_by(
    scores: Float32[np.ndarray, "n m"], score: Float32[np.ndarray, " n"], among: Bool[np.ndarray, "n m"]
) -> Int64[np.ndarray, " n"]:
    return np.asarray(np.count_nonzero((scores >= score[:, None]) & among, axis=1))


def _nearby(
    scores: Float32[np.ndarray, "n m"],
    score: Float32[np.ndarray, " n"],
    closeness: Float32[np.ndarray, "n m"],
    among: Bool[np.ndarray, "n m"],
    count: int,
) -> Int64[np.ndarray, " n"]:
    """Ranks among the closest only.

    Which of two that are as close takes part hardly matters: they are copies, and the caption scores alike.
    """
    count = min(count, scores.shape[1])
    close = np.where(among, closeness, -np.inf)
    columns = np.argpartition(close, -count, axis=1)[:, -count:]
    taking_part = np.take_along_axis(among, columns, axis=1)
    return _beaten_by(np.take_along_axis(scores, columns, axis=1), score, taking_part)


def _joined(parts: list[Standing]) -> Standing:
    values: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Standing)
    }
    return Standing(**values)


def _expect_finite(scores: Float32[np.ndarray, "n m"], begin: int) -> None:
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, column = bad[0].tolist()
        raise TellapartError(
            f"the score of caption {begin + row} for picture {column} (counted from 0) is "
            f"{scores[row, column]}",
            hint="NaN or an infinity means that something failed in the retriever",
        )


def first_alike(
    pictures: Float32[np.ndarray, "m d"], near: float, *, watch: Watch = unwatched
) -> Int64[np.ndarray, " m"]:
    """For each picture the group it belongs to, named by the first picture of the group.

    A picture joins the group of the first one before it of which it is a near-duplicate; one that has none
    opens a group. So the memory needed does not grow with the number of pairs: of a folder where all pictures
    are the same, that is all pairs.
    """
    group = np.arange(len(pictures))
    step = max(1, CELLS // max(1, len(pictures)))
    for begin in range(0, len(pictures), step):
        end = min(begin + step, len(pictures))
        close = pictures[begin:end] @ pictures[:end].T >= near
        for row in range(begin, end):
            before = close[row - begin, :row]
            if before.any():
                group[row] = group[before.argmax()]
        watch(end, len(pictures))
    return group
