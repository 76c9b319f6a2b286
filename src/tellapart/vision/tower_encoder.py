"""The eyes of a captioning checkpoint, as an encoder of their own: `tower:FOLDER_OR_NAME`.

The grid is whatever the checkpoint's text decoder is shown, in order: every state of the vision tower, the
class token included, for BLIP, GIT and vision-encoder-decoders; the projected queries of the Q-Former for
BLIP-2; the projected picture tokens for image-text models. `pixels:FOLDER_OR_NAME` only prepares the pixels
(a grid of 3 rows, one a colour), for a captioner that trains its tower too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from tellapart.arrays import Float, Float32
from tellapart.errors import TellapartError
from tellapart.extras import in_short
from tellapart.foreign.clip_pixels import ClipPixels
from tellapart.foreign.processor import read_filter
from tellapart.vision.checkpoints import Checkpoint, read_checkpoint, read_config, reading
from tellapart.vision.torch_encoder import Pixels, TorchEncoder, View, make_encoder, no_classes
from tellapart.vision.transformers_encoder import deciding, processor_settings, read_pixels, uncut_size


@dataclass(frozen=True, slots=True)
class TowerPixels(Pixels):
    """Pixels resized by the very filter, and cut as, the checkpoint was trained with."""

    resample: int = Image.Resampling.BICUBIC
    # Shorter side, or height and width, of what the middle is cut out of; None: nothing is cut off.
    uncut: int | tuple[int, int] | None = None

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """Resize, cut and normalise one RGB picture."""
        sides = (self.height, self.width)
        pixels = ClipPixels(
            size=sides if self.uncut is None else self.uncut,
            crop=None if self.uncut is None else sides,
            resampling=self.resample,
            scale=self.scale,
            mean=self.mean,
            std=self.std,
        )
        return pixels.prepare(picture)


class Tower(nn.Module):
    """The part of a checkpoint between the pixels and the text decoder."""

    def __init__(self, network: nn.Module, look: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.network = network
        self.look = look

    def forward(self, pixels: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b n d"]:
        """What the text decoder is shown of each picture."""
        return self.look(self.network, pixels)


def build_tower(model: str) -> TorchEncoder:
    """The vision tower of a captioning checkpoint, frozen."""
    checkpoint = read_checkpoint(model)
    pixels = find_pixels(model)
    drop_language(checkpoint)
    tower = take_tower(checkpoint)
    with reading(checkpoint.library, model):
        checkpoint.expect_whole(look_at_nothing(tower, pixels, model))
    return make_encoder(
        f"tower:{model}", tower, _Sight(tower), pixels=pixels, settings=deciding(tower.network)
    )


def look_at_nothing(tower: Tower, pixels: Pixels, model: str) -> Float[Tensor, "1 n d"]:
    """What it shows of a blank picture, or an error where it cannot look at pictures of that size."""
    try:
        shown: Tensor = tower(torch.zeros(1, 3, pixels.height, pixels.width))
    except TellapartError:
        raise
    except Exception as error:  # a foreign network raises nearly anything about a shape
        raise TellapartError(
            f"the tower of {model} cannot look at pictures of {pixels.height}x{pixels.width} pixels, which "
            f"its image processor's settings ask for: {in_short(error)}",
            hint="copy preprocessor_config.json again from where the checkpoint came from",
        ) from error
    return shown


def build_pixels(model: str) -> TorchEncoder:
    """Prepared pixels for a checkpoint that sees by itself."""
    return make_encoder(f"pixels:{model}", nn.Identity(), _pixel_view, pixels=find_pixels(model), settings={})


def find_pixels(model: str) -> TowerPixels:
    """How the checkpoint's own files say that pictures are prepared."""
    library, source, _ = read_config(model)
    with reading(library, model):
        settings = processor_settings(library, source)
    # Processors that cut large pictures into tiles say so the size of the whole picture that goes with them.
    if whole := settings.get("max_image_size"):
        settings = {**settings, "size": whole, "do_center_crop": False}
    plain = read_pixels(settings, model)
    return TowerPixels(
        plain.height,
        plain.width,
        plain.mean,
        plain.std,
        plain.scale,
        read_filter(settings, model, default=Image.Resampling.BICUBIC),
        uncut_size(settings, model),
    )


def take_tower(checkpoint: Checkpoint) -> Tower:
    """The part of a checkpoint that sees; it shares its modules with the whole."""
    whole = checkpoint.model
    if checkpoint.kind in _LAST_STATES:
        return Tower(whole.get_submodule(_LAST_STATES[checkpoint.kind]), _last_states)
    if checkpoint.kind == "blip-2":
        return Tower(whole, _queries)
    return Tower(whole.base_model, _tiled if hasattr(whole.base_model, "connector") else _picture_tokens)


_LAST_STATES: Mapping[str, str] = {
    "blip": "vision_model",
    "git": "git.image_encoder",
    "vision-encoder-decoder": "encoder",
}


def drop_language(checkpoint: Checkpoint) -> None:
    """Free what only writes, where the tower would keep it."""
    whole = checkpoint.model
    if checkpoint.kind not in _LAST_STATES:
        _replace(whole if checkpoint.kind == "blip-2" else whole.base_model, whole.get_decoder(), same=True)


def drop_sight(checkpoint: Checkpoint) -> None:
    """Free what only sees, in a model that is run as a whole."""
    _replace(checkpoint.model.base_model, checkpoint.model.get_decoder(), same=False)


def _replace(whole: nn.Module, part: nn.Module, *, same: bool) -> None:
    for name, child in list(whole.named_children()):
        if (child is part) == same:
            setattr(whole, name, nn.Identity())


def _last_states(network: Any, pixels: Tensor) -> Tensor:
    states: Tensor = network(pixel_values=pixels).last_hidden_state
    return states


def _queries(network: Any, pixels: Tensor) -> Tensor:
    projected: Tensor = network.get_image_features(pixel_values=pixels).pooler_output
    return projected


def _picture_tokens(network: Any, pixels: Tensor) -> Tensor:
    if not hasattr(network, "get_image_features"):
        raise TellapartError(
            f"{type(network).__name__} does not show its picture tokens",
            hint="take a model such as LLaVA or SmolVLM",
        )
    tokens = network.get_image_features(pixel_values=pixels).pooler_output
    return tokens if isinstance(tokens, Tensor) else torch.stack(list(tokens))


def _tiled(network: Any, pixels: Tensor) -> Tensor:
    """Idefics and SmolVLM: the whole picture as the only tile, so that every picture has as many tokens."""
    patch = network.config.vision_config.patch_size
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    every = torch.ones(len(pixels), rows, columns, dtype=torch.bool, device=pixels.device)
    states = network.vision_model(pixel_values=pixels, patch_attention_mask=every).last_hidden_state
    tokens: Tensor = network.connector(states)
    return tokens


class _Sight:
    """A tower's grid, and its mean as the vector of the whole picture."""

    def __init__(self, tower: Tower) -> None:
        self._tower = tower

    def __call__(self, pixels: Float[Tensor, "b 3 h w"]) -> View:
        grid = self._tower(pixels)
        return View(grid=grid, pooled=grid.mean(1), classes=no_classes(grid))


def _pixel_view(pixels: Float[Tensor, "b 3 h w"]) -> View:
    flat = pixels.flatten(2)
    return View(grid=flat, pooled=flat.new_zeros(len(flat), 0), classes=no_classes(flat))
