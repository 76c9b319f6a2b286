"""Pictures as CLIP and SigLIP want them, by Pillow and numpy alone, as preprocessor_config.json says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tellapart.errors import TellapartError
from tellapart.foreign.processor import expect_side, expect_there, read_colours, read_filter


@dataclass(frozen=True, slots=True)
class ClipPixels:
    """How a checkpoint wants its pictures: all of one size."""

    size: int | tuple[int, int]  # of the shorter side, or height and width
    crop: tuple[int, int] | None  # height and width of what is cut out of the middle
    resampling: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def enough(self) -> int:
        """Pixels of the shorter side with which a JPEG may be decoded in place of all that it has.

        Twice what is wanted: the filter that the checkpoint was trained with then does the last halving.
        """
        return 2 * (self.size if isinstance(self.size, int) else max(self.size))

    def prepare(self, picture: Image.Image) -> NDArray[np.float32]:
        """Resize, crop and normalise one RGB picture: (3, height, width)."""
        resized = picture.resize(self._resized(picture), Image.Resampling(self.resampling))
        if self.crop is not None:
            height, width = self.crop
            left, top = (resized.width - width) // 2, (resized.height - height) // 2
            resized = resized.crop((left, top, left + width, top + height))
        return _normal(resized, self)

    def _resized(self, picture: Image.Image) -> tuple[int, int]:
        """Width and height; the longer side is rounded down, as CLIP's own program does."""
        if isinstance(self.size, tuple):
            return self.size[1], self.size[0]
        width, height = picture.size
        if width <= height:
            return self.size, int(self.size * height / width)
        return int(self.size * width / height), self.size


@dataclass(frozen=True, slots=True)
class PatchPixels:
    """How SigLIP 2 wants pictures that keep their shape: as large as goes into so many square patches."""

    patch: int  # pixels a side
    most: int  # patches of a picture
    resampling: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def enough(self) -> int:
        """Pixels of the shorter side with which a JPEG may be decoded: twice what a square would have."""
        return 2 * self.patch * math.isqrt(self.most)

    def prepare(self, picture: Image.Image) -> NDArray[np.float32]:
        """Resize and normalise one RGB picture: (3, height, width), both whole numbers of patches."""
        columns, rows = self._patches(*picture.size)
        size = columns * self.patch, rows * self.patch
        return _normal(picture.resize(size, Image.Resampling(self.resampling)), self)

    def _patches(self, width: int, height: int) -> tuple[int, int]:
        """Columns and rows at the largest scale that fits, found as exactly as the library finds it."""

        def at(scale: float) -> tuple[int, int]:
            return math.ceil(width * scale / self.patch), math.ceil(height * scale / self.patch)

        fits, exceeds = 1e-6, 100.0
        while exceeds - fits >= 1e-5:
            middle = (fits + exceeds) / 2
            if math.prod(at(middle)) <= self.most:
                fits = middle
            else:
                exceeds = middle
        return at(fits)


def read_pixels(kind: str, settings: Mapping[str, Any], model: str) -> ClipPixels | PatchPixels:
    """The numbers of preprocessor_config.json.

    Args:
        kind: the model_type of config.json.
        settings: what stands in the file.
        model: what messages call the checkpoint.
    """
    if kind == "siglip2":
        return _patch_pixels(settings, model)
    size = expect_there(settings, "size", model)
    crop = settings.get("crop_size") or size
    colours = read_colours(settings, model)
    return ClipPixels(
        size=_shorter_side(size, model) or _height_and_width(size, model),
        # Only CLIP cuts where its file does not say.
        crop=_height_and_width(crop, model) if settings.get("do_center_crop", kind == "clip") else None,
        resampling=read_filter(settings, model, default=Image.Resampling.BICUBIC),
        scale=colours.scale,
        mean=colours.mean,
        std=colours.std,
    )


def _patch_pixels(settings: Mapping[str, Any], model: str) -> PatchPixels:
    colours = read_colours(settings, model)
    return PatchPixels(
        patch=expect_side(expect_there(settings, "patch_size", model), "patch_size", model),
        most=expect_side(expect_there(settings, "max_num_patches", model), "max_num_patches", model),
        resampling=read_filter(settings, model, default=Image.Resampling.BILINEAR),
        scale=colours.scale,
        mean=colours.mean,
        std=colours.std,
    )


def _shorter_side(size: object, model: str) -> int | None:
    found = size.get("shortest_edge") if isinstance(size, dict) else size
    return None if found is None else expect_side(found, "size", model)


def _height_and_width(size: object, model: str) -> tuple[int, int]:
    if (edge := _shorter_side(size, model)) is not None:
        return edge, edge
    if isinstance(size, dict) and size.get("height") and size.get("width"):
        return expect_side(size["height"], "size", model), expect_side(size["width"], "size", model)
    raise TellapartError(
        f"the checkpoint {model} does not say how large its pictures are: {size}",
        hint='write "size": {"shortest_edge": 224} in its preprocessor_config.json',
    )


def _normal(picture: Image.Image, pixels: ClipPixels | PatchPixels) -> NDArray[np.float32]:
    scaled = np.asarray(picture, dtype=np.float32) * np.float32(pixels.scale)
    normal = (scaled - np.asarray(pixels.mean, np.float32)) / np.asarray(pixels.std, np.float32)
    return np.ascontiguousarray(normal.transpose(2, 0, 1))
