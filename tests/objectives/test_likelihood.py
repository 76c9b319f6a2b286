"""Likelihood objectives against what a person computes by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tests.objectives.material import context, doubled, learner
from torch.nn.functional import pad

from tellapart.captioner_learner import CaptionerLearner
from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.objectives.compose import token_objective
from tellapart.objectives.likelihood import build_mle, build_mrnn_cost, build_unlikelihood, draw_words
from tellapart.objectives.schedules import ScheduleConfig
from tellapart.objectives.settings.likelihood import MLEConfig, MRNNCostConfig, UnlikelihoodConfig
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch, Context, Vision

VOCABULARY = Vocabulary(("a", "b", "c"))


@cache
def made() -> CaptionerLearner:
    return learner("captioner.dropout=0.0")


def captioner() -> MRNN:
    torch.manual_seed(0)
    config = MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6)
    return MRNN(config, text=WordText(VOCABULARY, PRESETS["mrnn"]), image_width=3).double().eval()


def batch() -> Batch:
    """Two images; the second has one caption only."""
    captions = [[["a", "b"], ["c"]], [["b", "b", "a"]]]
    tokens = torch.full((2, 2, 5), VOCABULARY.pad)
    mask = torch.zeros(2, 2, 5, dtype=torch.bool)
    for image, group in enumerate(captions):
        for place, words in enumerate(group):
            ids = VOCABULARY.encode(words)
            tokens[image, place, : len(ids)] = torch.tensor(ids)
            mask[image, place, : len(ids)] = True
    pooled = torch.rand(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    seen = Vision(pooled.new_zeros(2, 0, 1), pooled, pooled.new_zeros(2, 0))
    return Batch(("x", "y"), seen, tokens, mask, rows=(7, 3), places=((1, 0), (0,)))


def bits_by_hand(model: MRNN, some: Batch) -> list[float]:
    """-log2 P(w_n | w_1..n-1, I) of every word and end sign, one step at a time."""
    bits = []
    for image in range(2):
        vision = some.vision.select(torch.tensor([image]))
        for caption, there in zip(some.tokens[image], some.mask[image], strict=True):
            state = model.begin(vision)
            ids = caption[there].tolist()
            for given_token, label in pairwise(ids):
                logits, state = model.step(torch.tensor([given_token]), state)
                exps = np.exp(logits[0].detach().numpy())
                bits.append(-math.log2(exps[label] / exps.sum()))
    return bits


def test_mrnn_cost_is_equation_6() -> None:
    model, some = captioner(), batch()
    bits = bits_by_hand(model, some)
    assert len(bits) == 3 + 2 + 4  # words and end signs
    norm = sum(float((weight.detach() ** 2).sum()) for weight in model.parameters())
    loss = build_mrnn_cost(MRNNCostConfig(l2=0.01), made().supplies)(model, some, context())
    assert loss.total.item() == pytest.approx(sum(bits) / len(bits) + 0.01 * norm, abs=1e-12)
    assert loss.parts == pytest.approx({"bits": sum(bits) / len(bits), "l2": 0.01 * norm})


def test_mle_is_the_same_in_nats_without_the_norm() -> None:
    model, some = captioner(), batch()
    nats = [value * math.log(2) for value in bits_by_hand(model, some)]
    loss = build_mle(MLEConfig(), made().supplies)(model, some, context())
    assert loss.total.item() == pytest.approx(sum(nats) / len(nats), abs=1e-12)


def test_labels_are_smoothed_by_as_much_as_is_asked_for() -> None:
    model, some = captioner(), batch()
    found = build_mle(MLEConfig(label_smoothing=0.3), made().supplies)(model, some, context()).total
    logits, mask = model.predict(some.vision, some.tokens[:, :, :-1]).logits, some.mask[:, :, 1:]
    labels = some.tokens[:, :, 1:]
    expected = torch.nn.functional.cross_entropy(logits[mask], labels[mask], label_smoothing=0.3)
    torch.testing.assert_close(found, expected)


def test_the_shift_pairs_each_word_with_the_one_before() -> None:
    seen: list[tuple[list[int], list[bool]]] = []

    def spy(logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen.append((labels[0, 0].tolist(), mask[0, 0].tolist()))
        return logits.sum(-1) * 0

    token_objective(spy, name="spy")(captioner(), batch(), context())
    a, b = VOCABULARY.id("a"), VOCABULARY.id("b")
    assert seen == [([a, b, VOCABULARY.end, VOCABULARY.pad], [True, True, True, False])]


@contextmanager
def reading(network: AnyCaptioner) -> Iterator[list[torch.Tensor]]:
    """What a captioner is given to read."""
    read: list[torch.Tensor] = []
    embedding = network.get_submodule("embedding_one")
    handle = embedding.register_forward_pre_hook(lambda module, tokens: read.append(tokens[0]))
    yield read
    handle.remove()


def test_dropped_words_are_read_as_unknown_and_still_expected() -> None:
    some, network = made().batch(0), made().network
    assert isinstance(network.text, WordText)
    objective = build_mle(MLEConfig(word_dropout=1.0), made().supplies)
    with reading(network) as read:
        loss = objective(network.train(), some, context())
        objective(network.eval(), some, context())
    given = read[0].view_as(some.tokens[:, :, 1:])
    words = some.mask[:, :, 1:].clone()
    words[:, :, 0] = False
    assert words.any()
    assert (given[words] == network.text.vocabulary.unknown).all()
    assert (given[~words] == some.tokens[:, :, :-1][~words]).all()
    logits = network.predict(some.vision, given).logits
    labels, mask = some.tokens[:, :, 1:], some.mask[:, :, 1:]
    torch.testing.assert_close(loss.total, mle(logits, labels, mask).sum() / mask.sum())
    assert torch.equal(read[1].view_as(given), some.tokens[:, :, :-1]), "nothing is dropped but in training"


def test_word_dropout_follows_its_schedule() -> None:
    some, network = made().batch(0), made().network.train()
    schedule = ScheduleConfig(kind="linear", start=0, end=1, epochs=1)
    objective = build_mle(MLEConfig(word_dropout=schedule), made().supplies)
    given = some.tokens[:, :, :-1]
    with reading(network) as read:
        for step in (0, made().steps_per_epoch // 2, made().steps_per_epoch):
            objective(network, some, Context(step, torch.Generator(), 1))
    shares = [int((tokens.view_as(given) != given).sum()) / int(some.mask[:, :, 2:].sum()) for tokens in read]
    assert shares[0] == 0
    assert 0.2 < shares[1] < 0.8
    assert shares[2] == 1


def test_an_image_drops_the_same_words_wherever_it_stands() -> None:
    mask = torch.zeros(3, 2, 9, dtype=torch.bool)
    for image, lengths in enumerate([(9, 4), (5, 0), (6, 8)]):
        for caption, length in enumerate(lengths):
            mask[image, caption, :length] = True
    sources = [context().of_image(row) for row in (4, 9, 2)]
    whole = draw_words(mask, 0.5, sources)
    turned = draw_words(pad(mask.flip(0), (0, 3, 0, 1)), 0.5, [context().of_image(row) for row in (2, 9, 4)])
    assert torch.equal(turned[:, :2, :8].flip(0), whole)
    assert not turned[:, :, 8:].any()
    assert not whole[:, :, 0].any()
    assert 3 < whole.sum() < 20
    other = draw_words(mask, 0.5, [context(step=1).of_image(row) for row in (4, 9, 2)])
    assert not torch.equal(other, whole)


def test_weighed_captions_count_by_how_little_they_fit_other_images() -> None:
    some, network = made().batch(0), made().network.eval()
    found = build_mle(MLEConfig(caption_weights="cider-btw", neighbours=3), made().supplies)(
        network, some, context()
    )
    likeness = made().supplies.likeness(3)
    losses = mle(
        network.predict(some.vision, some.tokens[:, :, :-1]).logits,
        some.tokens[:, :, 1:],
        some.mask[:, :, 1:],
    )
    total, weights = 0.0, []
    for image, (row, places) in enumerate(zip(some.rows, some.places, strict=True)):
        for caption, place in enumerate(places):
            weights.append(1.5 - 0.75 * float(likeness[row][place]) / float(likeness[row].max()))
            total += weights[-1] * losses[image, caption].sum().item()
    assert found.total.item() == pytest.approx(total / int(some.mask[:, :, 1:].sum()), rel=1e-5)
    assert max(weights) - min(weights) > 0.1
    even = MLEConfig(caption_weights="cider-btw", neighbours=3, weight_most=1.0, weight_fall=0.0)
    plain = build_mle(MLEConfig(), made().supplies)(network, some, context()).total
    torch.testing.assert_close(build_mle(even, made().supplies)(network, some, context()).total, plain)


@pytest.mark.parametrize("candidates", ["previous", "frequent"])
def test_unlikelihood_adds_a_weighed_penalty_to_the_likelihood(candidates: str) -> None:
    some, network = doubled(made().batch(0)), made().network.double().eval()
    config = UnlikelihoodConfig.model_validate({"candidates": candidates, "frequent": 2, "weight": 0.5})
    loss = build_unlikelihood(config, made().supplies)(network, some, context())
    listed = set(made().supplies.frequent_words(2))
    assert len(listed) == 2
    p = network.predict(some.vision, some.tokens[:, :, :-1]).logits.softmax(-1)
    penalty, count = 0.0, 0
    for image, caption, place in some.mask[:, :, 1:].nonzero().tolist():
        said = some.tokens[image, caption, 1:].tolist()
        unwanted = (listed if candidates == "frequent" else set(said[:place])) - {said[place]}
        penalty -= sum(math.log1p(-p[image, caption, place, word].item()) for word in unwanted)
        count += 1
    assert loss.parts["unlikelihood"] == pytest.approx(0.5 * penalty / count, rel=1e-9)
    assert loss.parts["unlikelihood"] > 0
    plain = build_mle(MLEConfig(), made().supplies)(network, some, context())
    assert loss.total.item() == pytest.approx(plain.total.item() + loss.parts["unlikelihood"], rel=1e-9)
    made().network.float()


def test_the_penalty_follows_its_schedule() -> None:
    some, network = made().batch(0), made().network.eval()
    schedule = ScheduleConfig(kind="linear", start=0, end=2, epochs=1)
    objective = build_unlikelihood(UnlikelihoodConfig(weight=schedule), made().supplies)
    full = build_unlikelihood(UnlikelihoodConfig(weight=1.0), made().supplies)(network, some, context())
    for step, weight in ((0, 0.0), (made().steps_per_epoch, 2.0)):
        found = objective(network, some, Context(step, torch.Generator()))
        assert found.parts["unlikelihood"] == pytest.approx(weight * full.parts["unlikelihood"])


def test_what_cannot_be_is_refused_with_a_hint() -> None:
    for settings in (
        {"word_dropout": 1.5},
        {"word_dropout": {"kind": "linear", "end": 1.5}},
        {"label_smoothing": 1.0},
        {"caption_weights": "cider"},
        {"weight_most": 0.5},
        {"neighbours": 0},
    ):
        with pytest.raises(ValidationError):
            MLEConfig.model_validate(settings)
    with pytest.raises(TellapartError, match="wants 500 neighbours"):
        build_mle(MLEConfig(caption_weights="cider-btw", neighbours=500), made().supplies)
    pieces = replace(made().ready.saved, captioner=copy_with_pieces())
    other = replace(made().supplies, ready=replace(made().ready, saved=pieces))
    with pytest.raises(TellapartError, match="none of which is the unknown word") as caught:
        build_mle(MLEConfig(word_dropout=0.1), other)
    assert caught.value.hint


def copy_with_pieces() -> AnyCaptioner:
    from tests.captioners.test_tokenizer_text import TEXTS

    model = captioner()
    model.text = TEXTS["bert"]
    return model
