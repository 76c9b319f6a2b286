"""Low-rank adapters against Eq. 3 of their paper: W x + alpha/rank B A x, and dropout before A alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tellapart.captioners.adapters import MARK, add_adapters
from tellapart.captioners.settings.kinds import LoraSettings
from tellapart.errors import TellapartError
from tellapart.testing import prepare

conv1d: Any = import_module("transformers").pytorch_utils.Conv1D  # GPT-2's linear layer, input by output

WIDTH = 40


class Network(nn.Module):
    """A layer that gets adapters, and one that does not."""

    def __init__(self, changed: nn.Module) -> None:
        super().__init__()
        self.changed = changed
        self.left = nn.Linear(WIDTH, WIDTH)


def adapted(settings: LoraSettings, *, transposed: bool = False) -> Any:
    """The layer, its adapters not at their zero."""
    torch.manual_seed(1)
    network = Network(conv1d(WIDTH, WIDTH) if transposed else nn.Linear(WIDTH, WIDTH)).double()
    add_adapters(network, settings, targets=["changed"], model="the network", hint="none")
    for name, weight in network.named_parameters():
        if MARK in name:
            nn.init.normal_(weight)
    assert type(network.left) is nn.Linear
    return network.changed


def parts(layer: Any) -> tuple[Tensor, Tensor]:
    """A and B."""
    return layer.lora_A["default"].weight, layer.lora_B["default"].weight


def some_rows() -> Tensor:
    return torch.randn(5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rank", "alpha"), [(1, 1.0), (2, 5.0), (3, 1.5), (8, 16.0)])
def test_equation_3(rank: int, alpha: float, transposed: bool) -> None:
    layer = adapted(LoraSettings(lora_rank=rank, lora_alpha=alpha, lora_dropout=0.5), transposed=transposed)
    a, b = parts(layer)
    assert (a.shape, b.shape) == ((rank, WIDTH), (WIDTH, rank))
    x, base = some_rows(), layer.get_base_layer()
    plain = x @ (base.weight if transposed else base.weight.T) + base.bias
    torch.testing.assert_close(layer.eval()(x), plain + alpha / rank * (x @ a.T @ b.T))


@torch.no_grad()
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_dropout_acts_before_the_adapters_alone_and_in_training(rate: float) -> None:
    layer = adapted(LoraSettings(lora_rank=WIDTH, lora_alpha=2.0 * WIDTH, lora_dropout=rate))
    for matrix in parts(layer):  # so that all that is added is twice what dropout left
        matrix.copy_(torch.eye(WIDTH, dtype=torch.float64))
    x = some_rows()
    left = (layer.train()(x) - layer.get_base_layer()(x)) / 2
    dropped = left.abs() < 1e-9
    assert abs(dropped.double().mean() - rate) < 0.1
    assert bool(dropped.any()) == bool(rate)
    torch.testing.assert_close(left[~dropped], x[~dropped] / (1 - rate))


def test_default_settings() -> None:
    settings = LoraSettings()
    assert (settings.lora_rank, settings.lora_alpha, settings.lora_dropout) == (8, 16.0, 0.0)


@torch.no_grad()
def test_a_captioners_settings_reach_its_adapters() -> None:
    settings = {"train": "lora", "lora_rank": 3, "lora_alpha": 7.5, "lora_dropout": 0.3}
    modules: list[Any] = list(prepare("prefix", settings=settings).captioner.modules())
    layers = [module for module in modules if hasattr(module, f"{MARK}A")]
    assert layers
    for layer in layers:
        layer.lora_B["default"].weight.normal_()
        (a, b), x = parts(layer), torch.randn(2, layer.in_features, dtype=torch.float64)
        assert len(a) == 3
        torch.testing.assert_close(layer(x) - layer.get_base_layer()(x), 7.5 / 3 * (x @ a.T @ b.T))
        assert [part.p for part in layer.lora_dropout.values()] == [0.3]


def test_layers_that_are_not_there_are_one_clear_line() -> None:
    with pytest.raises(TellapartError, match="no low-rank adapters fit the network") as caught:
        add_adapters(nn.Linear(2, 2), LoraSettings(), targets=["none"], model="the network", hint="do")
    assert caught.value.hint == "do"
