"""Who judges captions, and what there is to know before one believes a judge.

A retriever that taught a captioner will find its captions good: the captioner was made to please it. A judge
whose encoder is also the captioner's sees what the captioner saw, and no more. Both are said wherever ranks
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float
from tellapart.captioners.folder import read_settings
from tellapart.captioning import find_captioner
from tellapart.errors import TellapartError
from tellapart.metrics.score import Score, mean_score, signed
from tellapart.retrieval import load_likelihood
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.dual.runtime import DualRetriever
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.vision.traits import are_related

Scorer = Callable[[Sequence[str], Sequence[Path]], Float[np.ndarray, "sentences pictures"]]
"""How close each sentence is to each picture; the greater the closer."""

LIKELIHOOD = "likelihood"


@dataclass(frozen=True, slots=True)
class Author:
    """The captioner that wrote the captions."""

    name: str
    encoder: str  # identity
    taught_by: tuple[str, ...]  # identities of the retrievers that it was trained to please

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "encoder": self.encoder, "taught_by": list(self.taught_by)}


@dataclass(frozen=True, slots=True)
class Judge:
    """Something that says how close sentences and pictures are, and what is known of it."""

    name: str
    identity: str
    score: Scorer
    encoder: str = ""  # identity; "" where it is not known
    trained_on: str = ""
    remark: Callable[[Sequence[str]], Sequence[str]] = lambda sentences: ()  # what a report must say

    def is_called(self, identity: str) -> bool:
        """Whether that is its identity, under whatever name: the hash behind the @ tells retrievers apart."""
        return identity.rpartition("@")[2] == self.identity.rpartition("@")[2]

    def taught(self, author: Author | None) -> bool | None:
        """Whether the captioner was trained to please it; None where nobody knows."""
        return None if author is None else any(map(self.is_called, author.taught_by))

    def shares_encoder(self, author: Author | None) -> bool | None:
        """Whether it sees through the captioner's own encoder, tuned or not; None where nobody knows."""
        return None if author is None or not self.encoder else are_related(self.encoder, author.encoder)

    def to_json(self, author: Author | None) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "identity": self.identity,
            "encoder": self.encoder or None,
            "trained_on": self.trained_on or None,
            "taught_the_captioner": self.taught(author),
            "shares_encoder": self.shares_encoder(author),
        }


def find_author(name: str) -> Author:
    """What is known of a captioner, by the name it has on the command line."""
    settings = read_settings(find_captioner(name))
    return Author(name, settings.encoder.identity, settings.taught_by)


def judge_by(retriever: Retriever, *, watch: Watch = unwatched) -> Judge:
    """A retriever as a judge: the cosine of every sentence with every picture.

    Args:
        retriever: where pictures and sentences are placed.
        watch: told how many pictures are placed, and of how many.
    """

    def score(sentences: Sequence[str], pictures: Sequence[Path]) -> Float[np.ndarray, "n m"]:
        return dot_products(retriever.embed_texts(sentences), retriever.embed_images(pictures, watch=watch))

    encoder, data = "", ""
    if isinstance(retriever, DualRetriever):
        encoder, data = retriever.settings.encoder.identity, retriever.settings.trained_on
    return Judge(retriever.name, retriever.identity, score, encoder, data, retriever.notes)


def fits(
    retriever: Retriever, sentences: Sequence[str], pictures: Sequence[Path], *, watch: Watch = unwatched
) -> Score:
    """The cosine of each sentence with its own picture."""
    whose, said = list(dict.fromkeys(pictures)), list(dict.fromkeys(sentences))  # people judge in many pairs
    seen = dict(zip(whose, retriever.embed_images(whose, watch=watch), strict=True))
    read = dict(zip(said, retriever.embed_texts(said), strict=True))
    cosines = [
        float(read[sentence] @ seen[picture]) for sentence, picture in zip(sentences, pictures, strict=True)
    ]
    notes = tuple(f"{retriever.name}: {note}" for note in retriever.notes(sentences))
    return mean_score(retriever.name, cosines, signed({"retriever": retriever.identity}), notes=notes)


def judge_by_likelihood(author: Author, *, watch: Watch = unwatched) -> Judge:
    """The captioner itself as a judge: log p(c|I) of each caption (Dai & Lin 2017, section 4.1 and Table 1).

    Args:
        author: the captioner.
        watch: told how many pictures are done, and of how many.
    """
    own = load_likelihood(author.name)

    def score(sentences: Sequence[str], pictures: Sequence[Path]) -> Float[np.ndarray, "n m"]:
        return own.scores(sentences, pictures, watch=watch)

    return Judge(LIKELIHOOD, own.identity, score, author.encoder, "the captioner's own data")


def cautions(judge: Judge, author: Author | None) -> list[str]:
    """What a reader must know before believing this judge of these captions."""
    if judge.name == LIKELIHOOD:
        return ["it is the captioner's own opinion of its captions"]
    if author is None:
        return ["whether it taught the captioner is not known"]
    found = []
    if judge.taught(author):
        found.append(
            "IT TAUGHT THIS CAPTIONER: its ranks say how well the lesson was learnt; believe another judge"
        )
    if judge.shares_encoder(author):
        found.append("it sees through the captioner's own encoder")
    return found


def expect_judges(names: Sequence[str]) -> None:
    """An error where none is named, or one twice."""
    for name in names:
        if list(names).count(name) > 1:
            raise TellapartError(f"--by {name} is given twice", hint="name each judge once")
    if not names:
        raise TellapartError("no judge is named", hint="name one with --by, such as --by judge")
