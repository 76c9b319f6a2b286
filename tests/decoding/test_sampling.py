"""Samples against the distribution they should come from, worked out by hand over all captions there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.rules import begin_with
from tellapart.decoding.sampling import Sampling, _weights, _word, image_generators, sample
from tellapart.decoding.search import greedy
from tellapart.errors import TellapartError
from tellapart.types import Decoded, Vision

VOCABULARY = Vocabulary(("a", "b", "c"), pad=6, start=3, end=1, unknown=0)
WORDS = [VOCABULARY.id(word) for word in "abc"]

seeds = st.integers(0, 10_000)
samplings = st.builds(
    Sampling,
    count=st.integers(1, 4),
    temperature=st.floats(0.1, 10),
    top_k=st.integers(0, 9),
    nucleus=st.floats(0.01, 1),
    typical=st.one_of(st.just(1.0), st.floats(0.01, 1)),
)


def captioner(seed: int) -> MRNN:
    torch.manual_seed(seed)
    config = MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6)
    model = MRNN(config, text=WordText(VOCABULARY, PRESETS["mrnn"]), image_width=3)
    with torch.no_grad():
        model.get_parameter("output.weight").mul_(4)  # far from uniform
    return model.double().eval()


def see(count: int, seed: int = 0) -> Vision:
    pooled = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Vision(pooled.new_zeros(count, 0, 1), pooled, pooled.new_zeros(count, 0))


def generators(count: int, seed: int = 0) -> list[torch.Generator]:
    return image_generators(map(str, range(count)), seed=seed)


def captions_of(decoded: Decoded, image: int = 0) -> list[tuple[int, ...]]:
    rows = zip(decoded.tokens[image], decoded.mask[image], strict=True)
    return [tuple(tokens[there].tolist()) for tokens, there in rows]


def next_words(logits: Sequence[float], allowed: Sequence[int], sampling: Sampling) -> dict[int, float]:
    """Tokens and their chances at one place, as `Sampling` describes it."""
    weights = {token: math.exp(logits[token] / sampling.temperature) for token in allowed}
    ranked = sorted(weights, key=lambda token: -weights[token])[: sampling.top_k or None]
    kept = fewest(ranked, weights, sampling.nucleus)
    whole = sum(weights[token] for token in kept)
    surprise = {token: -math.log(weights[token] / whole) for token in kept}
    entropy = sum(weights[token] / whole * surprise[token] for token in kept)
    if sampling.typical < 1:
        usual = sorted(kept, key=lambda token: abs(surprise[token] - entropy))
        kept = fewest(usual, weights, sampling.typical)
    return {token: weights[token] / sum(weights[other] for other in kept) for token in kept}


def fewest(ranked: Sequence[int], weights: dict[int, float], share: float) -> list[int]:
    """The first of these that together have this share of all their weight."""
    whole, kept = sum(weights[token] for token in ranked), list[int]()
    while sum(weights[token] for token in kept) < share * whole and len(kept) < len(ranked):
        kept.append(ranked[len(kept)])
    return kept


def all_chances(
    model: MRNN, vision: Vision, sampling: Sampling, *, longest: int, begun: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every caption that can be drawn, with its chance."""
    given = torch.tensor([[[VOCABULARY.start, *begun]]])
    logits = model.predict(vision, given).logits[0, 0, -1].tolist()
    allowed = [VOCABULARY.end] if len(begun) == longest else WORDS + [VOCABULARY.end] * bool(begun)
    for token, chance in next_words(logits, allowed, sampling).items():
        if token == VOCABULARY.end:
            yield (*begun, token), chance
        else:
            for caption, rest in all_chances(model, vision, sampling, longest=longest, begun=(*begun, token)):
                yield caption, chance * rest


@pytest.mark.parametrize(
    ("temperature", "top_k", "nucleus", "typical"),
    [
        (1.0, 0, 1.0, 1.0),
        (0.5, 0, 1.0, 1.0),
        (3.0, 0, 1.0, 1.0),
        (1.0, 2, 1.0, 1.0),
        (1.0, 0, 0.8, 1.0),
        (2.0, 3, 0.8, 1.0),
        (1.0, 99, 1.0, 1.0),
        (2.0, 0, 1.0, 0.9),
        (2.0, 3, 0.9, 0.8),
    ],
)
@pytest.mark.parametrize("begun", [(), (WORDS[2],)])
def test_captions_come_as_often_as_they_should(
    temperature: float, top_k: int, nucleus: float, typical: float, begun: tuple[int, ...]
) -> None:
    model, vision = captioner(8), see(1)
    sampling = Sampling(8_000, temperature, top_k, nucleus, typical)
    decoded = sample(
        model, vision, sampling, generators=generators(1), max_words=3, rules=[begin_with(model.text, begun)]
    )
    found = Counter(captions_of(decoded))
    chances = dict(all_chances(model, vision, sampling, longest=3, begun=begun))
    assert sum(chances.values()) == pytest.approx(1)
    assert set(found) <= set(chances)
    # The test holds where at least about five are expected; the rare ones are counted together.
    often = [caption for caption, chance in chances.items() if chance * sampling.count >= 5]
    observed, expected = [found[each] for each in often], [chances[each] * sampling.count for each in often]
    if len(often) < len(chances):
        observed.append(sampling.count - sum(observed))
        expected.append(sampling.count - sum(expected))
    assert len(often) >= 3
    assert chisquare(observed, expected).pvalue > 1e-3


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from([{"top_k": 1}, {"nucleus": 1e-9}, {"temperature": 1e-4}]), st.integers(1, 5))
def test_without_a_choice_it_is_greedy(seed: int, narrow: dict[str, float], max_words: int) -> None:
    model, vision = captioner(seed), see(3, seed)
    sampling = Sampling(2, **narrow)  # type: ignore[arg-type]
    drawn = sample(model, vision, sampling, generators=generators(3, seed), max_words=max_words)
    best = greedy(model, vision, max_words=max_words)
    assert torch.equal(drawn.tokens, best.tokens.expand_as(drawn.tokens))
    torch.testing.assert_close(drawn.log_probabilities, best.log_probabilities.expand(3, 2))


@settings(max_examples=25, deadline=None)
@given(seeds, samplings, st.sampled_from([(), (WORDS[1],), (WORDS[0], WORDS[0])]))
def test_log_probabilities_are_the_captioners_own(
    seed: int, sampling: Sampling, prefix: tuple[int, ...]
) -> None:
    model, vision = captioner(seed), see(3, seed)
    drawn = sample(
        model,
        vision,
        sampling,
        generators=generators(3, seed),
        max_words=4,
        rules=[begin_with(model.text, prefix)],
    )
    start = torch.full_like(drawn.tokens[:, :, :1], VOCABULARY.start)
    logits = model.predict(vision, torch.cat([start, drawn.tokens[:, :, :-1]], 2)).logits
    steps = logits.log_softmax(-1).gather(3, drawn.tokens.unsqueeze(3)).squeeze(3)
    torch.testing.assert_close((steps * drawn.mask).sum(2), drawn.log_probabilities)


@settings(max_examples=25, deadline=None)
@given(seeds, samplings, st.integers(1, 6))
def test_captions_are_closed_and_hold_words_alone(seed: int, sampling: Sampling, max_words: int) -> None:
    drawn = sample(captioner(seed), see(3), sampling, generators=generators(3, seed), max_words=max_words)
    assert drawn.tokens.shape[:2] == drawn.log_probabilities.shape == (3, sampling.count)
    assert (drawn.tokens[~drawn.mask] == VOCABULARY.pad).all()
    for image in range(3):
        for caption in captions_of(drawn, image):
            assert caption[-1] == VOCABULARY.end
            assert 1 <= len(caption[:-1]) <= max_words
            assert set(caption[:-1]) <= set(WORDS)


@settings(max_examples=10, deadline=None)
@given(seeds, samplings)
def test_company_changes_neither_the_draw_nor_what_comes_after_it(seed: int, sampling: Sampling) -> None:
    model, vision, size = captioner(seed), see(64, seed), 64
    own = generators(size, seed)
    together = [sample(model, vision, sampling, generators=own, max_words=6) for _ in range(2)]
    for image in (0, 17, 63):
        alone, row = generators(size, seed)[image : image + 1], torch.tensor([image])
        for whole in together:  # the second time, the generators go on where the first time left them
            one = sample(model, vision.select(row), sampling, generators=alone, max_words=6)
            assert captions_of(one) == captions_of(whole, image)
            torch.testing.assert_close(one.log_probabilities[0], whole.log_probabilities[image])
        assert torch.equal(alone[0].get_state(), own[image].get_state())


def test_samples_stand_in_the_order_they_were_drawn() -> None:
    drawn = sample(captioner(3), see(1), Sampling(50), generators=generators(1), max_words=4)
    scores = drawn.log_probabilities[0]
    assert (scores.diff() > 0).any()
    assert (scores.diff() < 0).any()
    assert len(set(captions_of(drawn))) > 5


def test_an_image_has_the_generator_of_its_name_and_the_seed() -> None:
    one, other, again = image_generators(["dog.jpg", "cat.jpg", "dog.jpg"], seed=1)
    (later,) = image_generators(["dog.jpg"], seed=2)
    numbers = [torch.rand(3, generator=each).tolist() for each in (one, other, again, later)]
    assert numbers[0] == numbers[2]
    assert numbers[0] != numbers[1]
    assert numbers[0] != numbers[3]
    # The same in every version to come: samples are told of by seed.
    assert one.initial_seed() == 3121389837933564257


def test_samples_serve_an_objective_that_learns_from_them() -> None:
    model, vision = captioner(1).train(), see(2)
    drawn = sample(model, vision, Sampling(3), generators=generators(2), max_words=4)
    assert not drawn.tokens.is_inference()
    assert not drawn.log_probabilities.requires_grad
    start = torch.full_like(drawn.tokens[:, :, :1], VOCABULARY.start)
    logits = model.predict(vision, torch.cat([start, drawn.tokens[:, :, :-1]], 2)).logits
    steps = logits.log_softmax(-1).gather(3, drawn.tokens.unsqueeze(3)).squeeze(3)
    gradients = torch.autograd.grad((steps * drawn.mask).sum(), list(model.parameters()))
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"count": 0}, "count is 0"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"nucleus": 0.0}, "nucleus is 0.0"),
        ({"nucleus": 1.1}, "nucleus is 1.1"),
        ({"nucleus": math.nan}, "nucleus is nan"),
        ({"typical": 0.0}, "typical is 0.0"),
        ({"typical": 1.1}, "typical is 1.1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(TellapartError) as caught:
        Sampling(**{"count": 1, **wrong})  # type: ignore[arg-type]
    assert caught.value.problem == said
    assert caught.value.hint


def test_each_image_needs_a_generator() -> None:
    with pytest.raises(TellapartError, match="2 images, but 1 generators"):
        sample(captioner(1), see(2), Sampling(1), generators=generators(1), max_words=3)


def test_typical_words_need_not_be_the_likeliest() -> None:
    """Half of the weight on one word, which is less surprising than words are here on the average."""
    chances = torch.tensor([[0.5, 0.2, 0.12, 0.1, 0.08]], dtype=torch.float64)
    kept = _weights(chances.log(), Sampling(1, typical=0.3))
    # The entropy is 1.36; the surprises are 0.69, 1.61, 2.12, 2.30 and 2.53.
    assert kept[0].nonzero().flatten().tolist() == [0, 1]
    kept = _weights(chances.log(), Sampling(1, typical=0.15))
    assert kept[0].nonzero().flatten().tolist() == [1]


def test_a_word_without_weight_is_never_drawn() -> None:
    weights = torch.tensor([0.0, 0.1, 0.0, 0.2, 0.0], dtype=torch.float64)
    ends = torch.tensor([0.0, 1 / 3 - 1e-9, 1 / 3 + 1e-9, 1 - 2**-53], dtype=torch.float64)
    assert _word(weights.expand(4, 5), ends).tolist() == [1, 1, 3, 3]


@given(st.lists(st.integers(-40, 40), min_size=5, max_size=5, unique=True), samplings)
def test_the_choice_at_a_place_is_that_of_the_book(tenths: list[int], sampling: Sampling) -> None:
    logits = [number / 10 for number in tenths]  # no two so near that they are even
    weights = _weights(torch.tensor([logits], dtype=torch.float64), sampling)[0]
    chances = (weights / weights.sum()).tolist()
    expected = next_words(logits, range(5), sampling)
    assert chances == pytest.approx([expected.get(word, 0) for word in range(5)])
