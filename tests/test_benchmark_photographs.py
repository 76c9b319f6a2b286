"""Photographs are found in a resource file as they were put there, and nothing else is."""

from __future__ import annotations

import io

import numpy as np
from benchmarks.free_photographs import LEAST, pictures_in
from PIL import Image


def webp(seed: int, side: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "WEBP", lossless=True)
    return written.getvalue()


def test_pictures_come_out_of_a_resource_file_as_they_went_in() -> None:
    first, icon, second = webp(0, 100), webp(1, 8), webp(2, 120)
    assert len(icon) < LEAST < len(first)
    sound = b"RIFF\x00\xff\x00\x00WAVE" + bytes(65_000)
    assert list(pictures_in(b"qres" + first + icon + sound + second + b"end")) == [first, second]


def test_a_file_without_pictures_gives_none() -> None:
    assert list(pictures_in(b"qres, and a word RIFF at the end: RIFF")) == []
