"""All figures of what is on the shelf: of captions, of sets of captions, and of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tellapart.arrays import Int64
from tellapart.judges import Judge, judge_by
from tellapart.metrics.parts import OracleConfig, RetrievalConfig
from tellapart.metrics.ptb.tokenizer import tokenize_all
from tellapart.metrics.retrieval import rank_scores, ranks, recalled
from tellapart.metrics.score import Score, Scores, mean_score
from tellapart.picture_pools import see_pictures
from tellapart.registry import Config
from tellapart.reproduction.plan import Way
from tellapart.reproduction.shelf import Line
from tellapart.reproduction.ways import NEIGHBOURS, SET
from tellapart.reproduction.writing import EQ7_RANKS, PICTURE_RANKS, PLAIN_RANKS, Shown
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.neighbours import nearest_others
from tellapart.scoring import Choice, Texts, choose, gather, measure
from tellapart.vision.parts import load_encoder

ACCURACY = ("bleu", "rouge", "cider", "meteor")
NEAR, COSINE = "R@1-near", "Judge-cosine"
OF_ONE_SEED = ("Perplexity", "Perplexity-corpus")  # a language model takes longer than all the rest
AT, AT_BY_LIKELIHOOD = (1, 5, 10), (1, 5, 50, 500)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one seed of a method came to in one way."""

    scores: Scores
    tokens: tuple[tuple[str, ...], ...]  # of the captions, in the order of the scores' ids; none of ranks

    def __contains__(self, name: str) -> bool:
        return name in self.scores


@dataclass(frozen=True)
class Bench:
    """The test pictures with their references, and the judge that has taught no method."""

    shown: Shown
    judge_name: str
    encoder: str  # by which pictures are called alike
    language_model: bool

    @cached_property
    def judge(self) -> Judge:
        """Asked of all captions and pictures."""
        return judge_by(load_retriever(self.judge_name))

    @cached_property
    def company(self) -> Int64[np.ndarray, "n k"]:
        """Each picture and those most like it."""
        seen, _ = see_pictures(self.shown.paths, load_encoder(self.encoder), total=len(self.shown.test))
        near = nearest_others(seen.features, min(NEIGHBOURS, len(self.shown.test) - 1)).rows
        return np.column_stack([np.arange(len(near)), near]).astype(np.int64)

    @property
    def references(self) -> dict[str, list[str]]:
        """What people wrote of each picture."""
        return {some.image_id: list(some.captions) for some in self.shown.test}

    @cached_property
    def training(self) -> list[list[str]]:
        """What people wrote of the pictures to learn from."""
        return [list(some.captions) for some in self.shown.train]

    def measure(
        self, way: Way, lines: Sequence[Line], *, known: Scores | None = None, fluently: bool = False
    ) -> Figures:
        """All figures of a file; scores that are known already are taken as they are.

        How fluent captions are takes a language model, and longer than all the rest: it has to be asked for.
        """
        if way.kind in ("retrieval", "likelihood"):
            return Figures(_of_ranks(way, lines), ())
        if way.kind == "penalties":
            return Figures(_of_penalties(lines), ())
        first = {line.image_id: line.captions[0] for line in lines}
        tokens = tuple(map(tuple, tokenize_all(list(first.values()))))
        if known is not None:
            return Figures(known, tokens)
        if way.sets:
            return Figures(self._of_sets(way, lines), tokens)
        scores = self._of_captions(way, first, fluently=fluently)
        return Figures(Scores(scores.ids, {**scores.parts, **self._found(first)}, scores.skipped), tokens)

    def _of_captions(self, way: Way, captions: Mapping[str, str], *, fluently: bool) -> Scores:
        """Accuracy is not asked of people: each of their captions is a reference."""
        accuracy = () if way.kind == "people" else ACCURACY
        fluency = ("fluency",) if fluently and self.language_model else ()
        return self._scores(captions, [*accuracy, "diversity", "form", *fluency])

    def _of_sets(self, way: Way, lines: Sequence[Line]) -> Scores:
        """How good the best of several is and, of the first few, how much they differ."""
        few = {line.image_id: list(line.captions[:SET]) for line in lines}
        within = self._scores(few, ["cider", "sets"])
        if way.kind != "sample":
            return within
        best = self._scores({line.image_id: list(line.captions) for line in lines}, [OracleConfig()])
        return Scores(within.ids, {**within.parts, **best.parts}, {**within.skipped, **best.skipped})

    def _scores(self, captions: Mapping[str, Texts], names: Sequence[str | Config]) -> Scores:
        """Measures whose library is not installed are left out, and it is said why."""
        material = gather(captions, self.references)
        material = replace(material, training=tuple(map(tuple, self.training)))
        return measure(material, Choice(choose(list(names)).measures, must_run=False))

    def _found(self, captions: Mapping[str, str]) -> dict[str, Score]:
        """Whether captions find their picture: among all, and among those that are most like it."""
        texts = [captions[name] for name in self.shown.ids]
        matrix = np.asarray(self.judge.score(texts, self.shown.paths))
        pool = len(texts)
        found = rank_scores(ranks(matrix), RetrievalConfig(at=AT), pool=pool, retriever=self.judge.identity)
        near = ranks(np.take_along_axis(matrix, self.company, axis=1), np.zeros(pool, int))
        signature = f"{found[0].signature}|near:{self.company.shape[1]}-by-{self.encoder}"
        own = mean_score(COSINE, matrix.diagonal().astype(np.float64), f"retriever:{self.judge.identity}")
        return {one.name: one for one in (*found, mean_score(NEAR, recalled(near, 1), signature), own)}


def _of_penalties(lines: Sequence[Line]) -> Scores:
    """The mean over the words of a caption, then over captions."""
    scores = [
        mean_score(
            name, [float(np.mean([one[place] for one in line.penalties])) for line in lines], "mean:words"
        )
        for name, place in (("Penalty-MLE", 1), ("Penalty-SMILE", 2))
    ]
    return Scores(tuple(line.image_id for line in lines), {score.name: score for score in scores}, {})


def _of_ranks(way: Way, lines: Sequence[Line]) -> Scores:
    ids = tuple(line.image_id for line in lines)
    if way.kind == "likelihood":
        found = np.array([line.ranks["likelihood"][0] for line in lines])
        config = RetrievalConfig(at=AT_BY_LIKELIHOOD)
        scores = rank_scores(found, config, pool=len(lines), retriever="its own likelihood")
        return Scores(ids, {f"likelihood {one.name}": one for one in scores}, {})
    parts: dict[str, Score] = {}
    for kind, prefix in (
        (EQ7_RANKS, f"{EQ7_RANKS} "),
        (PLAIN_RANKS, "plain "),
        (PICTURE_RANKS, f"{PICTURE_RANKS} "),
    ):
        each = [np.array(line.ranks[kind]) for line in lines]
        for k in AT:
            name = f"{prefix}R@{k}"
            # A mean over the sentences of a picture, then over pictures, of which all have as many.
            values = [float((found < k).mean()) for found in each]
            parts[name] = mean_score(name, values, f"by:likelihood|eq7:{kind == EQ7_RANKS}|pool:{len(lines)}")
        name = f"{prefix}Median-rank"
        median = float(np.median(np.concatenate(each))) + 1
        parts[name] = Score(name, median, f"by:likelihood|eq7:{kind == EQ7_RANKS}|ranks:from-1")
    return Scores(ids, parts, {})
