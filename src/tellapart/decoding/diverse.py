"""Diverse beam search: groups of beams, each of which avoids the words of those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from tellapart.arrays import Float
from tellapart.decoding.drafts import Alone, Choice, Choose, Draft, write
from tellapart.decoding.rules import Rule
from tellapart.decoding.search import best, best_first
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Decoded, Vision


@dataclass(frozen=True, slots=True)
class Groups:
    """How many beams an image, how wide each is, and how much they mind one another's words (λ)."""

    count: int
    width: int
    strength: float

    def __post_init__(self) -> None:
        if self.count < 1 or self.width < 1:
            raise TellapartError(
                f"{self.count} groups of width {self.width}", hint="take at least 1 group of width 1"
            )
        if not 0 <= self.strength < math.inf:
            raise TellapartError(
                f"the strength of diversity is {self.strength}",
                hint="take a number from 0 on; 0 makes all groups the same",
            )


def diverse(
    captioner: AnyCaptioner,
    vision: Vision,
    groups: Groups,
    *,
    max_words: int,
    rules: Sequence[Rule] = (),
    length_penalty: float = 0.0,
) -> Decoded:
    """The captions of the first group, best first, then those of the second and so on.

    At each place the groups choose one after the other. A token that captions of earlier groups took there
    loses λ of its log-probability for each of them (Vijayakumar et al. 2016, with Hamming diversity): what it
    lost decides between tokens and is then forgotten. So one group is `beam`, and the first always is. The
    same caption may be found by several groups.
    """
    in_group = best(rules, max_words=max_words, length_penalty=length_penalty)
    draft = Draft.begin(vision, captioner.text, groups=groups.count, width=groups.width)
    choose = partial(_one_after_the_other, groups=groups, choose=in_group)
    reader = Alone(captioner, vision, captions=groups.count * groups.width)
    draft = write(reader, draft, choose, max_words=max_words, rules=rules)
    return best_first(draft, length_penalty).decoded(len(vision))


def _one_after_the_other(
    allowed: Float[Tensor, "g k v"], draft: Draft, *, groups: Groups, choose: Choose
) -> Choice:
    token, parent = (torch.empty_like(draft.scores, dtype=torch.long) for _ in range(2))
    taken = allowed.new_zeros(len(allowed) // groups.count, allowed.size(2))  # how often, of each image
    for number in range(groups.count):
        of_images = slice(number, None, groups.count)
        own, group = allowed[of_images], draft.select(of_images)
        # Padding is nothing that a caption says: finished ones neither take it from others nor mind.
        loss = groups.strength * taken.unsqueeze(1) * ~group.finished.unsqueeze(-1)
        choice = choose(own - loss, group)
        assert choice.parent is not None
        token[of_images], parent[of_images] = choice.token, choice.parent
        says = ~group.finished.gather(1, choice.parent) & (choice.of(own) > -torch.inf)
        taken = taken.scatter_add(1, choice.token, says.to(taken.dtype))
    return Choice(token, parent)
