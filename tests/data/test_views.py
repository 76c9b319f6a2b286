"""Views of a photograph: which there are, that they are always the same ones, and that none is empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tellapart.data.views import LEAST_AREA, WHOLE, draw_view, view_digest, view_of

DIGESTS = st.binary(min_size=32, max_size=32)


def gradient(width: int, height: int) -> Image.Image:
    """Every pixel tells its own place."""
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([across % 256, down % 256, across // 256], axis=2).astype(np.uint8))


def test_the_first_views_are_the_picture_and_its_mirror_image() -> None:
    picture = gradient(40, 30)
    pixels = np.asarray(picture)
    assert np.array_equal(np.asarray(view_of(picture, b"x" * 32, WHOLE)), pixels)
    assert np.array_equal(np.asarray(view_of(picture, b"x" * 32, 1)), pixels[:, ::-1])


@given(width=st.integers(1, 300), height=st.integers(1, 300), digest=DIGESTS, number=st.integers(2, 9))
def test_further_views_are_large_parts_mirrored_in_turn(
    width: int, height: int, digest: bytes, number: int
) -> None:
    part = np.asarray(view_of(gradient(width, height), digest, number)).astype(int)
    if number % 2:
        part = part[:, ::-1]
    high, wide = part.shape[:2]
    across = part[0, :, 0] + 256 * part[0, :, 2]
    assert np.array_equal(across, across[0] + np.arange(wide))
    assert np.array_equal(part[:, 0, 1], (part[0, 0, 1] + np.arange(high)) % 256)
    # Half an aspect's stretch may be cut off at an edge, and a pixel on each side.
    assert (wide + 1) * (high + 1) >= 0.8 * LEAST_AREA * width * height


@given(digest=DIGESTS, other=DIGESTS, number=st.integers(0, 9))
def test_a_view_is_known_by_its_picture_and_number(digest: bytes, other: bytes, number: int) -> None:
    assert view_digest(digest, WHOLE) == digest
    known = {view_digest(digest, each) for each in range(10)} | {view_digest(other, number)}
    assert len(known) == 10 + (other != digest)


def test_parts_differ_by_picture_and_number_and_by_nothing_else() -> None:
    picture = gradient(256, 256)
    seen = {
        (digest, number): view_of(picture, digest, number).tobytes()
        for digest in (b"a" * 32, b"b" * 32)
        for number in (2, 4)
    }
    assert len(set(seen.values())) == len(seen)
    assert all(view_of(picture, *key).tobytes() == pixels for key, pixels in seen.items())


def test_every_view_is_drawn_as_often() -> None:
    drawn = [draw_view(4, seed=1, epoch=epoch, row=row) for epoch in range(10) for row in range(400)]
    assert np.bincount(drawn) / len(drawn) == pytest.approx([0.25] * 4, abs=0.03)
    assert {draw_view(1, seed=1, epoch=epoch, row=3) for epoch in range(20)} == {0}
