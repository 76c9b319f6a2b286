"""Features of another size than a captioner was built for: one line, for every captioner."""

from __future__ import annotations

import pytest
import torch

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

TEXT = WordText(Vocabulary(("a", "dog")), PRESETS["mrnn"])
TRAITS = EncoderTraits(name="some", identity="none", shapes={"grid": (6, 4), "pooled": (5,), "classes": (0,)})
SEEING = [
    name for name in CAPTIONERS.names() if "tiny" in CAPTIONERS.get(name).presets and name != "rnn-base"
]


def see(places: int, width: int, pooled: int) -> Vision:
    return Vision(torch.zeros(2, places, width), torch.zeros(2, pooled), torch.zeros(2, 0))


def test_a_refined_feature_is_of_the_same_size() -> None:
    config = CAPTIONERS.get("mrnn").configure({}, preset="tiny")
    captioner = build_captioner("mrnn", config, text=TEXT, traits=TRAITS)
    assert isinstance(captioner, MRNN)
    with pytest.raises(
        TellapartError, match="pooled features of 7 numbers were given to a captioner built for 5"
    ):
        captioner.refined(see(6, 4, 7))


@pytest.mark.parametrize("name", SEEING)
def test_another_size_is_one_clear_line(name: str) -> None:
    part = CAPTIONERS.get(name)
    captioner = build_captioner(name, part.configure({}, preset="tiny"), text=TEXT, traits=TRAITS).eval()
    captioner.begin(see(6, 4, 5))
    wrong = [see(6, 4, 7)] if captioner.needs == {"pooled"} else [see(5, 4, 5), see(6, 3, 5)]
    for vision in wrong:
        for call in (captioner.begin, lambda seen: captioner.predict(seen, torch.ones(2, 1, 3).long())):
            with pytest.raises(TellapartError, match="given to a captioner built for") as caught:
                call(vision)
            assert caught.value.hint == "use the encoder that the captioner was trained with"
