"""Greedy and beam search over any captioner: they know its protocol and nothing else.

Fewer captions may exist than a beam is wide: the rest have log-probability -inf.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.decoding.drafts import Alone, Choice, Choose, Draft, write
from tellapart.decoding.required import Required, in_turns, required_of
from tellapart.decoding.rules import Rule
from tellapart.types import AnyCaptioner, Decoded, Vision


def greedy(captioner: AnyCaptioner, vision: Vision, *, max_words: int, rules: Sequence[Rule] = ()) -> Decoded:
    """The likeliest word at each step."""
    draft = Draft.begin(vision, captioner.text, groups=1, width=1)
    reader = Alone(captioner, vision, captions=1)
    draft = write(reader, draft, _likeliest, max_words=max_words, rules=rules, of_image=1)
    return draft.decoded(len(vision))


def _likeliest(allowed: Float[Tensor, "g k v"], draft: Draft) -> Choice:
    return Choice(allowed.argmax(-1))


def beam(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    width: int,
    max_words: int,
    rules: Sequence[Rule] = (),
    length_penalty: float = 0.0,
) -> Decoded:
    """The `width` best captions that a beam of that width finds, best first.

    Best are the likeliest. With a length penalty α, log-probabilities are divided by the α-th power of the
    number of words, the end sign included, before they are compared (Wu et al. 2016, without their constant):
    every further word costs probability, so that a beam favours captions that say little. Where a rule
    requires words, a beam should be wider than the number of their tokens: see `required`.
    """
    choose = best(rules, max_words=max_words, length_penalty=length_penalty)
    draft = Draft.begin(vision, captioner.text, groups=1, width=width)
    reader = Alone(captioner, vision, captions=width)
    draft = write(reader, draft, choose, max_words=max_words, rules=rules, of_image=1)
    return best_first(draft, length_penalty).decoded(len(vision))


def best(rules: Sequence[Rule], *, max_words: int, length_penalty: float) -> Choose:
    """The choice of a beam under such rules."""
    required = required_of(rules, max_words=max_words)
    return partial(_best, length_penalty=length_penalty, required=required)


def best_first(draft: Draft, length_penalty: float) -> Draft:
    """Finished captions in the order in which a beam compares them."""
    compared = penalised(draft.scores, draft.lengths, length_penalty)
    return draft.rearranged(compared.argsort(dim=1, descending=True, stable=True))


def penalised(scores: Float[Tensor, "*b"], lengths: Int[Tensor, "*c"], power: float) -> Float[Tensor, "*b"]:
    """Log-probabilities as they are compared under a length penalty; lengths may be of many at once."""
    return scores / lengths.to(scores.dtype).pow(power) if power else scores


def _best(
    allowed: Float[Tensor, "g k v"], draft: Draft, *, length_penalty: float, required: Required | None
) -> Choice:
    extended = draft.scores.unsqueeze(-1) + allowed
    if length_penalty:
        lengths = draft.lengths + ~draft.finished
        extended = penalised(extended, lengths.unsqueeze(-1), length_penalty)
    compared, (_, width, size) = extended.flatten(1), allowed.shape
    if required is None:
        chosen = compared.topk(width).indices
    else:
        bank = required.standing_with_next(draft.tokens.flatten(0, 1)).view_as(compared)
        chosen = in_turns(compared, bank, banks=required.banks, width=width)
    return Choice(chosen % size, chosen // size)
