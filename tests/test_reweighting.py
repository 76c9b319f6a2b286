"""How special captions are: CIDErBtw against the measure, and draws that prefer what fits few pictures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import learner
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioner_learner import CaptionerLearner
from tellapart.corpus import CaptionDraw
from tellapart.data.batches import prefer_captions
from tellapart.errors import TellapartError
from tellapart.metrics.cider import cider_pairs
from tellapart.metrics.frequencies import CorpusFrequencies
from tellapart.metrics.material import owners
from tellapart.metrics.sentences import Lexicon
from tellapart.objectives.supplies import Places
from tellapart.retrievers.entropy import retrieval_entropy
from tellapart.retrievers.loading import load_retriever
from tellapart.reweighting import caption_preferences
from tellapart.types import Batch
from tellapart.world import World


@pytest.fixture(scope="module")
def made() -> CaptionerLearner:
    return learner()


@pytest.fixture(scope="module")
def dual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_dual(tmp_path_factory.mktemp("dual") / "tiny", ["a red circle and the blue square"])


def test_ciderbtw_is_the_measure_against_the_captions_of_the_neighbours(made: CaptionerLearner) -> None:
    """The measure, asked for one caption at a time, with the document frequencies of all captions."""
    images, text = made.supplies.training_set, made.network.text
    found = made.supplies.likeness(3)
    assert [len(values) for values in found] == [len(images.captions(row)) for row in range(len(images))]
    near = images.nearest(3)
    words = [[text.decode(caption).split() for caption in images.captions(row)] for row in range(len(images))]
    for row in (0, 17, len(images) - 1):
        references = [caption for other in near[row] for caption in words[other]]
        for place, caption in enumerate(words[row]):
            lexicon = Lexicon()
            candidate = lexicon.whole_tokens([caption], np.array([0]))
            against = lexicon.whole_tokens(references, np.zeros(len(references), np.int64))
            everything = lexicon.whole_tokens([one for group in words for one in group], owners(words))
            frequencies = CorpusFrequencies("train", len(words), everything)
            by_hand = cider_pairs(candidate, against, frequencies).clipped.mean()
            assert found[row][place] == pytest.approx(by_hand, abs=1e-5)
    assert max(values.max() for values in found) > 0


def test_images_without_captions_have_no_ciderbtw_and_lend_none(made: CaptionerLearner) -> None:
    captions = list(made.ready.train_set.captions)
    bare = [3, *made.supplies.training_set.nearest(2)[5].tolist()]  # with all neighbours of image 5
    for row in bare:
        captions[row] = []
    train_set = replace(made.ready.train_set, captions=captions)
    supplies = replace(made.supplies, ready=replace(made.ready, train_set=train_set))
    found = supplies.likeness(2)
    assert all(len(found[row]) == 0 for row in bare)
    assert (found[5] == 0).all()
    assert len(found[5]) == len(captions[5])
    assert max(values.max(initial=0) for values in found) > 0


def exact(preference: list[float], wanted: int) -> dict[frozenset[int], float]:
    """The chance of each set, drawn one after the other in proportion to exp(preference) of those left."""
    weights = np.exp(preference)
    chances: Counter[frozenset[int]] = Counter()
    for order in permutations(range(len(preference)), wanted):
        left, chance = float(weights.sum()), 1.0
        for place in order:
            chance *= weights[place] / left
            left -= weights[place]
        chances[frozenset(order)] += chance  # type: ignore[assignment]
    return dict(chances)


def test_captions_are_drawn_in_proportion_to_their_weights_without_repeating() -> None:
    preference, rows = [0.0, -1.0, 0.7, -2.0], 4000
    seen = Counter(
        frozenset(prefer_captions(np.array(preference), wanted=2, seed=1, epoch=0, row=row))
        for row in range(rows)
    )
    for chosen, chance in exact(preference, 2).items():
        assert len(chosen) == 2
        assert abs(seen[chosen] / rows - chance) < 5 * (chance * (1 - chance) / rows) ** 0.5


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(0, 9), st.integers(0, 999), st.integers(1, 6), st.integers(0, 6))
def test_draws_are_a_function_of_seed_epoch_and_row(
    seed: int, epoch: int, row: int, wanted: int, count: int
) -> None:
    preference = np.linspace(-1, 1, count)
    first = prefer_captions(preference, wanted=wanted, seed=seed, epoch=epoch, row=row)
    assert first == prefer_captions(preference, wanted=wanted, seed=seed, epoch=epoch, row=row)
    assert len(first) == len(set(first)) == min(wanted, count)
    if count <= wanted:
        assert first == list(range(count))
    draw = CaptionDraw(wanted, seed, epoch, [preference] * (row + 1))
    assert draw.places([object()] * count, row) == first


def test_preferences_are_minus_the_retrieval_entropy(dual: Path) -> None:
    judge = load_retriever(dual)
    generator = np.random.default_rng(0)
    pictures = generator.normal(size=(9, judge.width)).astype(np.float32)
    pictures /= np.linalg.norm(pictures, axis=1, keepdims=True)
    captions = [("a red circle", "the square"), (), ("a red circle",)]
    places = Places("tiny", pictures, judge.embed_texts)
    found = caption_preferences(captions, places, temperature=0.1, spread=0.5)
    texts = judge.embed_texts(["a red circle", "the square"])
    entropy = retrieval_entropy(texts, pictures, temperature=0.1)
    assert [len(values) for values in found] == [2, 0, 1]
    assert found[0] == pytest.approx(-2 * entropy)
    assert found[2] == pytest.approx(-2 * entropy[:1])


def test_an_entropy_over_one_picture_is_refused(dual: Path) -> None:
    judge = load_retriever(dual)
    places = Places("tiny", np.ones((1, judge.width), np.float32), judge.embed_texts)
    with pytest.raises(TellapartError, match="there is one training picture") as caught:
        caption_preferences([("a", "b")], places, temperature=0.1, spread=1.0)
    assert "training.caption_draw = 'uniform'" in caught.value.hint


def test_distinctive_captions_are_trained_on_more_often(dual: Path) -> None:
    changes = ("training.caption_draw=distinctive", f"training.draw_by={dual}", "training.draw_spread=0.002")
    some = learner(*changes, "training.captions_per_image=1")
    assert some._preferences is not None
    chosen: list[float] = []
    everything = np.concatenate([values - values.mean() for values in some._preferences])
    for step in range(some.steps_per_epoch * 2):
        (batch,) = some.shares(step, World())
        assert isinstance(batch, Batch)
        for row, places in zip(batch.rows, batch.places, strict=True):
            values = some._preferences[row]
            chosen += [float(values[place] - values.mean()) for place in places]
        assert some.tokens(step) == batch.totals().tokens
    assert np.mean(chosen) > everything.mean() + 0.5 * everything.std()
    assert load_retriever(dual).identity in some.supplies.taught_by
    assert learner()._preferences is None
