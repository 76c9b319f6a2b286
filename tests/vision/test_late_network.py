"""The late blocks as a network to tune say what the whole network says, and only their changes are learnt."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.vision.efficientnet import SIDES, load_network
from tellapart.vision.late_network import LateNetwork


@cache
def network(number: int) -> Any:
    return load_network(number)


def late_of(number: int, *, first: int, left_out: float = 0.0) -> LateNetwork:
    return LateNetwork(network(number), first=first, rank=4, left_out=left_out)


@cache
def pixels(number: int) -> Float[Tensor, "2 3 h w"]:
    side = SIDES[number]
    return torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(1)) * 2 - 1


@torch.no_grad()
def early_of(number: int, first: int) -> Float[Tensor, "2 h w c"]:
    """What the package's own blocks before the first give, channels last."""
    whole = network(number)
    places: Tensor = whole._swish(whole._bn0(whole._conv_stem(pixels(number))))
    for block in list(whole._blocks)[:first]:
        places = block(places)
    return places.permute(0, 2, 3, 1)


def changed(late: LateNetwork) -> LateNetwork:
    """The same with something learnt."""
    torch.manual_seed(2)
    for name, weight in late.named_parameters():
        if not name.endswith("down"):
            nn.init.normal_(weight, std=0.02)
    return late


@pytest.mark.parametrize(("number", "first"), [(0, 1), (0, 15), (2, 11), (2, 20)])
def test_untuned_they_say_what_the_whole_network_says(number: int, first: int) -> None:
    late = late_of(number, first=first).eval()
    with torch.no_grad():
        expected = network(number).extract_features(pixels(number)).flatten(2).transpose(1, 2)
        torch.testing.assert_close(late(early_of(number, first)), expected, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize(("number", "first"), [(0, 11), (2, 14)])
def test_written_into_the_whole_network_changes_say_the_same(number: int, first: int) -> None:
    late = changed(late_of(number, first=first)).eval()
    whole = copy.deepcopy(network(number))
    late.write_into(whole)
    with torch.no_grad():
        found = whole.extract_features(pixels(number)).flatten(2).transpose(1, 2)
        before = network(number).extract_features(pixels(number)).flatten(2).transpose(1, 2)
        torch.testing.assert_close(found, late(early_of(number, first)), atol=2e-4, rtol=1e-3)
    assert (found - before).abs().max() > 0.1


def test_only_changes_are_learnt_and_kept() -> None:
    late = late_of(0, first=14).train()
    late(early_of(0, 14)).sum().backward()
    assert {name.rpartition(".")[2] for name, _ in late.named_parameters()} == {"up", "down", "shift"}
    assert set(late.state_dict()) == {name for name, _ in late.named_parameters()}
    ups = [weight for name, weight in late.named_parameters() if name.endswith(("up", "shift"))]
    assert all(weight.grad is not None and weight.grad.any() for weight in ups)
    kept = sum(weight.numel() for weight in late.parameters())
    assert kept < 0.1 * sum(weight.numel() for weight in network(0)._blocks[14:].parameters())


def test_a_rank_above_a_matrix_is_that_of_the_matrix() -> None:
    late = LateNetwork(network(0), first=15, rank=10_000, left_out=0.0)
    assert len(late.head.down) == min(late.head.weight.shape)


def test_blocks_are_left_out_in_training_alone_and_on_average_for_nothing() -> None:
    late = changed(late_of(0, first=12, left_out=0.8))
    early = early_of(0, 12)[:1].expand(400, -1, -1, -1)
    block, left_out = late.blocks[1], late.left_out[1]
    assert left_out == pytest.approx(0.8 * 13 / 16)
    with torch.no_grad():
        block.eval()
        before = late.blocks[0].eval()(early[:1], left_out=0.0)
        whole = block(before, left_out=left_out)
        block.train()
        drawn = block(before.expand(400, -1, -1, -1), left_out=left_out)
    added = (drawn - before).flatten(1)
    nothing = (added.abs().sum(1) == 0).float().mean().item()
    assert nothing == pytest.approx(left_out, abs=0.08)
    expected = (whole - before).flatten(1) / (1 - left_out)
    torch.testing.assert_close(added[added.abs().sum(1) > 0][:1], expected, atol=1e-3, rtol=1e-3)
