"""Layers that are read faster: the same numbers, the same weights, whatever happens to those."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import nn
from torch.nn.functional import linear

from tellapart.captioners import quick_linear
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.quick_linear import PackedWeights, QuickLinear, quicken
from tellapart.decoding.search import beam
from tellapart.testing import prepare
from tellapart.testing.subject import cast

packs = pytest.mark.skipif(not quick_linear.CAN_PACK, reason="this torch has no packed layers")
TINY = [name for name in CAPTIONERS.names() if "tiny" in CAPTIONERS.get(name).presets]


@pytest.fixture
def pack_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_linear, "SMALL", 0)
    monkeypatch.setattr(quick_linear, "SMALL_FOR_FEW", 0)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever weights are laid out."""
    calls: list[int] = []
    lay_out = torch.ops.mkldnn._reorder_linear_weight

    class Counting:
        _linear_pointwise = staticmethod(torch.ops.mkldnn._linear_pointwise)

        @staticmethod
        def _reorder_linear_weight(weight: torch.Tensor, rows: int) -> torch.Tensor:
            calls.append(rows)
            laid_out: torch.Tensor = lay_out(weight, rows)
            return laid_out

    monkeypatch.setattr(quick_linear, "_ONEDNN", Counting)
    return calls


@packs
@given(
    rows=some.integers(0, 70) | some.integers(500, 520),
    sizes=some.tuples(some.integers(1, 70), some.integers(1, 70)),
    biased=some.booleans(),
    across=some.booleans(),
)
def test_it_equals_torchs_product(rows: int, sizes: tuple[int, int], biased: bool, across: bool) -> None:
    draw = torch.Generator().manual_seed(rows)
    weight = torch.randn(sizes, generator=draw)
    bias = torch.randn(sizes[0], generator=draw) if biased else None
    x = (
        torch.randn(sizes[1], rows, generator=draw).T
        if across
        else torch.randn(rows, sizes[1], generator=draw)
    )
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(quick_linear, "SMALL", 0)
        patch.setattr(quick_linear, "SMALL_FOR_FEW", 0)
        found = PackedWeights()(x, weight, bias)
    torch.testing.assert_close(found, linear(x, weight, bias), rtol=1e-5, atol=1e-4)


@packs
@pytest.mark.usefixtures("pack_all")
@pytest.mark.parametrize("shape", [(6,), (1, 6), (2, 3, 6), (2, 1, 3, 6), (0, 6)])
def test_it_takes_what_a_linear_layer_takes(shape: tuple[int, ...]) -> None:
    plain, x = nn.Linear(6, 9), torch.randn(shape)
    with torch.no_grad():
        torch.testing.assert_close(QuickLinear(plain)(x), plain(x))


@packs
@pytest.mark.usefixtures("pack_all")
def test_weights_are_laid_out_once_and_again_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    plain, x = nn.Linear(6, 9), torch.randn(5, 6)
    quick = QuickLinear(plain)
    with torch.no_grad():
        quick(x), quick(x)
        assert len(calls) == 1
        plain.weight.mul_(2)  # as an optimiser does
        torch.testing.assert_close(quick(x), plain(x))
        quick.load_state_dict(nn.Linear(6, 9).state_dict())
        torch.testing.assert_close(quick(x), plain(x))
        quick.weight = nn.Parameter(torch.randn(9, 6))
        torch.testing.assert_close(quick(x), linear(x, quick.weight, quick.bias))
        assert len(calls) == 4
        quick(x[:1]), quick(x[:3])  # another number of rows is no reason
        assert len(calls) == 4
        quick.train()  # nothing that is to change is held twice
        quick(x)
        assert len(calls) == 5


@packs
@pytest.mark.usefixtures("pack_all")
def test_weights_in_the_place_of_others_are_not_taken_for_them() -> None:
    """Memory that was let go is given to the next who asks: an address alone says nothing."""
    quick, x = QuickLinear(nn.Linear(64, 64, bias=False)), torch.randn(5, 64)
    with torch.no_grad():
        for _ in range(20):
            quick(x)
            del quick.weight
            quick.weight = nn.Parameter(torch.randn(64, 64))
            torch.testing.assert_close(quick(x), linear(x, quick.weight), rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("pack_all")
def test_weights_made_without_a_count_of_changes_are_read_as_they_are() -> None:
    with torch.inference_mode():
        quick, x = QuickLinear(nn.Linear(6, 9)), torch.randn(5, 6)
        before = quick(x)
        quick.weight.mul_(2)
        torch.testing.assert_close(quick(x), linear(x, quick.weight, quick.bias))
        assert not torch.allclose(quick(x), before)


@packs
@pytest.mark.usefixtures("pack_all")
def test_a_bias_that_lies_apart_is_added_rightly() -> None:
    weight, bias, x = torch.randn(9, 6), torch.randn(18)[::2], torch.randn(5, 6)
    with torch.no_grad():
        torch.testing.assert_close(PackedWeights()(x, weight, bias), linear(x, weight, bias))


@packs
@pytest.mark.usefixtures("pack_all")
def test_few_numbers_of_rows_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each that it meets, oneDNN keeps half a megabyte."""
    met = set()
    multiply = torch.ops.mkldnn._linear_pointwise

    class Noting:
        _reorder_linear_weight = staticmethod(torch.ops.mkldnn._reorder_linear_weight)

        @staticmethod
        def _linear_pointwise(x: torch.Tensor, *rest: object) -> torch.Tensor:
            met.add(len(x))
            found: torch.Tensor = multiply(x, *rest)
            return found

    monkeypatch.setattr(quick_linear, "_ONEDNN", Noting)
    quick = QuickLinear(nn.Linear(6, 9))
    with torch.no_grad():
        for rows in range(1, 700):
            quick(torch.ones(rows, 6))
    assert met == set(quick_linear.SIZES)


@packs
@pytest.mark.usefixtures("pack_all")
def test_copies_have_weights_of_their_own() -> None:
    quick, x = QuickLinear(nn.Linear(6, 9)), torch.randn(5, 6)
    with torch.no_grad():
        before = quick(x)
        for other in (copy.deepcopy(quick), pickle.loads(pickle.dumps(quick))):
            torch.testing.assert_close(other(x), before)
            other.weight.zero_()
            torch.testing.assert_close(other(x), other.bias.expand(5, -1))
        torch.testing.assert_close(quick(x), before)


@pytest.mark.usefixtures("pack_all")
def test_gradients_flow_as_ever() -> None:
    plain, x = nn.Linear(6, 9), torch.randn(5, 6, requires_grad=True)
    QuickLinear(plain)(x).sum().backward()
    assert plain.weight.grad is not None
    assert x.grad is not None


@pytest.mark.usefixtures("pack_all")
def test_other_precisions_are_torchs_own_business() -> None:
    quick = QuickLinear(nn.Linear(6, 9)).double()
    with torch.no_grad():
        assert quick(torch.randn(5, 6, dtype=torch.float64)).dtype is torch.float64
        with torch.autocast("cpu", torch.bfloat16):
            assert quick.float()(torch.randn(5, 6)).dtype is torch.bfloat16


class Twice(nn.Module):
    """One layer under two names, and its weights in a third place."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(6, 9)
        self.same = self.one
        self.below = nn.Sequential(nn.Linear(6, 9, bias=False), nn.ReLU())
        self.words = nn.Embedding(9, 6)
        self.words.weight = self.one.weight


def test_layers_are_replaced_and_weights_are_not() -> None:
    network = Twice()
    before = network.state_dict(keep_vars=True)
    quicken(network)
    after = network.state_dict(keep_vars=True)
    assert isinstance(network.one, QuickLinear)
    assert network.same is network.one
    assert isinstance(network.below[0], QuickLinear)
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)


def test_too_many_weights_are_not_held_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_linear, "MOST", 100)
    network = Twice()
    quicken(network)
    assert not any(isinstance(module, QuickLinear) for module in network.modules())


@packs
@pytest.mark.parametrize("name", TINY)
def test_captioners_say_the_same_by_quick_layers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = prepare(name)
    captioner, vision = subject.captioner.float(), cast(subject.vision, torch.float32)
    with torch.no_grad():
        plain = beam(captioner, vision, width=3, max_words=5)
        monkeypatch.setattr(quick_linear, "SMALL", 0)
        monkeypatch.setattr(quick_linear, "SMALL_FOR_FEW", 0)
        calls = counted(monkeypatch)
        quick = beam(captioner, vision, width=3, max_words=5)
    assert calls
    assert torch.equal(quick.tokens, plain.tokens)
    torch.testing.assert_close(quick.log_probabilities, plain.log_probabilities, rtol=1e-5, atol=1e-4)
