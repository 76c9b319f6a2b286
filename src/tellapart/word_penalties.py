"""What each word of a caption costs its captioner: by MLE, and by SMILE (Yue et al. 2023, Figure 5).

Both come from one prediction. By MLE a word competes with the whole vocabulary; by SMILE with the words of
its own caption and the end sign, only the first with all. Where the captioner would rather say a word that
the caption does not hold, MLE punishes the word that stands there, and SMILE does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.errors import TellapartError
from tellapart.objectives.semipermeable import smile
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Prediction, Text, Vision

END, SIGN = "(end)", "(sign)"  # SIGN: one that has no spelling, such as the start


@dataclass(frozen=True, slots=True)
class Spelled:
    """The words of a caption as they are written, and the tokens of each; a mere mark may have none."""

    words: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    start: int
    end: int

    @property
    def caption(self) -> str:
        """The words, one space apart."""
        return " ".join(self.words)

    @property
    def labels(self) -> list[int]:
        """All tokens that are expected one after another, the end sign included."""
        return [*(token for tokens in self.tokens for token in tokens), self.end]

    def places(self) -> list[range]:
        """Where the tokens of each word stand among the labels."""
        bounds = [0]
        for tokens in self.tokens:
            bounds.append(bounds[-1] + len(tokens))
        return [range(first, last) for first, last in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class Guess:
    """What a captioner finds likeliest at a place, and how likely."""

    word: str  # of a tokenizer, its piece
    probability: float
    is_said: bool  # whether it is what stands there

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"word": self.word, "probability": round(self.probability, 6), "said": self.is_said}


@dataclass(frozen=True, slots=True)
class Penalty:
    """-ln p of a word, of all its tokens together.

    Attributes:
        mle: among all words.
        smile: among those of the caption and the end sign; the caption's first token among all.
        likeliest: of all words, the one that the captioner finds likeliest where this one begins; None where
            the word has no token.
        likeliest_own: the same of the words that SMILE lets compete.
    """

    mle: float
    smile: float
    likeliest: Guess | None = None
    likeliest_own: Guess | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "mle": round(self.mle, 6),
            "smile": round(self.smile, 6),
            "likeliest": self.likeliest.to_json() if self.likeliest else None,
            "likeliest_own": self.likeliest_own.to_json() if self.likeliest_own else None,
        }


def spell(text: Text, caption: str) -> Spelled:
    """Cut a caption at its spaces, and find the tokens of each word.

    A caption is encoded word by word more: what a word adds is its tokens. A caption without a word, or with
    more than the text takes, is an error; so is one of a tokenizer whose pieces reach over spaces.
    """
    words = tuple(caption.split())
    whole = text.encode(" ".join(words))[:-1]
    tokens: list[tuple[int, ...]] = []
    before = 1  # the start sign
    for count, word in enumerate(words, start=1):
        beginning = text.encode(" ".join(words[:count]))[:-1]
        if beginning != whole[: len(beginning)]:
            raise TellapartError(
                f"the captioner's tokenizer cuts {caption!r} across spaces: its words cannot be told apart",
                hint="explain the caption with another captioner",
            )
        tokens.append(tuple(beginning[before:]))
        if not tokens[-1] and len(text.encode(word)) > 2:
            raise TellapartError(
                f"the caption has {len(words)} words, the captioner reads only {count - 1} of them",
                hint="shorten it",
            )
        before = len(beginning)
    if len(whole) == 1:
        raise TellapartError(
            f"there is no word in the caption {caption!r}", hint="say something about the picture"
        )
    return Spelled(words, tuple(tokens), text.start, text.end)


def unwritten(spelled: Spelled, text: Text) -> list[str]:
    """The words that no decoder of the captioner could write, for it does not know them."""
    silent = frozenset(text.silent)
    pairs = zip(spelled.words, spelled.tokens, strict=True)
    return list(dict.fromkeys(word for word, tokens in pairs if not silent.isdisjoint(tokens)))


@torch.no_grad()
def predict_words(captioner: AnyCaptioner, vision: Vision, spelled: Spelled) -> Prediction:
    """What the captioner expects in the place of each label, the caption's words before it given."""
    given = [spelled.start, *spelled.labels[:-1]]
    return captioner.predict(vision, torch.tensor([[given]], device=vision.pooled.device))


@torch.no_grad()
def word_penalties(prediction: Prediction, spelled: Spelled, text: Text) -> tuple[list[Penalty], Penalty]:
    """The penalty of each word, and that of the end sign."""
    logits = prediction.logits
    labels = torch.tensor([[spelled.labels]], device=logits.device)
    mask = torch.ones_like(labels, dtype=torch.bool)
    by_mle = mle(logits, labels, mask)[0, 0].tolist()
    by_smile = smile(logits, labels, mask, first="mle", ends=(text.end,))[0, 0].tolist()
    likeliest = _guesses(logits[0, 0], labels[0, 0], text)
    own = _guesses(_among_own(logits[0, 0], labels[0, 0]), labels[0, 0], text)

    def at(places: Sequence[int]) -> Penalty:
        if not places:
            return Penalty(0.0, 0.0)
        whole, among_own = (sum(losses[place] for place in places) for losses in (by_mle, by_smile))
        return Penalty(whole, among_own, likeliest[places[0]], own[places[0]])

    return [at(places) for places in spelled.places()], at([labels.shape[-1] - 1])


def _among_own(logits: Float[Tensor, "t v"], labels: Int[Tensor, " t"]) -> Float[Tensor, "t v"]:
    """Only those tokens that SMILE lets compete at each place: the labels, of which the end sign is one."""
    outside = torch.ones_like(logits, dtype=torch.bool)
    outside[:, labels] = False
    outside[0] = False  # the first competes with all
    return logits.masked_fill(outside, -torch.inf)


def _guesses(logits: Float[Tensor, "t v"], labels: Int[Tensor, " t"], text: Text) -> list[Guess]:
    found = logits.softmax(-1).max(-1)
    triples = zip(found.indices.tolist(), found.values.tolist(), labels.tolist(), strict=True)
    return [
        Guess(END if token == text.end else text.decode([token]) or SIGN, probability, token == label)
        for token, probability, label in triples
    ]
