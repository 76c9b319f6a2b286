"""Pragmatic decoding against its equations, written out over all captions of a small vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.pragmatic import Company, pragmatic, weigh
from tellapart.decoding.rules import begin_with
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.types import Captioner, Decoded, Prediction, Vision

VOCABULARY = Vocabulary(("a", "b", "c"), pad=6, start=3, end=1, unknown=0)
TEXT = WordText(VOCABULARY, PRESETS["mrnn"])
WORDS = [VOCABULARY.id(word) for word in "abc"]

seeds = st.integers(0, 10_000)


def captioner(seed: int) -> MRNN:
    torch.manual_seed(seed)
    model = MRNN(MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6), text=TEXT, image_width=3)
    with torch.no_grad():
        model.get_parameter("output.weight").mul_(4)  # far from uniform, so that the order is clear
        model.get_parameter("from_image.weight").mul_(4)  # and pictures far from alike
    return model.double().eval()


def see(count: int, seed: int = 0) -> Vision:
    pooled = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Vision(pooled.new_zeros(count, 0, 1), pooled, pooled.new_zeros(count, 0))


def company(rows: list[list[int]], rationality: float, seed: int = 0) -> Company:
    return Company(see(1 + max(map(max, rows)), seed), torch.tensor(rows), rationality)


def captions_of(decoded: Decoded, target: int = 0) -> list[tuple[int, ...]]:
    rows = zip(decoded.tokens[target], decoded.log_probabilities[target], strict=True)
    return [
        tuple(token for token in tokens.tolist() if token in WORDS)
        for tokens, score in rows
        if score.isfinite()
    ]


def steps_of(model: MRNN, vision: Vision, words: tuple[int, ...]) -> list[list[list[float]]]:
    """The log S0 of every token at every place of a caption, for each picture."""
    tokens = torch.tensor([VOCABULARY.start, *words]).expand(len(vision), 1, -1)
    found: list[list[list[float]]] = model.predict(vision, tokens).logits.log_softmax(-1)[:, 0].tolist()
    return found


def pragmatic_score(model: MRNN, group: Company, words: tuple[int, ...], *, longest: int) -> float:
    """The log S1 of a whole caption, by the equations; the target is the first row of the vision."""
    steps = steps_of(model, group.vision, words)
    posterior, total = [1 / len(steps)] * len(steps), 0.0
    for place, said in enumerate((*words, VOCABULARY.end)):
        allowed = [VOCABULARY.end] if place == longest else WORDS + [VOCABULARY.end] * bool(place)
        literal = {word: math.exp(steps[0][place][word]) for word in allowed}
        listener = {}
        for word in allowed:
            joint = [
                before * math.exp(own[place][word]) for before, own in zip(posterior, steps, strict=True)
            ]
            listener[word] = [each / sum(joint) for each in joint]
        weights = {word: literal[word] * listener[word][0] ** group.rationality for word in allowed}
        total += math.log(weights[said] / sum(weights.values()) * sum(literal.values()))
        posterior = listener[said]
    return total


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from([0.5, 1.0, 4.0]), st.sampled_from([0.0, 0.7]), st.integers(1, 3))
def test_a_wide_beam_ranks_all_captions_by_the_equations(
    seed: int, rationality: float, penalty: float, others: int
) -> None:
    model = captioner(seed)
    group = company([list(range(1 + others))], rationality, seed)
    everything = [words for length in (1, 2, 3) for words in product(WORDS, repeat=length)]
    scored = sorted(
        everything,
        key=lambda words: pragmatic_score(model, group, words, longest=3) / (len(words) + 1) ** penalty,
        reverse=True,
    )
    decoded = pragmatic(model, group, width=60, max_words=3, length_penalty=penalty)
    assert captions_of(decoded) == scored


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(0, 20), st.integers(1, 5), st.sampled_from([(), (WORDS[1],), (WORDS[0], WORDS[2])]))
def test_log_probabilities_are_the_captioners_own_of_the_target(
    seed: int, rationality: float, width: int, prefix: tuple[int, ...]
) -> None:
    model, group = captioner(seed), company([[1, 0], [2, 1], [0, 2]], rationality, seed)
    decoded = pragmatic(model, group, width=width, max_words=4, rules=(begin_with(TEXT, prefix),))
    start = torch.full_like(decoded.tokens[:, :, :1], VOCABULARY.start)
    own = group.vision.select(group.rows[:, 0])
    logits = model.predict(own, torch.cat([start, decoded.tokens[:, :, :-1]], 2)).logits
    steps = logits.log_softmax(-1).gather(3, decoded.tokens.unsqueeze(3)).squeeze(3)
    real = decoded.log_probabilities.isfinite()
    torch.testing.assert_close((steps * decoded.mask).sum(2)[real], decoded.log_probabilities[real])
    assert real.any(1).all()
    assert (decoded.tokens[~decoded.mask & real.unsqueeze(2)] == VOCABULARY.pad).all()
    assert (decoded.tokens[:, :, : len(prefix)] == torch.tensor(prefix, dtype=torch.long)).all()


def same(one: Decoded, other: Decoded) -> None:
    """As far as captions exist; what fills a beam up has no meaning."""
    real = other.log_probabilities.isfinite()
    torch.testing.assert_close(one.log_probabilities, other.log_probabilities)
    assert torch.equal(one.tokens[real], other.tokens[real])
    assert torch.equal(one.mask[real], other.mask[real])


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(1, 5), st.sampled_from([0.0, 0.6]))
def test_without_rationality_it_is_a_beam(seed: int, width: int, longest: int, penalty: float) -> None:
    model, group = captioner(seed), company([[0, 1, 2], [2, 0, 1], [1, 0, 2]], 0.0, seed)
    decoded = pragmatic(model, group, width=width, max_words=longest, length_penalty=penalty)
    own = group.vision.select(group.rows[:, 0])
    same(decoded, beam(model, own, width=width, max_words=longest, length_penalty=penalty))


@pytest.mark.parametrize("others", [[], [-1, -1], [0], [0, -1, 0]])
@pytest.mark.parametrize("rationality", [0.5, 3.0, 1e6])
def test_nobody_else_or_only_twins_leave_the_beam_as_it_is(others: list[int], rationality: float) -> None:
    model, group = captioner(5), company([[0, *others]], rationality)
    decoded = pragmatic(model, group, width=4, max_words=5, length_penalty=0.6)
    same(decoded, beam(model, group.vision, width=4, max_words=5, length_penalty=0.6))


@settings(max_examples=15, deadline=None)
@given(seeds, st.floats(0.5, 5))
def test_nobody_is_told_from_where_there_is_none(seed: int, rationality: float) -> None:
    model, vision = captioner(seed), see(4, seed)
    fewer, padded = (torch.tensor(rows) for rows in ([[1, 2], [3, 1]], [[1, -1, 2], [3, 1, -1]]))
    found = pragmatic(model, Company(vision, fewer, rationality), width=4, max_words=4)
    same(pragmatic(model, Company(vision, padded, rationality), width=4, max_words=4), found)


@settings(max_examples=15, deadline=None)
@given(seeds, st.floats(0.1, 5), st.permutations([1, 2, 3]))
def test_neither_the_order_of_distractors_nor_other_targets_matter(
    seed: int, rationality: float, order: list[int]
) -> None:
    model = captioner(seed)
    together = pragmatic(
        model, company([[0, 1, 2, 3], [3, 2, -1, 0]], rationality, seed), width=3, max_words=5
    )
    alone = pragmatic(model, company([[0, *order]], rationality, seed), width=3, max_words=5)
    assert captions_of(alone) == captions_of(together)
    torch.testing.assert_close(alone.log_probabilities, together.log_probabilities[:1])


@dataclass(frozen=True)
class Pooled:
    """What a captioner of fixed words remembers: the picture."""

    rows: Tensor

    def select(self, rows: Tensor) -> Pooled:
        return Pooled(self.rows[rows])


class Fixed(Captioner[Pooled]):
    """Says words with the logits that stand in the picture itself, whatever was said before."""

    def __init__(self) -> None:
        super().__init__()
        self.text = TEXT
        self.needs = frozenset({"pooled"})

    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        raise NotImplementedError

    def begin(self, vision: Vision) -> Pooled:
        return Pooled(vision.pooled)

    def step(self, token: Tensor, state: Pooled) -> tuple[Tensor, Pooled]:
        return state.rows, state


def fixed(*logits: dict[str, float], other: float = 0.0) -> Vision:
    pooled = torch.full((len(logits), len(TEXT)), other)
    for row, words in enumerate(logits):
        for word, value in words.items():
            pooled[row, VOCABULARY.end if word == "." else VOCABULARY.id(word)] = value
    return Vision(torch.zeros(len(logits), 0, 1), pooled, torch.zeros(len(logits), 0))


def first_word(vision: Vision, rationality: float) -> str:
    group = Company(vision, torch.arange(len(vision)).unsqueeze(0), rationality)
    decoded = pragmatic(Fixed(), group, width=1, max_words=1)
    return TEXT.decode(decoded.tokens[0, 0].tolist())


def test_the_more_rational_the_rarer_the_word() -> None:
    # "a" fits everything, "b" the target better than the other, "c" the target alone.
    vision = fixed({"a": 3.0, "b": 2.0, "c": -1.0}, {"a": 3.0, "b": 0.5, "c": -9.0}, other=-9.0)
    assert [first_word(vision, rationality) for rationality in (0.0, 2.0, 30.0)] == ["a", "b", "c"]


@pytest.mark.parametrize("rationality", [0.3, 1.0, 1e4, 1e30])
@pytest.mark.parametrize("extreme", [50.0, 1e4, 1e30, math.inf])
@pytest.mark.parametrize("of_third", [0.0, -1.0])  # "c" fits one picture, or none
def test_extreme_logits_give_captions_and_numbers(
    rationality: float, extreme: float, of_third: float
) -> None:
    last = of_third * extreme if of_third else 0.0
    vision = fixed({"a": 0.0, "b": -1.0, "c": -extreme}, {"a": 0.0, "b": -extreme, "c": last}, {"c": last})
    for pictures in (vision, Vision(vision.grid, vision.pooled.double(), vision.classes)):
        group = Company(pictures, torch.tensor([[0, 1, 2], [1, 2, -1], [2, 0, 1]]), rationality)
        # Wider than there are captions at first: words that no picture allows fill the beam up.
        decoded = pragmatic(Fixed(), group, width=len(TEXT), max_words=3, length_penalty=0.6)
        assert not decoded.log_probabilities.isnan().any()
        assert (decoded.log_probabilities <= 0).all()
        assert decoded.log_probabilities[:, :2].isfinite().all()
        assert all(
            len(set(captions_of(decoded, target))) == len(captions_of(decoded, target)) for target in range(3)
        )


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0, 1e6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_words_share_what_the_captioner_gives_them(
    seed: int, rationality: float, forbidden: list[bool]
) -> None:
    torch.manual_seed(seed)
    literal = (torch.randn(2, 3, 6, dtype=torch.float64) * 5).log_softmax(-1)
    literal = literal.masked_fill(torch.tensor(forbidden), -torch.inf)
    listener = torch.rand(2, 3, 6, dtype=torch.float64).log()
    found = weigh(literal, listener, rationality)
    assert torch.equal(found.isneginf(), literal.isneginf())
    torch.testing.assert_close(found.exp().sum(-1), literal.exp().sum(-1))


@pytest.mark.parametrize("rationality", [-1.0, math.inf, math.nan])
def test_what_is_no_rationality(rationality: float) -> None:
    with pytest.raises(TellapartError, match="rationality"):
        company([[0, 1]], rationality)


@pytest.mark.parametrize("rows", [[[0, 3]], [[-1, 0]], [[0, -2]], [[]]])
def test_rows_that_are_of_no_picture(rows: list[list[int]]) -> None:
    with pytest.raises(TellapartError, match="3 pictures"):
        Company(see(3), torch.tensor(rows, dtype=torch.long), 1.0)
