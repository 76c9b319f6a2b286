"""Several captioners as one: after each token, the mean of what its members expect next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import cast

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.ensemble import EnsembleConfig, Mean
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Captioner, Prediction, State, Vision
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """What each member remembers."""

    members: tuple[State, ...]

    def select(self, rows: Int[Tensor, " r"]) -> EnsembleState:
        """The state of these rows."""
        return EnsembleState(tuple(state.select(rows) for state in self.members))


class Ensemble(Captioner[EnsembleState]):
    """Captioners with one text and one encoder, whose weights are all its own.

    Its logits are log-probabilities: of the mean of the members' probabilities, or the mean of their
    log-probabilities (the geometric mean of the probabilities), brought back to a sum of 1. It has neither
    hidden states nor attention, for those of its members have no common meaning.
    """

    def __init__(self, members: Sequence[AnyCaptioner], *, mean: Mean) -> None:
        super().__init__()
        for number, member in enumerate(members[1:], start=2):
            if member.text.fingerprint != members[0].text.fingerprint:
                raise TellapartError(
                    f"members 1 and {number} of the ensemble write in different words",
                    hint="take captioners trained with the same vocabulary",
                )
        self.members = nn.ModuleList(members)
        self.mean = mean
        self.text = members[0].text
        self.needs = frozenset[str]().union(*(member.needs for member in members))
        self.longest = min((member.longest for member in members if member.longest is not None), default=None)

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """The mean over the members at every place."""
        return Prediction(self.average([member.predict(vision, tokens).logits for member in self.each()]))

    def begin(self, vision: Vision) -> EnsembleState:
        """The states of all members."""
        return EnsembleState(tuple(member.begin(vision) for member in self.each()))

    def step(
        self, token: Int[Tensor, " r"], state: EnsembleState
    ) -> tuple[Float[Tensor, "r v"], EnsembleState]:
        """One word a row, heard by every member."""
        steps = [member.step(token, own) for member, own in zip(self.each(), state.members, strict=True)]
        return self.average([logits for logits, _ in steps]), EnsembleState(tuple(own for _, own in steps))

    def each(self) -> list[AnyCaptioner]:
        """The members, in order."""
        return cast("list[AnyCaptioner]", list(self.members))

    def average(self, logits: Sequence[Float[Tensor, "... v"]]) -> Float[Tensor, "... v"]:
        """Log-probabilities of the mean."""
        log_probabilities = [each.log_softmax(-1) for each in logits]
        if self.mean == "probabilities":  # two at a time: `logsumexp` of all would take thrice as long
            return reduce(torch.logaddexp, log_probabilities) - math.log(len(logits))
        return torch.stack(log_probabilities).mean(0).log_softmax(-1)


def build(config: EnsembleConfig, *, text: WordText | None, traits: EncoderTraits) -> Ensemble:
    """An ensemble of untrained members; without `text` where all bring their own."""
    members = []
    for section in config.members:
        settings = {key: value for key, value in section.items() if key != "name"}
        member_config = CAPTIONERS.get(section["name"]).config.model_validate(settings)
        members.append(build_captioner(section["name"], member_config, text=text, traits=traits))
    return Ensemble(members, mean=config.mean)
