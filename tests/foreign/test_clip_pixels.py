"""Pictures are prepared to the pixel as the processors of transformers prepare them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.foreign.tiny_clip import CLIP_PIXELS, SIGLIP2_PIXELS, SIGLIP_PIXELS, transformers

from tellapart.errors import TellapartError
from tellapart.foreign.clip_pixels import PatchPixels, read_pixels

PROCESSORS = {
    "clip": transformers.CLIPImageProcessorPil,
    "siglip": transformers.SiglipImageProcessorPil,
    "siglip2": transformers.Siglip2ImageProcessorPil,
}


def picture_of(size: tuple[int, int]) -> Image.Image:
    noise = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("clip", CLIP_PIXELS),
        ("clip", CLIP_PIXELS | {"size": 32, "crop_size": 32}),
        ("clip", CLIP_PIXELS | {"size": {"height": 20, "width": 30}, "do_center_crop": False, "resample": 2}),
        ("clip", CLIP_PIXELS | {"crop_size": {"height": 45, "width": 31}}),
        ("clip", CLIP_PIXELS | {"do_normalize": False, "rescale_factor": 1 / 127}),
        ("clip", CLIP_PIXELS | {"do_rescale": False}),
        ("clip", {key: value for key, value in CLIP_PIXELS.items() if key != "do_center_crop"}),
        ("siglip", SIGLIP_PIXELS),
        ("siglip", SIGLIP_PIXELS | {"size": {"shortest_edge": 24}}),
    ],
)
@pytest.mark.parametrize("size", [(75, 40), (45, 64), (64, 45), (33, 33)])
def test_pixels_are_those_of_the_library_s_processor(
    kind: str, numbers: dict[str, Any], size: tuple[int, int]
) -> None:
    theirs = PROCESSORS[kind](**numbers)(picture_of(size), return_tensors="np")["pixel_values"][0]
    ours = read_pixels(kind, numbers, "tiny").prepare(picture_of(size))
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, rtol=0, atol=2e-5 * float(np.abs(theirs).max()))


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([4, 16]), st.sampled_from([1, 7, 64, 256]))
def test_pictures_that_keep_their_shape_are_cut_like_the_library_s(
    width: int, height: int, patch: int, most: int
) -> None:
    numbers = SIGLIP2_PIXELS | {"patch_size": patch, "max_num_patches": most}
    picture = picture_of((width, height))
    theirs = PROCESSORS["siglip2"](**numbers)(picture, return_tensors="np")
    ours = read_pixels("siglip2", numbers, "tiny").prepare(picture)
    rows, columns = ours.shape[1] // patch, ours.shape[2] // patch
    assert [rows, columns] == theirs["spatial_shapes"][0].tolist()
    assert rows * columns <= most
    patches = (
        ours.reshape(3, rows, patch, columns, patch).transpose(1, 3, 2, 4, 0).reshape(rows * columns, -1)
    )
    assert np.allclose(patches, theirs["pixel_values"][0][: rows * columns], rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("kind", "numbers", "key"),
    [
        *(("clip", CLIP_PIXELS, key) for key in ("size", "image_mean", "image_std")),
        *(("siglip", SIGLIP_PIXELS, key) for key in ("size", "image_mean", "image_std")),
        *(("siglip2", SIGLIP2_PIXELS, key) for key in ("patch_size", "max_num_patches", "image_mean")),
    ],
)
def test_what_a_checkpoint_does_not_say_is_never_guessed(
    kind: str, numbers: dict[str, Any], key: str
) -> None:
    rest = {name: value for name, value in numbers.items() if name != key}
    with pytest.raises(TellapartError, match=f"the checkpoint tiny does not say its {key}") as refused:
        read_pixels(kind, rest, "tiny")
    assert key in refused.value.hint


def test_a_size_that_says_nothing_is_refused() -> None:
    with pytest.raises(TellapartError, match="does not say how large its pictures are"):
        read_pixels("siglip", SIGLIP_PIXELS | {"size": {"longest_edge": 32}}, "tiny")


def test_a_jpeg_may_be_decoded_at_twice_what_is_wanted() -> None:
    assert read_pixels("clip", CLIP_PIXELS, "tiny").enough == 64
    assert read_pixels("siglip", SIGLIP_PIXELS | {"size": {"height": 20, "width": 30}}, "tiny").enough == 60
    assert PatchPixels(16, 256, 2, 1.0, (0.0,) * 3, (1.0,) * 3).enough == 512
