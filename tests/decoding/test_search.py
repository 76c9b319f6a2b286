"""Searches against all captions there are, on a vocabulary small enough to write them all down."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.rules import begin_with
from tellapart.decoding.search import beam, greedy
from tellapart.types import Vision

VOCABULARY = Vocabulary(("a", "b", "c"), pad=6, start=3, end=1, unknown=0)
WORDS = [VOCABULARY.id(word) for word in "abc"]


def captioner(seed: int) -> MRNN:
    torch.manual_seed(seed)
    model = MRNN(
        MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6),
        text=WordText(VOCABULARY, PRESETS["mrnn"]),
        image_width=3,
    )
    with torch.no_grad():
        model.get_parameter("output.weight").mul_(4)  # far from uniform, so that the order is clear
    return model.double().eval()


def see(count: int, seed: int = 0) -> Vision:
    pooled = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Vision(pooled.new_zeros(count, 0, 1), pooled, pooled.new_zeros(count, 0))


def log_probability(model: MRNN, vision: Vision, words: tuple[int, ...]) -> float:
    ids = [VOCABULARY.start, *words, VOCABULARY.end]
    steps = model.predict(vision, torch.tensor([[ids[:-1]]])).logits.log_softmax(-1)
    return sum(steps[0, 0, at, label].item() for at, label in enumerate(ids[1:]))


def all_captions(longest: int) -> list[tuple[int, ...]]:
    return [words for length in range(1, longest + 1) for words in product(WORDS, repeat=length)]


def captions_of(tokens: torch.Tensor) -> list[tuple[int, ...]]:
    return [tuple(token for token in row if token in WORDS) for row in tokens.tolist()]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.7, 1.5]))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed: int, penalty: float) -> None:
    model, vision = captioner(seed), see(1, seed)
    scored = sorted(
        ((log_probability(model, vision, words), words) for words in all_captions(3)),
        key=lambda pair: pair[0] / (len(pair[1]) + 1) ** penalty,  # the end sign is a word of the caption
        reverse=True,
    )
    decoded = beam(model, vision, width=60, max_words=3, length_penalty=penalty)
    found = list(zip(decoded.log_probabilities[0].tolist(), captions_of(decoded.tokens[0]), strict=True))
    real = [pair for pair in found if pair[0] > -float("inf")]
    assert [words for _, words in real] == [words for _, words in scored]
    assert [score for score, _ in real] == pytest.approx([score for score, _ in scored], abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_beams_are_distinct_sorted_and_closed(seed: int, width: int, max_words: int) -> None:
    decoded = beam(captioner(seed), see(3, seed), width=width, max_words=max_words)
    for tokens, mask, scores in zip(decoded.tokens, decoded.mask, decoded.log_probabilities, strict=True):
        real = scores > -torch.inf
        assert (scores[real].diff() <= 0).all()
        assert not real[real.sum() :].any()
        captions = [captions_of(tokens)[place] for place in range(width) if real[place]]
        assert len(set(captions)) == len(captions)
        assert all(1 <= len(words) <= max_words for words in captions)
        for caption, there in zip(tokens[real], mask[real], strict=True):
            written = caption[there].tolist()
            assert written[-1] == VOCABULARY.end
            assert set(written[:-1]) <= set(WORDS)
            assert (caption[~there] == VOCABULARY.pad).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_greedy_takes_the_likeliest_word_at_each_step(seed: int) -> None:
    model, vision = captioner(seed), see(1, seed)
    decoded = greedy(model, vision, max_words=4)
    (words,) = captions_of(decoded.tokens[0])
    state, token, expected = model.begin(vision), VOCABULARY.start, []
    for at in range(4):
        logits, state = model.step(torch.tensor([token]), state)
        allowed = WORDS if at == 0 else [*WORDS, VOCABULARY.end]
        token = max(allowed, key=lambda word: logits[0, word].item())
        if token == VOCABULARY.end:
            break
        expected.append(token)
    assert list(words) == expected
    assert decoded.log_probabilities.item() == pytest.approx(log_probability(model, vision, words), abs=1e-9)


@pytest.mark.parametrize("width", [1, 3])
def test_captions_begin_with_the_given_words(width: int) -> None:
    model, vision, prefix = captioner(4), see(2), [WORDS[2], WORDS[0]]
    decoded = beam(model, vision, width=width, max_words=4, rules=[begin_with(model.text, prefix)])
    assert (decoded.tokens[:, :, :2] == torch.tensor(prefix)).all()
    for image in range(2):
        one = vision.select(torch.tensor([image]))
        for words, score in zip(
            captions_of(decoded.tokens[image]), decoded.log_probabilities[image], strict=True
        ):
            assert score.item() == pytest.approx(log_probability(model, one, words), abs=1e-9)
    if width == 1:
        assert torch.equal(
            greedy(model, vision, max_words=4, rules=[begin_with(model.text, prefix)]).tokens, decoded.tokens
        )


def test_a_prefix_may_fill_the_caption() -> None:
    model, prefix = captioner(0), [WORDS[0], WORDS[1]]
    decoded = beam(model, see(1), width=2, max_words=2, rules=[begin_with(model.text, prefix)])
    assert captions_of(decoded.tokens[0])[0] == (WORDS[0], WORDS[1])


def test_the_beam_of_an_image_does_not_depend_on_its_neighbours() -> None:
    model, vision = captioner(7), see(5)
    together = beam(model, vision, width=3, max_words=5)
    for image in range(5):
        alone = beam(model, vision.select(torch.tensor([image])), width=3, max_words=5)
        assert captions_of(alone.tokens[0]) == captions_of(together.tokens[image])
