"""How many parameters a captioner has, without making one: sizes alone, no memory."""

from __future__ import annotations

import torch

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import SPECIAL, Vocabulary
from tellapart.data.word_text import WordText
from tellapart.vision.traits import EncoderTraits

WORDS = 10_000  # of the vocabulary that is counted with, special signs included
TRAITS = EncoderTraits(
    name="efficientnet-lite2",
    identity="",
    shapes={"grid": (81, 1280), "pooled": (1280,), "classes": (1000,)},
)


def count_parameters(part: CaptionerPart) -> int | None:
    """With its default settings, WORDS words and the default encoder; None where nobody has counted.

    Of a captioner that a checkpoint brings, all that the default one holds, each shared weight once.
    """
    if part.own_text:
        return part.checkpoint_weights or None
    words = tuple(f"word{number}" for number in range(WORDS - len(SPECIAL)))
    text = WordText(Vocabulary(words), PRESETS["mrnn"])
    with torch.device("meta"):
        captioner = build_captioner(part.name, part.configure({}), text=text, traits=TRAITS)
    return sum(parameter.numel() for parameter in captioner.parameters())
