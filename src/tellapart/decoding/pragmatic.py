"""Beam search that weighs words by how well they single a picture out (Cohn-Gordon et al. 2018, incremental).

The literal speaker S0 is the captioner. A listener L0 who has heard the words of a caption so far asks which
of some pictures they are about, by Bayes, all pictures being equally likely at first. The pragmatic speaker
S1 prefers words by which that listener finds the target:

    L0(i | w_1 … w_t)           ∝ S0(w_1 … w_t | i)
    S1(w | target, w_1 … w_t)   ∝ S0(w | target, w_1 … w_t) · L0(target | w_1 … w_t, w)^α

with the rationality α. At each step the captioner reads one word for the target and all its distractors
together; nothing that was read is read again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.decoding.drafts import Choice, Choose, Draft, write
from tellapart.decoding.rules import Rule
from tellapart.decoding.search import best, penalised
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Decoded, Vision


@dataclass(frozen=True, slots=True)
class Company:
    """Pictures to be captioned, each with those it is to be told from, and how hard that is tried.

    A picture that is the target of one row and a distractor of many is looked at once.
    """

    vision: Vision
    rows: Int[Tensor, "b p"]  # of the vision: a target, then its distractors; -1 where there is none
    rationality: float  # α; at 0 the distractors do not count

    def __post_init__(self) -> None:
        if not 0 <= self.rationality < math.inf:
            raise TellapartError(
                f"rationality is {self.rationality}", hint="take a number from 0 on; 0 is plain beam search"
            )
        targets, last = self.rows[:, :1], len(self.vision) - 1
        if not targets.numel() or self.rows.min() < -1 or targets.min() < 0 or self.rows.max() > last:
            raise TellapartError(
                f"the rows of targets and distractors are not those of {last + 1} pictures",
                hint="give each target's row, counted from 0, then those of its distractors, or -1 for none",
            )


def pragmatic(
    captioner: AnyCaptioner,
    company: Company,
    *,
    width: int,
    max_words: int,
    rules: Sequence[Rule] = (),
    length_penalty: float = 0.0,
) -> Decoded:
    """The `width` best captions of each target that a beam of that width finds, best first.

    Best are those that S1 finds likeliest, with the length penalty of `beam`; log-probabilities are the
    captioner's own, for the target. At α = 0 it is `beam`.
    """
    choose = best(rules, max_words=max_words, length_penalty=length_penalty)
    targets = company.vision.select(company.rows[:, 0])
    draft = Draft.begin(targets, captioner.text, groups=1, width=width)
    speaker = _Speaker(captioner, company, draft.scores, choose)
    draft = write(speaker, draft, speaker.choose, max_words=max_words, rules=rules)
    order = penalised(speaker.said, draft.lengths, length_penalty).argsort(
        dim=1, descending=True, stable=True
    )
    return draft.rearranged(order).decoded(len(targets))


class _Speaker:
    """S1: reads captions for targets and distractors together, and remembers what a listener has heard."""

    @torch.no_grad()
    def __init__(
        self, captioner: AnyCaptioner, company: Company, said: Float[Tensor, "b k"], choose: Choose
    ) -> None:
        self._captioner, self._choose, self._rationality = captioner, choose, company.rationality
        (targets, self._pictures), width = company.rows.shape, said.size(1)
        rows = company.rows.clamp_min(0).flatten()
        self._state = captioner.begin(company.vision).select(rows.repeat_interleave(width))
        self._expected = said.new_zeros((targets, self._pictures, width, 0))
        self._heard = _prior(company, width)  # log S0 of each caption so far, for every picture
        self.said = said  # log S1 of each caption so far

    def read(self, token: Int[Tensor, " r"], rows: Int[Tensor, " r"] | None) -> Float[Tensor, "r v"]:
        """One word for the target and all its distractors; what is expected for the target."""
        targets, width = self.said.shape
        if rows is not None:
            target, caption = rows.view(targets, 1, width) // width, rows.view(targets, 1, width) % width
            picture = torch.arange(self._pictures, device=rows.device).view(1, -1, 1)
            self._state = self._state.select(
                ((target * self._pictures + picture) * width + caption).flatten()
            )
        tokens = token.view(targets, 1, width).expand(-1, self._pictures, -1)
        logits, self._state = self._captioner.step(tokens.flatten(), self._state)
        self._expected = logits.log_softmax(-1).view(targets, self._pictures, width, -1)
        return self._expected[:, 0].flatten(0, 1)

    def choose(self, allowed: Float[Tensor, "b k v"], draft: Draft) -> Choice:
        """The choice of a beam among what S1 would say."""
        # A finished caption goes on as itself, by padding alone, which tells the listener nothing.
        expected = torch.where(draft.finished[:, None, :, None], allowed.unsqueeze(1), self._expected)
        reached = self._heard.unsqueeze(-1) + expected
        weighed = weigh(allowed, reached.log_softmax(1)[:, 0], self._rationality)
        chosen = self._choose(weighed, replace(draft, scores=self.said))
        assert chosen.parent is not None
        self.said = self.said.gather(1, chosen.parent) + chosen.of(weighed)
        flat = chosen.parent * weighed.size(2) + chosen.token
        self._heard = reached.flatten(2).gather(2, flat.unsqueeze(1).expand(-1, self._pictures, -1))
        return chosen


def weigh(
    literal: Float[Tensor, "b k v"], listener: Float[Tensor, "b k v"], rationality: float
) -> Float[Tensor, "b k v"]:
    """The log S1 of each word, from log S0 of the words that may stand there and log L0 of the target.

    What S0 gives to all these words together, S1 shares out among them: forbidding a word takes from S1 what
    it takes from S0, and at α = 0 nothing changes.
    """
    if not rationality:
        return literal
    possible = literal > -torch.inf
    lowest = torch.finfo(listener.dtype).min
    listener = listener.nan_to_num(nan=lowest, neginf=lowest).masked_fill(~possible, lowest)
    # Held against the best of the words, a great α cannot make all of them impossible.
    weighed = literal + rationality * (listener - listener.amax(-1, keepdim=True))
    share = literal.logsumexp(-1, keepdim=True) - weighed.logsumexp(-1, keepdim=True)
    return (weighed + share).masked_fill(~possible, -torch.inf)


def _prior(company: Company, width: int) -> Float[Tensor, "b p k"]:
    """The log of what the listener thinks before a word is said, up to a constant."""
    nobody = (company.rows < 0).unsqueeze(-1).expand(-1, -1, width)
    return company.vision.pooled.new_zeros(nobody.shape).masked_fill(nobody, -torch.inf)
