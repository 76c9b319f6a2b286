"""Captioners on disk that look at raw pixels: untrained, but real and loaded by their folder's name."""

from __future__ import annotations

from pathlib import Path

import torch

from tellapart.captioners.folder import (
    Decoding,
    SavedCaptioner,
    build_captioner,
    describe_captioner,
    save_captioner,
)
from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.text import TextRules
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.vision.encoder import traits_of
from tellapart.vision.patches import Patches

WORDS = ("a", "red", "blue", "green", "picture", "field", "of", "the", "and", "dog", "t", "shirt")
LONGEST = 12


def write_tiny_captioner(folder: Path, name: str, *, seed: int = 0) -> Path:
    """The same weights for the same seed."""
    text, traits = WordText(Vocabulary(WORDS), TextRules(max_words=LONGEST)), traits_of(Patches())
    config = CAPTIONERS.get(name).configure({}, preset="tiny")
    torch.manual_seed(seed)
    captioner = build_captioner(name, config, text=text, traits=traits)
    section = {"name": name, **config.model_dump()}
    settings = describe_captioner(captioner, section=section, traits=traits, decoding=Decoding(3, 6))
    save_captioner(folder, SavedCaptioner(captioner, settings), dtype=torch.float32)
    return folder
