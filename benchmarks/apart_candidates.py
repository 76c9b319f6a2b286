"""Candidate captions of photographs of Flickr8k, and how close each is to its picture and its neighbours.

All of it is kept in a folder: what sweeps over settings read again and again is computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tellapart.captioning import Describer, Wish, load
from tellapart.corpus import Corpus, build_corpus
from tellapart.data.examples import Example
from tellapart.decoding.pragmatic import Company, pragmatic
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam
from tellapart.metrics.retrieval import ranks
from tellapart.recipe import load_recipe
from tellapart.retrievers.likelihood.pairs import score_pairs
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.neighbours import nearest_others
from tellapart.sources import read_examples, split_of
from tellapart.storage import new_file, write_text
from tellapart.types import Decoded
from tellapart.vision.features import in_order

RECIPE, RERANKER, JUDGE = "mrnn-flickr8k", "reranker", "judge"
NEIGHBOURS, PRAGMATIC_WIDTH, SEED, TOGETHER = 10, 5, 1, 20

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption, its log-probability under the captioner, and its words with the end sign."""

    caption: str
    log_probability: float
    length: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Those of each photograph, under the name that what is known of them is kept by."""

    name: str
    groups: Sequence[Sequence[Candidate]]

    @property
    def captions(self) -> list[str]:
        """All in a row."""
        return [one.caption for group in self.groups for one in group]

    @property
    def own(self) -> NDArray[np.int64]:
        """The photograph of each."""
        return np.repeat(np.arange(len(self.groups)), [len(group) for group in self.groups])

    def apart(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows that belong to all candidates, as those of each photograph."""
        return np.split(values, np.cumsum([len(group) for group in self.groups])[:-1])

    def joined(self, others: Candidates) -> Candidates:
        """These and then the others, each caption once."""
        groups = []
        for mine, theirs in zip(self.groups, others.groups, strict=True):
            once: dict[str, Candidate] = {}
            for one in (*mine, *theirs):
                once.setdefault(one.caption, one)
            groups.append(list(once.values()))
        return Candidates(f"{self.name}+{others.name}", groups)


@dataclass(frozen=True)
class Field:
    """The photographs of a split with their neighbours, and the captioner that is to tell them apart."""

    split: str
    folder: Path
    describer: Describer
    shown: Sequence[Example]
    train: Sequence[Example]
    corpus: Corpus

    @classmethod
    def read(cls, split: str, folder: Path, captioner_name: str) -> Field:
        """All of it; features come from the cache."""
        recipe, describer = load_recipe(RECIPE), load(captioner_name)
        examples = read_examples(recipe.data, seed=recipe.seed)
        shown, captioner = split_of(examples, split), describer.saved.captioner
        corpus = build_corpus(
            shown,
            text=captioner.text,
            rules=recipe.data.rules(),
            encoder=describer.encoder,
            parts=in_order(captioner.needs),
            watch=lambda done, total: None,
        )
        return cls(split, folder, describer, shown, split_of(examples, "train"), corpus)

    def pictures(self, retriever: str) -> Floats:
        """The place of each photograph in a retriever's space."""
        return self.kept(f"pictures-{retriever}", lambda: load_retriever(retriever).embed_images(self.paths))

    @cached_property
    def wish(self) -> Wish:
        """How the captioner is meant to be decoded: its own length penalty and rules."""
        return self.describer.wish()

    @property
    def paths(self) -> list[Path]:
        """The files of the photographs."""
        return [some.path for some in self.shown]

    @cached_property
    def company(self) -> NDArray[np.int64]:
        """Each photograph's row, then those of its neighbours by the reranker."""
        near = nearest_others(self.pictures(RERANKER), NEIGHBOURS).rows
        return np.column_stack([np.arange(len(near)), near]).astype(np.int64)

    def kept(self, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """An array, from its file where there is one."""
        path = self.folder / f"{self.split}-{name}.npy"
        if not path.exists():
            values = make()
            with new_file(path) as temporary, temporary.open("wb") as file:
                np.save(file, values)
        return np.asarray(np.load(path))


def by_beam(field: Field, width: int) -> Candidates:
    """All of a beam of that width, best first."""
    captioner, wish = field.describer.saved.captioner, field.wish

    def decode(rows: range) -> Decoded:
        return beam(
            captioner,
            field.corpus.vision(rows),
            width=width,
            max_words=wish.max_words,
            rules=wish.rules,
            length_penalty=wish.length_penalty,
        )

    return _decoded(field, f"beam-{width}", decode)


def by_chance(field: Field, count: int, temperature: float) -> Candidates:
    """Drawn at that temperature."""
    captioner, wish = field.describer.saved.captioner, field.wish

    def decode(rows: range) -> Decoded:
        names = [field.shown[row].image_id for row in rows]
        return sample(
            captioner,
            field.corpus.vision(rows),
            Sampling(count, temperature),
            generators=image_generators(names, seed=SEED),
            max_words=wish.max_words,
            rules=wish.rules,
        )

    return _decoded(field, f"sample-{count}-{temperature:g}", decode)


def by_pragmatics(field: Field, rationality: float) -> Candidates:
    """The five best by S1, against the neighbours."""
    captioner, wish = field.describer.saved.captioner, field.wish

    def decode(rows: range) -> Decoded:
        seen, places = np.unique(field.company[rows.start : rows.stop], return_inverse=True)
        vision = field.corpus.vision(seen.tolist())
        company = Company(vision, torch.from_numpy(places.reshape(len(rows), -1)), rationality)
        return pragmatic(
            captioner,
            company,
            width=PRAGMATIC_WIDTH,
            max_words=wish.max_words,
            rules=wish.rules,
            length_penalty=wish.length_penalty,
        )

    return _decoded(field, f"pragmatic-{rationality:g}", decode)


@torch.inference_mode()
def _decoded(field: Field, name: str, decode: Callable[[range], Decoded]) -> Candidates:
    """What a decoder writes of all photographs, from its file where there is one."""
    path = field.folder / f"{field.split}-{name}.json"
    if not path.exists():
        text, lines = field.describer.saved.captioner.text, []
        for first in range(0, len(field.shown), TOGETHER):
            found = decode(range(first, min(first + TOGETHER, len(field.shown))))
            values = (found.tokens, found.log_probabilities, found.mask.sum(-1))
            for tokens, scores, lengths in zip(*(some.tolist() for some in values), strict=True):
                group = zip(tokens, scores, lengths, strict=True)
                lines.append([(text.decode(ids), score, length) for ids, score, length in group])
            print(f"{path.name}: {len(lines)} of {len(field.shown)}", end="\r", flush=True)
        write_text(path, json.dumps(lines))
    lines = json.loads(path.read_text(encoding="utf-8"))
    return Candidates(name, [[Candidate(*one) for one in group if one[1] > -np.inf] for group in lines])


def by_reranker(field: Field, some: Candidates) -> list[Floats]:
    """Cosines of each photograph's candidates with it and with its neighbours."""

    def make() -> Floats:
        vectors, own = load_retriever(RERANKER).embed_texts(some.captions), some.own
        pictures = field.pictures(RERANKER)
        found = [np.vecdot(pictures[field.company[own, column]], vectors) for column in range(1 + NEIGHBOURS)]
        return np.column_stack(found)

    return some.apart(field.kept(f"{some.name}-cosines", make))


def by_likelihood(field: Field, some: Candidates) -> list[Floats]:
    """Log-probabilities of each photograph's candidates for it and for its neighbours."""
    captioner = field.describer.saved.captioner

    def make() -> Floats:
        found = []
        for row, group in enumerate(some.groups):
            vision = field.corpus.vision(field.company[row].tolist())
            found.append(
                score_pairs(captioner, [vision], [captioner.text.encode(one.caption) for one in group])
            )
        return np.concatenate(found)

    return some.apart(field.kept(f"{some.name}-likelihood", make))


def by_judge(field: Field, some: Candidates) -> list[NDArray[np.int64]]:
    """The rank, counted from 0, of each candidate's own photograph among all of the split."""

    def make() -> NDArray[np.int64]:
        vectors, own, pictures = (
            load_retriever(JUDGE).embed_texts(some.captions),
            some.own,
            field.pictures(JUDGE),
        )
        blocks = range(0, len(own), 4096)
        found = [ranks(vectors[at : at + 4096] @ pictures.T, own[at : at + 4096]) for at in blocks]
        return np.concatenate(found)

    return some.apart(field.kept(f"{some.name}-ranks", make))
