"""Dropout: in training alone, at the rate of the settings, and on all that the papers say."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tellapart.captioners.meshed import MemoryLayer, MeshedLayer
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.transformer import MeshedConfig, TransformerConfig
from tellapart.captioners.transformer import DecoderLayer, EncoderLayer
from tellapart.testing import Subject, prepare
from tellapart.types import AnyCaptioner, Vision

RATE = 0.4  # nobody's default
PICTURES, PLACES, WORDS = (
    4,
    4 * 9,
    4 * 2 * 5,
)  # vectors: of pictures, of their grids, of two captions for each
TOKENS = torch.randint(8, 13, (4, 2, 5), generator=torch.Generator().manual_seed(3))


def kinds() -> Iterator[tuple[str, str]]:
    """Names, and settings as JSON, of all that have dropout of their own, and of one that joins such."""
    for name in CAPTIONERS.names():
        part = CAPTIONERS.get(name)
        if "tiny" in part.presets and "dropout" in part.config.model_fields:
            yield name, json.dumps({"dropout": RATE})
    members = [{"name": name, **CAPTIONERS.get(name).preset("tiny")} for name in ("mrnn", "transformer")]
    yield "ensemble", json.dumps({"members": [{**member, "dropout": RATE} for member in members]})


KINDS = list(kinds())
EVERY = pytest.mark.parametrize(("name", "settings"), KINDS, ids=[name for name, _ in KINDS])


def make(name: str, settings: str) -> Subject:
    torch.manual_seed(0)  # what is dropped is drawn from torch's own generator
    return prepare(name, settings=json.loads(settings))


def predict(captioner: AnyCaptioner, vision: Vision) -> Tensor:
    return captioner.predict(vision, TOKENS).logits


def write(captioner: AnyCaptioner, vision: Vision) -> Tensor:
    return captioner.step(TOKENS[:, 0, 0], captioner.begin(vision))[0]


def droppers(captioner: nn.Module) -> list[nn.Dropout]:
    return [module for module in captioner.modules() if isinstance(module, nn.Dropout)]


def test_there_are_captioners_with_dropout() -> None:
    assert {"mrnn", "neuraltalk", "adaptive", "topdown", "transformer", "meshed"} <= {
        name for name, _ in KINDS
    }


@EVERY
def test_two_passes_differ_in_training_and_agree_in_evaluation(name: str, settings: str) -> None:
    subject = make(name, settings)
    captioner, vision = subject.captioner, subject.vision
    for ask in (predict, write):
        assert torch.equal(ask(captioner.eval(), vision), ask(captioner, vision))
        assert not torch.equal(ask(captioner.train(), vision), ask(captioner, vision))


@EVERY
def test_every_dropout_there_is_acts_at_the_rate_of_the_settings(name: str, settings: str) -> None:
    subject = make(name, settings)
    acting = droppers(subject.captioner)
    given = {module: list[Tensor]() for module in acting}
    found = {module: list[Tensor]() for module in acting}

    def note(module: nn.Dropout, inputs: tuple[Tensor], output: Tensor) -> None:
        given[module].append(inputs[0].flatten())
        found[module].append(output.flatten())

    for module in acting:
        module.register_forward_hook(note)
    predict(subject.captioner.train(), subject.vision)

    assert acting
    for module in acting:
        assert module.p == RATE
        before, after = torch.cat(given[module]), torch.cat(found[module])
        left = after[before != 0]  # a ReLU makes zeros of its own
        assert abs((left == 0).double().mean() - RATE) < 0.15


# How often vectors of each kind are dropped in predict. Both Transformers have two layers: two sublayers each
# on the places, three on the words.
ACTS: Mapping[str, Mapping[int, int]] = {
    "neuraltalk": {WORDS: 1},  # the LSTM's output
    "adaptive": {PLACES: 1, PICTURES: 1, WORDS: 2},  # words, and what the last layer reads
    "topdown": {PLACES: 1, WORDS: 2},
    "transformer": {PLACES: 1 + 2 * 2, WORDS: 1 + 3 * 2},
    "meshed": {PLACES: 1 + 2 * 2, WORDS: 1 + 3 * 2},
    "mrnn": {WORDS: 3},
    "mrnn-emb-one-input": {WORDS: 4},
}


def record_sizes(captioner: AnyCaptioner) -> list[int]:
    """How many vectors are dropped from, call by call."""
    sizes: list[int] = []
    for module in droppers(captioner):
        module.register_forward_hook(lambda _, given, __: sizes.append(given[0][..., 0].numel()))
    return sizes


@pytest.mark.parametrize("name", ACTS)
def test_dropout_acts_on_all_that_the_paper_says(name: str) -> None:
    subject = make(name, "{}")
    sizes = record_sizes(subject.captioner)
    predict(subject.captioner, subject.vision)
    assert Counter(sizes) == ACTS[name]


@EVERY
def test_a_step_drops_what_predict_drops(name: str, settings: str) -> None:
    subject = make(name, settings)
    sizes = record_sizes(subject.captioner)
    subject.captioner.predict(subject.vision, TOKENS[:, :1, :1])
    whole = sorted(sizes)
    sizes.clear()
    write(subject.captioner, subject.vision)
    assert sorted(sizes) == whole


def predict_without(captioner: AnyCaptioner, vision: Vision, act: int) -> Tensor:
    """Where one act of dropout drops everything, and the others nothing."""
    acts = itertools.count()

    def silence(module: nn.Module, given: object, found: Tensor) -> Tensor | None:
        return torch.zeros_like(found) if next(acts) == act else None

    hooks = [module.register_forward_hook(silence) for module in droppers(captioner)]
    logits = predict(captioner, vision)
    for hook in hooks:
        hook.remove()
    return logits


@EVERY
@torch.no_grad()
def test_what_dropout_leaves_is_what_is_read(name: str, settings: str) -> None:
    subject = make(name, settings)
    acts = record_sizes(subject.captioner)
    whole = predict(subject.captioner, subject.vision)
    for act in range(len(acts)):
        assert not torch.allclose(predict_without(subject.captioner, subject.vision, act), whole)


SIZES = TransformerConfig(width=8, heads=2, feed_forward=12)
MESHED = MeshedConfig(layers=2, width=8, heads=2, feed_forward=12, slots=3)


@pytest.mark.parametrize(("kind", "config"), [(EncoderLayer, SIZES), (MemoryLayer, MESHED)])
def test_an_encoder_layer_drops_no_more_than_its_sublayers_add(kind: type[nn.Module], config: object) -> None:
    layer: Any = kind(config)
    layer.dropout.p = 1.0
    x = torch.randn(3, 5, 8)
    left = x if kind is EncoderLayer else layer.norms[1](layer.norms[0](x))  # normalised before or behind
    torch.testing.assert_close(layer(x, torch.zeros(3, 5)), left)


@pytest.mark.parametrize(("kind", "config", "levels"), [(DecoderLayer, SIZES, 1), (MeshedLayer, MESHED, 2)])
def test_a_decoder_layer_drops_no_more_than_its_sublayers_add(
    kind: type[nn.Module], config: object, levels: int
) -> None:
    layer: Any = kind(config)
    layer.dropout.p = 1.0
    x, encoded = torch.randn(3, 2, 4, 8), torch.randn(3, levels, 5, 8)
    found, _, _ = layer(x, layer.words.empty(6), layer.memory.keep(encoded), torch.zeros(3, 5))
    left = x if kind is DecoderLayer else layer.norms[2](layer.norms[1](layer.norms[0](x)))
    torch.testing.assert_close(found, left)
