"""Captions chosen among several: by consensus with captions of similar training pictures, or by an oracle.

Consensus reranking is m-RNN's (Mao et al. 2015, section 8), the captioner that needs no captioner is that of
Devlin et al. (2015), whose hypotheses are the neighbours' captions themselves. An oracle knows the image's
references, and says how good the best hypothesis is: the upper bound of any reranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tellapart.arrays import Float64
from tellapart.errors import TellapartError, UnknownName
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.metrics.material import Material
from tellapart.metrics.oracle import candidate_values
from tellapart.metrics.pairwise import (
    Pairwise,
    bleu_of_pairs,
    cider_of_pairs,
    frequencies_for,
    mean_f1_of_pairs,
)
from tellapart.metrics.sentences import Sentences
from tellapart.picture_pools import Pictures
from tellapart.registry import suggest
from tellapart.reranking.consensus import Similarity, best_first, consensus_scores, mutual_consensus
from tellapart.reranking.pieces import Piece
from tellapart.reranking.sets import choose_set
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.training_neighbours import TrainingSet, words_of

NEIGHBOURS = 60
BEST: Mapping[str, int] = {"bleu": 175, "cider": 125}
ORACLES: Mapping[str, str] = {
    **{f"BLEU-{order}": "bleu" for order in range(1, 5)},
    "ROUGE-L": "rouge",
    "CIDEr-D": "cider",
    "CIDEr": "cider",
    "METEOR": "meteor",
    "SPICE": "spice",
}
"""Scores that an oracle may go by, and the measures they are of."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """How captions agree with those of similar training pictures; as it stands: as in the paper.

    `compat = "authors"` takes for BLEU what the authors' code does (see `mean_f1_of_pairs`). Their CIDEr is
    the same as here, but with the document frequencies of COCO val, which hold the references of the very
    images that they rerank: `df = "coco-val"`.
    """

    similarity: Literal["cider", "bleu"] = "cider"
    neighbours: int = NEIGHBOURS  # k
    best: int | None = None  # m; None: 125 by CIDEr, 175 by BLEU
    compat: Literal["paper", "authors"] = "paper"
    df: str = "train"  # where CIDEr's document frequencies come from: train, coco-val, or a file

    def __post_init__(self) -> None:
        _expect_one_of("similarity", self.similarity, list(BEST))
        _expect_one_of("compat", self.compat, ["paper", "authors"])
        for name, value in (("neighbours", self.neighbours), ("best", self.most_similar)):
            if value < 1:
                raise TellapartError(f"{name} is {value}", hint="take 1 or more")

    @property
    def most_similar(self) -> int:
        """m, the paper's own unless said otherwise."""
        return BEST[self.similarity] if self.best is None else self.best

    def pairwise(self, captions: CountedCaptions) -> Pairwise:
        """The similarity, or an error where the captions do not allow it."""
        if self.similarity == "bleu":
            return bleu_of_pairs if self.compat == "paper" else mean_f1_of_pairs
        if self.df == "train" and captions.documents < 2:
            raise TellapartError(
                "CIDEr takes the rarity of words from the training captions, and one training picture has "
                "any: every word would be worth nothing",
                hint="take more training pictures, or similarity = 'bleu'",
            )
        return cider_of_pairs(frequencies_for(captions, self.df))


def _expect_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise TellapartError(f"{name} is {value!r}", hint=suggest(value, known))


@dataclass(frozen=True, slots=True)
class ScoredCaption:
    """A caption, and what it was chosen by."""

    caption: str
    score: float


@dataclass(frozen=True, slots=True)
class Reranked:
    """All candidates of an image, the best first; of two as good, the one that came first."""

    candidates: tuple[ScoredCaption, ...]
    neighbours: tuple[str, ...] = ()  # ids of training pictures, the nearest first; an oracle asks none

    @property
    def caption(self) -> str:
        """The one chosen."""
        return self.candidates[0].caption

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "caption": self.caption,
            "candidates": [{"caption": one.caption, "score": one.score} for one in self.candidates],
            "neighbours": list(self.neighbours),
        }


def rerank_by_consensus(
    hypotheses: Sequence[Sequence[str]],
    pictures: Pictures,
    training: TrainingSet,
    how: Consensus | None = None,
    *,
    watch: Watch = unwatched,
) -> list[Reranked]:
    """The hypotheses of each picture by their consensus with the captions of its nearest training pictures.

    Args:
        hypotheses: one or more of each picture; the paper takes the 10 of a beam of 10.
        pictures: seen as those of the training set were.
        training: where neighbours are looked for.
        how: they are compared.
        watch: told how many pictures have found their neighbours, and of how many.
    """
    how = how or Consensus()
    _expect_texts(hypotheses, list(map(str, pictures.paths)), "hypothesis")
    near = training.nearest(pictures, how.neighbours, watch=watch)
    measure, known = how.pairwise(training.counted), training.counted

    def texts(pieces: Sequence[Piece], captions: Sentences) -> Sentences:
        return known.read([words[piece.image][piece.begin : piece.end] for piece in pieces])

    words = [words_of(texts) for texts in hypotheses]
    scores = consensus_scores(
        list(map(len, hypotheses)),
        _caption_counts(training, near),
        _similarity(known, near, measure, texts),
        best=how.most_similar,
    )
    return _ranked(hypotheses, scores, training, near)


def caption_by_neighbours(
    pictures: Pictures, training: TrainingSet, how: Consensus | None = None, *, watch: Watch = unwatched
) -> list[Reranked]:
    """A caption that somebody wrote of a similar picture: the one that agrees best with all the others.

    Devlin et al. (2015). The candidates are all captions of the nearest training pictures.
    """
    how = how or Consensus()
    near = training.nearest(pictures, how.neighbours, watch=watch)
    measure = how.pairwise(training.counted)
    counts = _caption_counts(training, near)

    def texts(pieces: Sequence[Piece], captions: Sentences) -> Sentences:
        first = np.searchsorted(captions.groups, np.arange(len(pieces)))
        rows = [
            np.arange(start + piece.begin, start + piece.end)
            for start, piece in zip(first.tolist(), pieces, strict=True)
        ]
        return captions.take(np.concatenate(rows))

    scores = mutual_consensus(
        counts, _similarity(training.counted, near, measure, texts), best=how.most_similar
    )
    candidates = [[caption for row in rows for caption in training.captions[row]] for rows in near]
    return _ranked(candidates, scores, training, near)


def _similarity(
    known: CountedCaptions,
    near: Sequence[Sequence[int]],
    measure: Pairwise,
    texts: Callable[[Sequence[Piece], Sentences], Sentences],
) -> Similarity:
    """How like texts of pieces are to the captions of their images' neighbours; a group is a piece."""

    def similarity(pieces: Sequence[Piece]) -> Iterator[Float64[np.ndarray, "_ _"]]:
        captions = known.of([near[piece.image] for piece in pieces])
        values = measure(texts(pieces, captions), captions)
        columns = np.bincount(captions.groups, minlength=len(pieces)).tolist()
        begin = 0
        for piece, count in zip(pieces, columns, strict=True):
            end = begin + (piece.end - piece.begin) * count
            yield values[begin:end].reshape(-1, count)
            begin = end

    return similarity


def _caption_counts(training: TrainingSet, near: Sequence[Sequence[int]]) -> list[int]:
    return [sum(len(training.captions[row]) for row in rows) for rows in near]


def _ranked(
    candidates: Sequence[Sequence[str]],
    scores: Sequence[Float64[np.ndarray, " _"]],
    training: TrainingSet,
    near: Sequence[Sequence[int]],
) -> list[Reranked]:
    return [
        Reranked(_in_order(texts, values), tuple(training.ids[row] for row in rows))
        for texts, values, rows in zip(candidates, scores, near, strict=True)
    ]


def _in_order(texts: Sequence[str], values: Float64[np.ndarray, " h"]) -> tuple[ScoredCaption, ...]:
    return tuple(ScoredCaption(texts[place], float(values[place])) for place in best_first(values))


def rerank_by_oracle(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], *, by: str = "CIDEr-D"
) -> list[Reranked]:
    """The hypotheses of each image by how well they agree with its own references (m-RNN, section 8.4).

    Args:
        hypotheses: one or more of each image.
        references: one or more of each image.
        by: a score that a single caption has, such as CIDEr-D or BLEU-4.
    """
    if by not in ORACLES:
        raise UnknownName(f"an oracle cannot choose by {by!r}", hint=suggest(by, list(ORACLES)))
    names = [f"image {row}" for row in range(len(hypotheses))]
    _expect_texts(hypotheses, names, "hypothesis")
    _expect_texts(references, names, "reference")
    if not hypotheses:
        return []
    # Measures want as many candidates of every image; a copy of the first changes no choice.
    width = max(map(len, hypotheses))
    padded = tuple((*texts, *[texts[0]] * (width - len(texts))) for texts in hypotheses)
    material = Material(tuple(names), padded, tuple(map(tuple, references)))
    values = candidate_values(material, ORACLES[by])[by]
    return [
        Reranked(_in_order(texts, row[: len(texts)])) for texts, row in zip(hypotheses, values, strict=True)
    ]


def best_sets(reranked: Sequence[Reranked], count: int = 5) -> list[tuple[str, ...]]:
    """The best few captions of each image, to be measured as sets (UNKT, Table 2: 5 of all samples).

    A caption that was drawn twice is there twice, as in published programs.
    """
    _expect_enough(reranked, count)
    return [tuple(one.caption for one in image.candidates[:count]) for image in reranked]


def unlike_sets(
    reranked: Sequence[Reranked], count: int = 5, *, trade_off: float = 0.5
) -> list[tuple[str, ...]]:
    """A few captions of each image that are good and unlike each other, the best first.

    Args:
        reranked: the candidates; a score counts from 0, that of the worst of its image, to 1, the best.
        count: of captions an image.
        trade_off: from 0, the best alone, to 1, unlikeness alone (`choose_set`). How alike two are is the
            mean F1 of their n-grams (`mean_f1_of_pairs`).
    """
    _expect_enough(reranked, count)
    texts = [[one.caption for one in image.candidates] for image in reranked]
    words = [words_of(group) for group in texts]
    sentences = CountedCaptions.count(words).sentences
    values, chosen, begin = mean_f1_of_pairs(sentences, sentences), [], 0
    for image, group in zip(reranked, texts, strict=True):
        end = begin + len(group) ** 2
        alike = values[begin:end].reshape(len(group), -1)
        scores = np.array([one.score for one in image.candidates])
        quality = (scores - scores.min()) / (np.ptp(scores) or 1.0)
        rows = choose_set(quality, alike, count, trade_off=trade_off)
        chosen.append(tuple(group[row] for row in rows.tolist()))
        begin = end
    return chosen


def _expect_enough(reranked: Sequence[Reranked], count: int) -> None:
    for row, image in enumerate(reranked):
        if not 1 <= count <= len(image.candidates):
            raise TellapartError(
                f"the {count} best of the {len(image.candidates)} candidates of image {row} were asked for",
                hint="draw more samples an image, or ask for fewer",
            )


def _expect_texts(groups: Sequence[Sequence[str]], names: Sequence[str], role: str) -> None:
    if len(groups) != len(names):
        raise TellapartError(
            f"there are {len(names)} images, and a {role} or more of {len(groups)}",
            hint="give a list for every image, in the same order",
        )
    for name, texts in zip(names, groups, strict=True):
        if isinstance(texts, str) or not texts:
            found = "a text and no list" if texts else "no text"
            raise TellapartError(
                f"{name}: where its {role} or more should be, there is {found}",
                hint="give each image a list of one text or more",
            )
