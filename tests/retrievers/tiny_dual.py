"""A dual encoder on disk that looks at raw pixels: untrained, but real and loaded by its folder's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from tellapart.data.text import TextRules
from tellapart.data.word_text import WordText
from tellapart.model_folder import save_model
from tellapart.retrievers.dual.folder import WHAT, RetrieverSettings
from tellapart.retrievers.dual.network import build
from tellapart.retrievers.settings import DualConfig
from tellapart.vision.encoder import traits_of
from tellapart.vision.patches import Patches

RULES = TextRules(min_count=1)


def write_tiny_dual(folder: Path, captions: Sequence[str], *, seed: int = 0) -> Path:
    """The same weights for the same seed and captions."""
    config = DualConfig(width=8, hidden=6, word_vectors="learned", word_width=7)
    traits, text = traits_of(Patches()), WordText.build(captions, RULES)
    torch.manual_seed(seed)
    network = build(config, text=text, traits=traits).eval()
    settings = RetrieverSettings(
        retriever={"name": "dual", **config.model_dump()},
        encoder=traits,
        text=RULES,
        fingerprint=network.sentences.fingerprint,
        trained_on="nothing at all",
    )
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    save_model(folder, settings, weights, what=WHAT, words=text.vocabulary.to_json())
    return folder
