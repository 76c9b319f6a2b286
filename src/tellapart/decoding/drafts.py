"""Captions while they are written, token by token: what all searches and sampling share.

Each step the captioner reads one token a caption, rules strike out what may not follow, and a choice is made
among what is left. Log-probabilities are the captioner's own, of the whole caption with its end sign;
forbidding a word does not change the others'. A caption of `max_words` words is closed there by the end sign,
so every caption has one.

Letters of the shapes: g groups of captions that compete with each other, k captions in a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.decoding.required import required_of
from tellapart.decoding.rules import Rule, frame
from tellapart.types import AnyCaptioner, Decoded, Text, Vision

FEWER = 7 / 8  # share of the groups that may be left for the others to be put aside: it copies what is left


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Half-written captions, in groups; the groups of an image stand together."""

    text: Text
    place: Int[Tensor, " g"]  # of each group among all that were begun; those of an image stand together
    tokens: Int[Tensor, "g k t"]  # without the start sign
    scores: Float[Tensor, "g k"]  # log-probability so far; -inf where there is no such caption
    finished: Bool[Tensor, "g k"]

    @classmethod
    def begin(cls, vision: Vision, text: Text, *, groups: int, width: int) -> Draft:
        """So many groups an image, of so many captions each, before the first word."""
        # All captions of a group start alike: only the first may go on, or it would hold copies.
        scores = vision.pooled.new_full((len(vision) * groups, width), -torch.inf)
        scores[:, 0] = 0
        place = torch.arange(len(scores), device=scores.device)
        nothing = torch.zeros((*scores.shape, 0), dtype=torch.long, device=scores.device)
        return cls(text, place, nothing, scores, torch.zeros_like(scores, dtype=torch.bool))

    @property
    def last(self) -> Int[Tensor, " r"]:
        """The last token of each caption, the start sign at first."""
        if self.tokens.size(2):
            return self.tokens[:, :, -1].flatten()
        return self.tokens.new_full((self.scores.numel(),), self.text.start)

    @property
    def goes_on(self) -> Bool[Tensor, " g"]:
        """Whether a caption of the group goes on."""
        return ~(self.finished | (self.scores == -torch.inf)).all(1)

    @property
    def lengths(self) -> Int[Tensor, "g k"]:
        """How many tokens each caption has, an end sign included."""
        return _up_to_the_end(self.tokens, self.text).sum(-1)

    def select(self, groups: slice | Tensor) -> Draft:
        """Some of the groups, by their places or whether each is among them."""
        return Draft(
            self.text, self.place[groups], self.tokens[groups], self.scores[groups], self.finished[groups]
        )

    def allow(self, log_probabilities: Float[Tensor, "r v"], rules: Sequence[Rule]) -> Float[Tensor, "g k v"]:
        """Log-probability of each next token that may stand; a finished caption goes on by padding alone.

        A rule by which no caption of a group could go on, none being finished, is set aside for that group.
        """
        tokens, scores = self.tokens.flatten(0, 1), log_probabilities
        there = self.scores > -torch.inf
        for rule in rules:
            ruled = rule(scores, tokens)
            if ruled is scores:
                continue
            goes_on = (ruled.amax(-1) > -torch.inf).view_as(there) & there | self.finished
            if bool((stuck := ~goes_on.any(1)).any()):
                ruled = torch.where(stuck.repeat_interleave(there.size(1)).unsqueeze(1), scores, ruled)
            scores = ruled
        stay = scores.new_full((scores.size(1),), -torch.inf)
        stay[self.text.pad] = 0
        return torch.where(self.finished.unsqueeze(-1), stay, scores.view(*there.shape, -1))

    def rearranged(self, order: Int[Tensor, "g k"]) -> Draft:
        """The captions of each group in this order; one may come twice."""
        return replace(
            self,
            tokens=self.tokens.gather(1, order.unsqueeze(-1).expand_as(self.tokens)),
            scores=self.scores.gather(1, order),
            finished=self.finished.gather(1, order),
        )

    def with_next(self, token: Int[Tensor, "g k"], log_probability: Float[Tensor, "g k"]) -> Draft:
        """Each caption with its next token; by one that may not follow it, it ceases to exist."""
        scores = self.scores + log_probability
        there = scores > -torch.inf
        tokens = torch.cat([self.tokens, token.masked_fill(~there, self.text.pad).unsqueeze(-1)], dim=-1)
        finished = (self.finished | (token == self.text.end)) & there
        return replace(self, tokens=tokens, scores=scores, finished=finished)

    def padded(self, places: int) -> Draft:
        """The same with padding up to so many tokens."""
        more = (*self.scores.shape, places - self.tokens.size(2))
        return replace(
            self, tokens=torch.cat([self.tokens, self.tokens.new_full(more, self.text.pad)], dim=2)
        )

    def decoded(self, images: int) -> Decoded:
        """All captions of each image; one that does not exist is padding alone, of log-probability -inf."""
        there = (self.scores > -torch.inf).unsqueeze(-1)
        tokens, mask = self.tokens.masked_fill(~there, self.text.pad), _up_to_the_end(self.tokens, self.text)
        places = tokens.size(2)
        return Decoded(
            tokens.view(images, -1, places),
            (mask & there).view(images, -1, places),
            self.scores.view(images, -1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The next token of each caption, and which caption of its group goes on with it."""

    token: Int[Tensor, "g k"]
    parent: Int[Tensor, "g k"] | None = None  # None: each goes on itself

    def of(self, allowed: Float[Tensor, "g k v"]) -> Float[Tensor, "g k"]:
        """What each choice has of what all of them have."""
        if self.parent is None:
            return allowed.gather(2, self.token.unsqueeze(-1)).squeeze(-1)
        return allowed.flatten(1).gather(1, self.parent * allowed.size(2) + self.token)


Choose = Callable[[Float[Tensor, "g k v"], Draft], Choice]


@runtime_checkable
class Reader(Protocol):
    """Reads half-written captions along, and says what it expects next."""

    def read(self, token: Int[Tensor, " r"], rows: Int[Tensor, " r"] | None) -> Float[Tensor, "r v"]:
        """Take one token a caption, after going on with the captions of these rows (None: with all).

        Gives log-probabilities of the next token.
        """
        ...


class Alone:
    """A captioner that reads captions of images, each by itself."""

    @torch.no_grad()
    def __init__(self, captioner: AnyCaptioner, vision: Vision, *, captions: int) -> None:
        self._captioner = captioner
        images = torch.arange(len(vision), device=vision.pooled.device)
        self._state = captioner.begin(vision).select(images.repeat_interleave(captions))

    def read(self, token: Int[Tensor, " r"], rows: Int[Tensor, " r"] | None) -> Float[Tensor, "r v"]:
        """As a captioner does it."""
        if rows is not None:
            self._state = self._state.select(rows)
        logits, self._state = self._captioner.step(token, self._state)
        return logits.log_softmax(-1)


@torch.no_grad()
def write(
    reader: Reader,
    draft: Draft,
    choose: Choose,
    *,
    max_words: int,
    rules: Sequence[Rule],
    of_image: int = 0,
) -> Draft:
    """Go on until every caption is finished.

    Args:
        reader: reads the captions along.
        draft: where to begin.
        choose: how each caption goes on.
        max_words: longest caption.
        rules: what may not follow what.
        of_image: how many groups an image was begun with, if the choice does not care which groups are still
            there: finished ones are read no further then. 0: all stay until the end. The slowest of 64 images
            takes twice as many steps as most of them; most of 100 samples are half as long as the longest.
    """
    required_of(rules, max_words=max_words)  # what it refuses is refused before the first step
    every_rule = (*frame(draft.text, max_words=max_words), *rules)
    ended: list[Draft] = []
    rows: Int[Tensor, " r"] | None = None
    for _ in range(max_words + 1):
        allowed = draft.allow(reader.read(draft.last, rows), every_rule)
        choice = choose(allowed, draft)
        own = torch.arange(draft.scores.numel(), device=draft.scores.device).view_as(draft.scores)
        rows = None
        if choice.parent is not None:
            rows = own.gather(1, choice.parent).flatten()
            draft = draft.rearranged(choice.parent)
        draft = draft.with_next(choice.token, choice.of(allowed))
        if not bool(draft.goes_on.any()):
            break
        kept = _kept(draft, of_image) if of_image else None
        if kept is not None and int(kept.sum()) <= FEWER * len(kept):
            ended.append(draft.select(~kept))
            rows = (own if rows is None else rows.view_as(own))[kept].flatten()
            draft = draft.select(kept)
    return _in_order([*ended, draft])


def _kept(draft: Draft, of_image: int) -> Bool[Tensor, " g"]:
    """The groups that go on and, of each image that has such, as many others as give all images equally many.

    What a captioner keeps once an image is then still shared: unequal shares would be copies.
    """
    left = int((draft.place // of_image == draft.place[0] // of_image).sum())  # of every image
    goes_on = draft.goes_on.view(-1, left)
    most = int(goes_on.sum(1).max())
    first = (~goes_on).long().argsort(dim=1, stable=True)[:, :most]
    kept = torch.zeros_like(goes_on).scatter(1, first, goes_on.any(1, keepdim=True).expand_as(first))
    return kept.flatten()


def _in_order(parts: Sequence[Draft]) -> Draft:
    """Groups that ended at different times, each in its place."""
    *_, last = parts
    if len(parts) == 1:
        return last
    order = torch.cat([draft.place for draft in parts]).argsort()
    drafts = [draft.padded(last.tokens.size(2)) for draft in parts]
    whole = Draft(
        last.text,
        torch.cat([draft.place for draft in drafts]),
        torch.cat([draft.tokens for draft in drafts]),
        torch.cat([draft.scores for draft in drafts]),
        torch.cat([draft.finished for draft in drafts]),
    )
    return whole.select(order)


def _up_to_the_end(tokens: Int[Tensor, "g k t"], text: Text) -> Bool[Tensor, "g k t"]:
    """Words and the end sign; padding behind the end is not written."""
    ends = (tokens == text.end).long()
    return ends.cumsum(-1) - ends == 0
