"""What adaptive and top-down attention have in common: a grid without order, concept words, copying."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tellapart.captioners.adaptive import Adaptive
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.topdown import TopDown
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

TEXT = WordText(Vocabulary(("a", "dog", "cat", "runs", "zebra")), PRESETS["mrnn"])
NAMES = ("dog", "cat", "zebra")
TRAITS = EncoderTraits(name="some", identity="none", shapes={"grid": (6, 4), "classes": (3,)}, nouns=NAMES)
both = pytest.mark.parametrize("name", ["adaptive", "topdown"])
TOKENS = torch.tensor([[[1, 4, 7, 5], [1, 5, 5, 0]], [[1, 6, 6, 6], [1, 7, 8, 4]]])


def build(name: str, *, concepts: int = 0, copy_words: bool = False) -> Adaptive | TopDown:
    torch.manual_seed(3)
    part = CAPTIONERS.get(name)
    config = part.configure({"concepts": concepts, "copy_words": copy_words}, preset="tiny")
    captioner: Adaptive | TopDown = part.builder()(config, text=TEXT, traits=TRAITS)
    return captioner.double().eval()


def see(*likely: str) -> Vision:
    """Pictures that look the same, but in which the encoder recognises something each."""
    generator = torch.Generator().manual_seed(1)
    grid = torch.rand(1, 6, 4, generator=generator, dtype=torch.float64).expand(len(likely), 6, 4)
    classes = torch.tensor([[0.9 if name == word else 0.05 for name in NAMES] for word in likely])
    return Vision(grid, grid.new_zeros(len(likely), 0), classes.double())


@settings(max_examples=20)
@given(st.permutations(range(6)), st.sampled_from(["adaptive", "topdown"]))
def test_moved_places_move_the_attention_and_nothing_else(order: list[int], name: str) -> None:
    captioner, vision = build(name), see("dog", "dog")
    moved = Vision(vision.grid[:, order], vision.pooled, vision.classes)
    straight, other = captioner.predict(vision, TOKENS), captioner.predict(moved, TOKENS)
    torch.testing.assert_close(other.logits, straight.logits)
    torch.testing.assert_close(other.attention[0][..., :6], straight.attention[0][..., order])


@both
@pytest.mark.parametrize("concepts", [0, 2])
def test_attention_is_a_distribution_over_places_words_and_sentinel(name: str, concepts: int) -> None:
    attention = build(name, concepts=concepts).predict(see("dog", "cat"), TOKENS).attention[0]
    assert attention.shape == (2, 2, 1, 4, 6 + concepts + (name == "adaptive"))
    assert (attention > 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 2, 1, 4, dtype=torch.float64))


@both
def test_a_concept_word_changes_what_is_said_and_is_attended_to_by_its_probability(name: str) -> None:
    captioner = build(name, concepts=1)
    prediction = captioner.predict(see("dog", "zebra"), TOKENS[:1].expand(2, 2, 4))
    assert not torch.allclose(prediction.logits[0], prediction.logits[1])
    sure, vision = prediction.attention[0][0, ..., 6], see("dog")
    doubtful = Vision(vision.grid, vision.pooled, vision.classes / 9)
    doubted = captioner.predict(doubtful, TOKENS[:1]).attention[0][0, ..., 6]
    first = (slice(None), 0, 0)  # after the first word the two have seen different things
    odds, fewer = (share[first] / (1 - share[first]) for share in (sure, doubted))
    torch.testing.assert_close(odds, 9 * fewer)
    without = build(name).predict(see("dog", "zebra"), TOKENS[:1].expand(2, 2, 4)).logits
    torch.testing.assert_close(without[0], without[1])


@both
def test_with_a_shut_gate_copying_changes_nothing(name: str) -> None:
    copying, plain = build(name, concepts=2, copy_words=True), build(name, concepts=2)
    shared = {key: value for key, value in copying.state_dict().items() if not key.startswith("copy_words")}
    plain.load_state_dict(shared)
    open_gate(copying, -1e3)
    logits = plain.predict(see("dog", "cat"), TOKENS).logits
    torch.testing.assert_close(copying.predict(see("dog", "cat"), TOKENS).logits, logits)


@both
def test_the_gate_mixes_what_is_written_with_what_is_copied(name: str) -> None:
    captioner = build(name, concepts=2, copy_words=True)
    found = []
    for gate in (-30.0, 1.0, 30.0):
        open_gate(captioner, gate)
        found.append(captioner.predict(see("dog", "cat"), TOKENS).logits.softmax(-1))
    shut, mixed, wide = found
    share = 1 / (1 + math.exp(-1.0))
    torch.testing.assert_close(mixed, (1 - share) * shut + share * wide)


@both
def test_with_an_open_gate_a_word_that_was_never_learned_is_written(name: str) -> None:
    captioner = build(name, concepts=2, copy_words=True)
    zebra = TEXT.vocabulary.id("zebra")
    with torch.no_grad():
        captioner.output.bias[zebra] = -30.0
    open_gate(captioner, -30.0)
    vision = see("zebra", "dog")
    assert not (best(captioner, vision) == zebra).any()
    open_gate(captioner, 5.0)
    written = best(captioner, vision)
    assert (written[0] == zebra).all()
    assert (written[1] == TEXT.vocabulary.id("dog")).all()


@both
def test_an_encoder_without_a_grid_is_refused(name: str) -> None:
    part = CAPTIONERS.get(name)
    pooled = EncoderTraits(name="flat", identity="none", shapes={"pooled": (4,)})
    with pytest.raises(TellapartError, match="flat gives no grid"):
        part.builder()(part.configure({}, preset="tiny"), text=TEXT, traits=pooled)


def open_gate(captioner: Adaptive | TopDown, bias: float) -> None:
    assert captioner.copy_words is not None
    with torch.no_grad():
        captioner.copy_words.gate.weight.zero_()
        captioner.copy_words.gate.bias.fill_(bias)
        captioner.copy_words.query.weight.zero_()
        captioner.copy_words.query.bias.zero_()


def best(captioner: Adaptive | TopDown, vision: Vision) -> Tensor:
    return captioner.predict(vision, TOKENS).logits.argmax(-1)
