"""Tiny checkpoints on disk, each written once a session, and captioners made from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from tests.captioners.pretrained import checkpoints
from torch import Tensor

from tellapart.captioners.folder import CaptionerSettings, Decoding, build_captioner, describe_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.types import AnyCaptioner, Vision
from tellapart.vision.checkpoints import read_checkpoint
from tellapart.vision.encoder import traits_of
from tellapart.vision.parts import load_encoder
from tellapart.vision.tower_encoder import take_tower

NAMES = {"smolvlm": "image-text"}  # of captioners, where a kind of checkpoint has another


@dataclass(frozen=True)
class Tiny:
    """A captioner made from a tiny checkpoint, pictures for it, and all that it takes to keep it."""

    folder: Path
    captioner: AnyCaptioner
    vision: Vision
    pixels: Tensor
    settings: CaptionerSettings


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny checkpoint of a kind."""
    checkpoints.transformers.utils.logging.disable_progress_bar()

    @cache
    def write(kind: str) -> Path:
        return checkpoints.write_tiny(kind, tmp_path_factory.mktemp("checkpoints") / kind)

    return write


@pytest.fixture(scope="session")
def tiny(tiny_folder: Callable[[str], Path]) -> Callable[..., Tiny]:
    """A captioner of a kind in double precision, and four different pictures as it sees them."""

    @cache
    def make(kind: str, train: str = "decoder", prompt: str = "") -> Tiny:
        folder = tiny_folder(kind)
        name = NAMES.get(kind, kind)
        part = CAPTIONERS.get(name)
        config = part.configure(
            {"checkpoint": str(folder), "train": train, "prompt": prompt, "lora_rank": 2, "lora_alpha": 4.0}
        )
        assert part.own_encoder is not None
        traits = traits_of(load_encoder(part.own_encoder(config)))
        captioner = build_captioner(name, config, text=None, traits=traits).double().eval()
        side = 32 if kind == "smolvlm" else 16
        pixels = torch.randn(4, 3, side, side, generator=torch.Generator().manual_seed(5)).double()
        with torch.no_grad():
            grid = (
                pixels.flatten(2)
                if train == "all"
                else take_tower(read_checkpoint(str(folder))).double()(pixels)
            )
        settings = describe_captioner(
            captioner, section={"name": name, **config.model_dump()}, traits=traits, decoding=Decoding(3, 8)
        )
        empty = grid.new_zeros(4, 0)
        return Tiny(folder, captioner, Vision(grid, empty, empty), pixels, settings)

    return make
