"""Scores of all pairs: those of a loop over pairs, with less work, within the memory allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.retrievers.likelihood.late import LateScorer, aligned, spend
from tellapart.retrievers.likelihood.pairs import score_blocks, score_pairs
from tellapart.retrievers.likelihood.stepwise import StepScorer
from tellapart.testing import Subject, prepare
from tellapart.types import AnyCaptioner, MeetsLate, Vision
from tellapart.vision.traits import EncoderTraits

TINY = [name for name in CAPTIONERS.names() if "tiny" in CAPTIONERS.get(name).presets]
LATE = {"mrnn", "mrnn-no-emb-input", "mrnn-one-layer-emb", "mrnn-emb-one-input", "mrnn-shared", "rnn-base"}

Captions = Sequence[Sequence[int]]


@cache
def subject(name: str) -> Subject:
    return prepare(name)


def some_captions(captioner: AnyCaptioner, count: int = 14) -> Captions:
    """Of all lengths, the empty one among them; some equal, many that begin alike."""
    random = np.random.default_rng(5)
    text = captioner.text
    words = [token for token in range(len(text)) if token not in (text.start, text.end, text.pad)]
    found = [
        [text.start, *random.choice(words[:3], length).tolist(), text.end]
        for length in random.integers(0, 6, count)
    ]
    return [*found, found[0], [text.start, text.end]]


@torch.no_grad()
def pair_by_pair(captioner: AnyCaptioner, vision: Vision, captions: Captions) -> Float[np.ndarray, "c p"]:
    scores = np.empty((len(captions), len(vision)))
    for picture in range(len(vision)):
        one = vision.select(torch.tensor([picture]))
        for place, caption in enumerate(captions):
            tokens = torch.tensor(caption)
            expected = captioner.predict(one, tokens[None, None, :-1]).logits[0, 0].log_softmax(-1)
            scores[place, picture] = expected[torch.arange(len(caption) - 1), tokens[1:]].sum()
    return scores


@pytest.mark.parametrize("name", TINY)
def test_agrees_with_a_loop_over_all_pairs(name: str) -> None:
    captioner, vision = subject(name).captioner, subject(name).vision
    captions = some_captions(captioner)
    scores = score_pairs(captioner, [vision], captions)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, pair_by_pair(captioner, vision, captions), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["mrnn", "adaptive"])
def test_agrees_in_single_precision(name: str) -> None:
    subject = prepare(name)
    captioner, vision = subject.captioner.float(), subject.vision
    single = Vision(vision.grid.float(), vision.pooled.float(), vision.classes.float())
    captions = some_captions(captioner)
    scores = score_pairs(captioner, [single], captions)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, pair_by_pair(captioner, single, captions), rtol=0, atol=1e-4)


def test_who_meets_late_is_known() -> None:
    late = {
        name
        for name in TINY
        if isinstance(captioner := subject(name).captioner, MeetsLate) and captioner.meets_late
    }
    assert late == LATE


@pytest.mark.parametrize("name", ["mrnn", "neuraltalk"])
def test_pictures_come_in_blocks_of_any_size(name: str) -> None:
    captioner, vision = subject(name).captioner, subject(name).vision
    many = vision.select(torch.arange(19) % len(vision))
    captions = some_captions(captioner)
    whole = score_pairs(captioner, [many], captions)
    told: list[tuple[int, int]] = []
    pieces = [many.select(torch.arange(19)[first : first + 7]) for first in (0, 7, 14)]
    found = score_pairs(captioner, pieces, captions, watch=lambda done, total: told.append((done, total)))
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-9)
    assert told == [(7, 0), (14, 0), (19, 0)]


def test_blocks_are_taken_one_at_a_time() -> None:
    captioner, vision = subject("mrnn").captioner, subject("mrnn").vision
    asked = 0

    def blocks() -> Iterator[Vision]:
        nonlocal asked
        while True:
            asked += 1
            yield vision

    found = score_blocks(captioner, blocks(), some_captions(captioner))
    assert next(found).shape == (16, len(vision))
    assert asked == 1


def test_training_mode_is_left_as_it_was_and_has_no_say() -> None:
    subject = prepare("mrnn", settings={"dropout": 0.5})
    captions = some_captions(subject.captioner)
    expected = score_pairs(subject.captioner, [subject.vision], captions)
    subject.captioner.train()
    again = score_pairs(subject.captioner, [subject.vision], captions)
    assert subject.captioner.training
    np.testing.assert_array_equal(again, expected)


class Counting(MRNN):
    """An m-RNN that notes what it reads, and what the last layer is given."""

    def note(self) -> Counting:
        self.heard: list[int] = []
        self.joined = 0
        return self

    def hear(
        self, token: Int[Tensor, " r"], before: Float[Tensor, "r d"] | None
    ) -> tuple[Float[Tensor, "r m"], Float[Tensor, "r d"]]:
        self.heard += token.tolist()
        return super().hear(token, before)

    def join(self, heard: Float[Tensor, "*p #b m"], seen: Float[Tensor, "b m"]) -> Float[Tensor, "*p b d"]:
        found = super().join(heard, seen)
        self.joined += found[..., 0].numel()
        return found


def test_each_beginning_is_read_once_whatever_the_pictures() -> None:
    vision, text = subject("mrnn").vision, subject("mrnn").captioner.text
    sizes = MRNNConfig(embedding_one=4, embedding_two=6, multimodal=8)
    counting = Counting(sizes, text=text, image_width=6).double().note()
    captions = some_captions(counting)
    score_pairs(counting, [vision, vision], captions)
    beginnings = {tuple(caption[:length]) for caption in captions for length in range(1, len(caption))}
    assert sorted(counting.heard) == sorted(beginning[-1] for beginning in beginnings)
    assert counting.joined == len(beginnings) * 2 * len(vision)
    assert len(beginnings) < sum(len(caption) - 1 for caption in captions) / 2


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the most bytes that any tensor of logits has."""

    def __init__(self, words: Sequence[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.words, self.bytes = words, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.dim() > 1 and result.size(-1) in self.words:
            self.bytes = max(self.bytes, result.numel() * result.element_size())
        return result


@pytest.mark.parametrize("name", ["mrnn", "neuraltalk"])
def test_logits_stay_within_the_memory_allowed(name: str) -> None:
    words = tuple(f"word{number}" for number in range(1013))
    text = WordText(Vocabulary(words), PRESETS["mrnn"])
    traits = EncoderTraits(name="testing", identity="testing", shapes={"pooled": (6,)})
    config = CAPTIONERS.get(name).configure({}, preset="tiny")
    captioner = build_captioner(name, config, text=text, traits=traits).eval()
    vision = Vision(torch.zeros(9, 0, 0), torch.rand(9, 6), torch.zeros(9, 0))
    random = np.random.default_rng(2)
    captions = [[text.start, *random.integers(4, 1017, 5).tolist(), text.end] for _ in range(60)]
    allowed = 40 * 1024 * 4
    scorer = LateScorer if name == "mrnn" else StepScorer
    with torch.no_grad():
        roomy: Any = scorer(captioner, captions, logits=2**26)  # type: ignore[arg-type]
        narrow: Any = scorer(captioner, captions, logits=allowed)  # type: ignore[arg-type]
        pieces = torch.arange(9).tensor_split(9 // narrow.together + 1)
        with Largest((1017, 1024)) as largest:
            found = torch.cat([narrow(vision.select(some)) for some in pieces], dim=1)
        assert 0 < largest.bytes <= allowed
        expected = torch.cat([roomy(vision.select(some)) for some in pieces], dim=1)
    assert torch.allclose(found, expected, rtol=0, atol=1e-4)


@given(st.lists(st.floats(-3e4, 3e4, width=32), min_size=1, max_size=9))
def test_sums_of_exponentials_are_safe(values: list[float]) -> None:
    logits = torch.tensor([values], dtype=torch.float64)
    expected = logits.logsumexp(-1)
    assert torch.allclose(spend(logits.clone()), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=20)
@given(words=st.integers(1, 40))
def test_added_words_are_never_expected(words: int) -> None:
    layer = torch.nn.Linear(3, words)
    weight, bias = aligned(layer)
    hidden = torch.randn(5, 3)
    expected = (hidden @ weight.T + bias).log_softmax(-1)
    assert expected.size(1) % 16 == 0
    assert torch.allclose(expected[:, :words], layer(hidden).log_softmax(-1), atol=1e-5)
    assert bool((expected[:, words:] == -torch.inf).all())


def test_who_looks_at_no_picture_says_the_same_of_all() -> None:
    captioner, vision = subject("rnn-base").captioner, subject("rnn-base").vision
    scores = score_pairs(captioner, [vision], some_captions(captioner))
    assert (scores == scores[:, :1]).all()
    assert len(np.unique(scores[:, 0])) > 5


def test_bad_input_is_refused() -> None:
    transformer, vision = subject("transformer").captioner, subject("transformer").vision
    text = transformer.text
    with pytest.raises(TellapartError, match="there are no captions"):
        score_pairs(transformer, [vision], [])
    with pytest.raises(TellapartError, match="there are no pictures"):
        score_pairs(transformer, [], [[text.start, text.end]])
    with pytest.raises(TellapartError, match="has 257 tokens, and the captioner reads 256"):
        score_pairs(transformer, [vision], [[text.start, *[1] * 256, text.end]])
    with pytest.raises(TellapartError, match=r"caption 1 \(counted from 0\) has no tokens but"):
        score_pairs(transformer, [vision], [[text.start, text.end], [text.start]])
