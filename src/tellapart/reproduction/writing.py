"""From a trained captioner to what is kept of it: captions of the test pictures in every way, and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from tellapart.arrays import Int64
from tellapart.captioning import Describer, Wish, describe_corpus, draw_corpus, load
from tellapart.consensus import BEST, Consensus, Reranked, rerank_by_consensus, rerank_by_oracle
from tellapart.corpus import Corpus, build_corpus
from tellapart.data.examples import Example
from tellapart.data.text import words
from tellapart.decoding.sampling import Sampling
from tellapart.judges import find_author, judge_by_likelihood
from tellapart.metrics.retrieval import ranks
from tellapart.recipe import Recipe
from tellapart.reproduction.plan import Way
from tellapart.reproduction.shelf import Line
from tellapart.reproduction.ways import BY_LIKELIHOOD, LENGTH_PENALTY, NEIGHBOURS, TEMPERATURE
from tellapart.reranking.margin import Terms, choose
from tellapart.retrieval import EQ7, PLAIN, retrieve
from tellapart.retrieval import Wish as Search
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.neighbours import nearest_others
from tellapart.sources import by_hash, read_examples, split_of
from tellapart.stepping import products
from tellapart.training_neighbours import Sight, gather_training_set, refined_sight
from tellapart.vision.features import in_order
from tellapart.word_penalties import predict_words, spell, unwritten, word_penalties

SPLIT = "test"
PLAIN_RANKS, EQ7_RANKS, PICTURE_RANKS = "plain", "image-to-sentence", "sentence-to-image"

Watch = Callable[[str, int, int], None]  # what is being done, and how much of it is


@dataclass(frozen=True, slots=True)
class Shown:
    """The pictures that all methods caption, and those to learn from."""

    test: Sequence[Example]
    train: Sequence[Example]

    @classmethod
    def read(cls, recipe: Recipe) -> Shown:
        """Those of a recipe's data that have captions."""
        everything = read_examples(recipe.data, seed=recipe.seed)
        both = [example for example in everything if example.pictured and example.captions]
        return cls(split_of(both, SPLIT), split_of(both, "train"))

    @property
    def ids(self) -> list[str]:
        """Of the pictures that are captioned."""
        return [some.image_id for some in self.test]

    @property
    def paths(self) -> list[Path]:
        """Of the same."""
        return [some.path for some in self.test]


@dataclass(frozen=True)
class Writer:
    """A captioner at work on the test pictures."""

    folder: Path
    recipe: Recipe
    shown: Shown
    teacher: str  # the retriever by which captions are chosen; the judge is another one
    seed: int
    watch: Watch

    @cached_property
    def describer(self) -> Describer:
        """The captioner with its encoder."""
        return load(self.folder)

    @cached_property
    def corpus(self) -> Corpus:
        """The test pictures as it sees them."""
        captioner = self.describer.saved.captioner
        return build_corpus(
            self.shown.test,
            text=captioner.text,
            rules=self.recipe.data.rules(),
            encoder=self.describer.encoder,
            parts=in_order(captioner.needs),
            watch=lambda done, total: self.watch("looking at pictures", done, total),
        )

    def write(self, way: Way, before: Sequence[Line]) -> list[Line]:
        """What comes out in a way; `before` are the lines of the way that it chooses from."""
        works: dict[str, Callable[[Way, Sequence[Line]], Iterator[Line]]] = {
            "beam": self._search,
            "sample": self._draw,
            "consensus": self._agree,
            "oracle": self._know,
            "margin": self._tell_apart,
            "retrieval": self._retrieve,
            "likelihood": self._find_own,
            "penalties": self._punish,
        }
        with torch.no_grad(), products(fast=way.kind in BY_LIKELIHOOD):  # inference_mode would make them slow
            return list(works[way.kind](way, before))

    def _search(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        longest = self.describer.saved.settings.max_words
        wish = Wish(way.size, longest, keep=way.keep, length_penalty=LENGTH_PENALTY)
        found = describe_corpus(
            self.describer.saved,
            self.corpus,
            wish,
            watch=lambda done, total: self.watch(way.name, done, total),
        )
        for name, candidates in zip(self.shown.ids, found, strict=True):
            captions = tuple(one.caption for one in candidates)
            # Only who chooses among several asks how likely they are.
            likely = tuple(round(one.logprob, 4) for one in candidates) if way.keep > 1 else ()
            yield Line(name, captions, likely)

    def _draw(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        drawn = draw_corpus(
            self.describer.saved,
            self.corpus,
            Sampling(way.size, temperature=TEMPERATURE),
            seed=self.seed,
            watch=lambda done, total: self.watch(way.name, done, total),
        )
        for name, captions in zip(self.shown.ids, drawn, strict=True):
            yield Line(name, tuple(captions))

    def _agree(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        sight = refined_sight(self.describer) if way.sight == "refined" else Sight(self.describer.encoder)
        training = gather_training_set(self.shown.train, sight)
        how = Consensus("bleu" if way.by == "bleu" else "cider", best=BEST[way.by])
        found = rerank_by_consensus(
            [line.captions for line in before], sight.look(self.shown.paths), training, how
        )
        return self._reordered(way, found)

    def _know(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        references = [some.captions for some in self.shown.test]
        return self._reordered(
            way, rerank_by_oracle([line.captions for line in before], references, by=way.by)
        )

    def _reordered(self, way: Way, found: Sequence[Reranked]) -> Iterator[Line]:
        for name, one in zip(self.shown.ids, found, strict=True):
            yield Line(name, tuple(each.caption for each in one.candidates[: way.keep]))

    def _tell_apart(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        retriever = load_retriever(self.teacher)
        pictures = retriever.embed_images(self.shown.paths)
        near = nearest_others(pictures, NEIGHBOURS).rows
        for row, line in enumerate(before):
            company = pictures[[row, *near[row].tolist()]]
            closeness = dot_products(retriever.embed_texts(line.captions), company)
            lengths = np.array([len(caption.split()) + 1 for caption in line.captions])
            order = choose(closeness, np.array(line.logprobs), lengths, Terms()).order.tolist()
            yield Line(line.image_id, tuple(line.captions[place] for place in order[: way.keep]))
            self.watch(way.name, row + 1, len(before))

    def _retrieve(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        wish = Search(split=SPLIT, normalise=(PLAIN, EQ7))
        tables = retrieve(str(self.folder), wish, watch=self.watch, recipe=self.recipe)
        by_kind = {(found.asked, found.normalisation): found.ranks for found in tables.found}
        ends = np.cumsum([len(some.captions) for some in self.shown.test])
        for_sentences = np.split(by_kind["sentence-to-image", PLAIN], ends[:-1])
        for row, name in enumerate(self.shown.ids):
            found = {
                PLAIN_RANKS: [int(by_kind["image-to-sentence", PLAIN][row])],
                EQ7_RANKS: [int(by_kind["image-to-sentence", EQ7][row])],
                PICTURE_RANKS: for_sentences[row].tolist(),
            }
            yield Line(name, ranks=found)

    def _find_own(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        judge = judge_by_likelihood(
            find_author(str(self.folder)), watch=lambda done, total: self.watch(way.name, done, total)
        )
        scores = judge.score([line.captions[0] for line in before], self.shown.paths)
        found: Int64[np.ndarray, " n"] = ranks(np.asarray(scores))
        for line, rank in zip(before, found.tolist(), strict=True):
            yield Line(line.image_id, ranks={"likelihood": [rank]})

    def _punish(self, way: Way, before: Sequence[Line]) -> Iterator[Line]:
        """Of the first caption that people wrote of each picture."""
        captioner, rules = self.describer.saved.captioner.eval(), self.recipe.data.rules()
        for row, some in enumerate(self.shown.test):
            caption = " ".join(words(some.captions[0], rules))
            spelled = spell(captioner.text, caption)
            expected = predict_words(captioner, self.corpus.vision([row]), spelled)
            found, _ = word_penalties(expected, spelled, captioner.text)
            strange = unwritten(spelled, captioner.text)  # what they cost is what any strange word would
            penalties = tuple(
                (word, round(one.mle, 3), round(one.smile, 3))
                for word, one in zip(spelled.words, found, strict=True)
                if word not in strange
            )
            yield Line(some.image_id, (caption,), penalties=penalties)
            self.watch(way.name, row + 1, len(self.shown.test))


def write_people(shown: Shown) -> list[Line]:
    """One of the captions that people wrote of each picture, and then the others.

    Which one comes first is told by the place of the picture in the order of hashed ids.
    """
    places = {some.image_id: place for place, some in enumerate(by_hash(shown.test))}
    found = []
    for some in shown.test:
        first = places[some.image_id] % len(some.captions)
        found.append(Line(some.image_id, (*some.captions[first:], *some.captions[:first])))
    return found
