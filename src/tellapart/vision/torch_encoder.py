"""An encoder around a network of torch: preparing pictures, hashing weights, rounding features."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from tellapart.arrays import Float, Float16, Float32
from tellapart.vision.features import Features

HALF_MAX = torch.finfo(torch.float16).max


@dataclass(frozen=True, slots=True)
class Pixels:
    """How a checkpoint wants its pictures: resized as a whole, so that nothing at the edges is lost."""

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 1 / 255

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """Resize and normalise one RGB picture."""
        resized = picture.resize((self.width, self.height), Image.Resampling.BICUBIC)
        scaled = np.asarray(resized, dtype=np.float32) * np.float32(self.scale)
        normal = (scaled - np.asarray(self.mean, np.float32)) / np.asarray(self.std, np.float32)
        return np.ascontiguousarray(normal.transpose(2, 0, 1))


@dataclass(frozen=True, slots=True)
class View:
    """What a network sees in a batch, before rounding."""

    grid: Float[Tensor, "b n d"]
    pooled: Float[Tensor, "b p"]
    classes: Float[Tensor, "b c"]


@dataclass(frozen=True, slots=True, eq=False)
class TorchEncoder:
    """An `Encoder` whose network runs in torch, which spreads one call over all cores by itself."""

    name: str
    identity: str
    class_names: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]
    size: int
    batch_size: int
    threads: int
    pixels: Pixels
    see: Callable[[Tensor], View]

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """Resize and normalise one RGB picture."""
        return self.pixels.prepare(picture)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """Features of a batch of prepared pictures."""
        with torch.inference_mode():
            seen = self.see(torch.from_numpy(pixels))
        return Features(grid=_half(seen.grid), pooled=_half(seen.pooled), classes=_half(seen.classes))


def make_encoder(
    name: str,
    network: nn.Module,
    see: Callable[[Tensor], View],
    *,
    pixels: Pixels,
    class_names: tuple[str, ...] = (),
    settings: Mapping[str, object],
) -> TorchEncoder:
    """An encoder that shows pictures to `see`, a view of `network`.

    Args:
        name: what the user called it.
        network: the weights that the identity covers; put in evaluation mode here.
        see: features of prepared pictures.
        pixels: how pictures are prepared.
        class_names: of `View.classes`.
        settings: whatever else decides the features, such as the configuration of the network.
    """
    network.eval().requires_grad_(False)
    with torch.inference_mode():
        blank = see(torch.zeros(1, 3, pixels.height, pixels.width))
    return TorchEncoder(
        name=name,
        identity=f"{_label(name)}-{fingerprint(network, {**asdict(pixels), **settings})}",
        class_names=class_names,
        shapes={part: tuple(getattr(blank, part).shape[1:]) for part in ("grid", "pooled", "classes")},
        size=max(pixels.height, pixels.width),
        batch_size=1,  # a picture's features must not depend on its neighbours, not even in the last bit
        threads=1,
        pixels=pixels,
        see=see,
    )


def _label(name: str) -> str:
    """The name without the way to a folder: the same weights in another place are the same encoder."""
    library, _, model = name.partition(":")
    folder = Path(model.removeprefix("local-dir:")).expanduser()
    return f"{library}:{folder.resolve().name}" if folder.is_dir() else name


def fingerprint(network: nn.Module, settings: Mapping[str, object]) -> str:
    """Sixteen hexadecimal digits that change with any weight or setting."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def row_by_row(feature_map: Float[Tensor, "b d h w"]) -> Float[Tensor, "b n d"]:
    """One vector a place, in reading order."""
    return feature_map.flatten(2).transpose(1, 2)


def no_classes(grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b 0"]:
    """The class probabilities of a network that names none."""
    return grid.new_zeros(grid.shape[0], 0)


def _half(values: Float[Tensor, "b ..."]) -> Float16[np.ndarray, "b ..."]:
    # Some towers have a few huge activations; infinity would spoil every sum they enter.
    return values.clamp(-HALF_MAX, HALF_MAX).half().numpy()
