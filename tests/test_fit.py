"""The fit of a captioner to given captions, where the right answer is known beforehand."""

from __future__ import annotations

import math

import pytest
import torch

from tellapart.corpus import Corpus
from tellapart.fit import Fit, measure_fit, perplexity
from tellapart.preparation import Ready, prepare
from tellapart.recipe import load_recipe


@pytest.fixture(scope="module")
def ready() -> Ready:
    sizes = ("captioner.embedding_one=4", "captioner.embedding_two=4", "captioner.multimodal=4")
    recipe = load_recipe("mrnn-shapes", changes=["data.scenes=60", *sizes])
    return prepare(recipe, watch=lambda done, total: None)


def set_output(ready: Ready, bias: torch.Tensor) -> None:
    with torch.no_grad():
        ready.saved.captioner.get_parameter("output.weight").zero_()
        ready.saved.captioner.get_parameter("output.bias").copy_(bias)


def count_tokens(corpus: Corpus) -> int:
    return sum(len(tokens) - 1 for group in corpus.captions for tokens in group)


def test_who_expects_all_words_alike_has_the_vocabulary_as_perplexity(ready: Ready) -> None:
    size = len(ready.saved.captioner.text)
    set_output(ready, torch.zeros(size))
    assert measure_fit(ready.saved.captioner, ready.val_set, images_per_batch=4).perplexity == pytest.approx(
        size
    )


def test_who_always_expects_the_end_is_right_once_a_caption(ready: Ready) -> None:
    text = ready.saved.captioner.text
    bias = torch.zeros(len(text))
    bias[text.end] = 5
    set_output(ready, bias)
    fit = measure_fit(ready.saved.captioner, ready.val_set, images_per_batch=5)
    captions, tokens = sum(map(len, ready.val_set.captions)), count_tokens(ready.val_set)
    assert fit.accuracy == pytest.approx(captions / tokens)
    total = math.exp(5) + len(text) - 1
    nats = captions * (math.log(total) - 5) + (tokens - captions) * math.log(total)
    assert fit.loss == pytest.approx(nats / tokens, rel=1e-6)
    assert fit.perplexity == pytest.approx(perplexity(nats, tokens), rel=1e-6)


def test_measuring_does_not_depend_on_batches_and_leaves_the_mode(ready: Ready) -> None:
    captioner = ready.saved.captioner.train()
    fits = [measure_fit(captioner, ready.val_set, images_per_batch=size) for size in (1, 6)]
    assert fits[0].loss == pytest.approx(fits[1].loss, rel=1e-6)
    assert captioner.training


def test_perplexity_is_equation_5() -> None:
    bits = [3.0, 1.0, 2.0]
    assert perplexity(sum(bits) * math.log(2), 3) == pytest.approx(2 ** (sum(bits) / 3))


@pytest.mark.parametrize(("metric", "up"), [("loss", False), ("perplexity", False), ("accuracy", True)])
def test_better_is_lower_but_for_accuracy(metric: str, up: bool) -> None:
    fit = Fit(loss=0.5, perplexity=0.5, accuracy=0.5)
    assert fit.better(metric, None)
    assert fit.better(metric, 0.4) is up
    assert fit.better(metric, 0.6) is not up
    assert not fit.better(metric, 0.5)
