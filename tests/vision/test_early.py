"""The early blocks as an encoder: what goes into those that are tuned, and what the whole network says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tellapart.vision.early import build_early
from tellapart.vision.efficientnet import EfficientNetLite, load_network
from tellapart.vision.encoder import Encoder
from tellapart.vision.parts import load_encoder

SIDE = 224


def early(first: int) -> Encoder:
    whole = load_encoder("efficientnet-lite0")
    assert isinstance(whole, EfficientNetLite)
    return build_early(0, whole, first=first)


@pytest.mark.parametrize("first", [1, 11, 15])
def test_it_gives_what_the_blocks_before_the_first_give(first: int) -> None:
    encoder, network = early(first), load_network(0)
    pixels = np.random.default_rng(1).uniform(-1, 1, (1, 3, SIDE, SIDE)).astype(np.float32)
    seen = encoder.encode(pixels)
    with torch.no_grad():
        places = network._swish(network._bn0(network._conv_stem(torch.from_numpy(pixels))))
        for block in list(network._blocks)[:first]:
            places = block(places)
    expected = places.flatten(2).transpose(1, 2).numpy()
    assert seen.grid.shape[1:] == encoder.shapes["grid"]
    np.testing.assert_allclose(seen.grid, expected, atol=0.02, rtol=2e-3)


def test_of_the_whole_network_it_tells_classes_and_pooled_feature() -> None:
    encoder, whole = early(11), load_encoder("efficientnet-lite0")
    pixels = np.random.default_rng(2).uniform(-1, 1, (1, 3, SIDE, SIDE)).astype(np.float32)
    seen, expected = encoder.encode(pixels), whole.encode(pixels)
    np.testing.assert_allclose(seen.classes, expected.classes, atol=1e-3)
    np.testing.assert_allclose(seen.pooled, expected.pooled, atol=0.02)
    for trait in ("class_names", "size", "threads", "batch_size"):
        assert getattr(encoder, trait) == getattr(whole, trait)


def test_other_blocks_have_another_identity() -> None:
    names = {early(11).identity, early(15).identity, load_encoder("efficientnet-lite0").identity}
    assert len(names) == 3
