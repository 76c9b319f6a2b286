"""What holds for every registered measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tellapart.errors import TellapartError
from tellapart.metrics.material import Material
from tellapart.metrics.parts import METRICS
from tellapart.metrics.score import Score
from tellapart.registry import Part

# Measures that need a model or jars: each has tests of its own, with the real thing or a tiny one.
NEEDS_MORE = {"spice", "clipscore", "fluency"}
SELF_SUFFICIENT = [name for name in METRICS.names() if name not in NEEDS_MORE]

CAPTIONS = [
    ("a red dog runs on a beach", "two dogs run", "a dog"),
    ("a cat sleeps under a wooden table", "a cat on a mat", "the small cat sleeps"),
    ("people ride bicycles in the rain", "a man rides a bike", "people with umbrellas"),
    ("", "nothing to see", "a plate of food"),
    ("two women talk in a kitchen", "women cook", "a woman holds a knife in a kitchen"),
]
REFERENCES = [
    ("a dog running along the beach", "a red dog runs"),
    ("a cat asleep under a table", "the cat rests below the desk"),
    ("cyclists riding through rain", "a group of people on bikes"),
    ("a plate of food", "dinner on a table", "someone's lunch"),
    ("two ladies chatting while cooking", "women in a kitchen"),
]


def material() -> Material:
    chance = np.random.default_rng(0)
    return Material(
        tuple("abcde"),
        tuple(CAPTIONS),
        tuple(REFERENCES),
        training=(("a dog",), ("a cat on a mat", "two dogs run")),
        similarity=chance.normal(size=(5, 5)),
        features=chance.normal(size=(5, 8)),
    )


def permuted(given: Material, order: list[int]) -> Material:
    assert given.references is not None
    assert given.similarity is not None
    assert given.features is not None
    return replace(
        given,
        ids=tuple(given.ids[row] for row in order),
        candidates=tuple(given.candidates[row] for row in order),
        references=tuple(given.references[row] for row in order),
        similarity=given.similarity[np.ix_(order, order)],
        features=given.features[order],
    )


def run(name: str, given: Material) -> list[Score]:
    part: Part = METRICS.get(name)
    found: list[Score] = part.builder()(part.config())(given)
    return found


@pytest.mark.parametrize("name", METRICS.names())
def test_every_measure_is_described_and_can_be_built(name: str) -> None:
    part = METRICS.get(name)
    assert part.summary
    assert callable(part.builder()(part.config()))


@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_scores_are_whole(name: str) -> None:
    given = material()
    found = run(name, given)
    assert found
    assert len({score.name for score in found}) == len(found)
    for score in found:
        assert np.isfinite(score.corpus), score.name
        assert all(":" in piece for piece in score.signature.split("|")), score.signature
        assert score.each is None or score.each.shape == (len(given),), score.name
        if score.pooled is not None:
            value = score.pooled.formula(score.pooled.statistics.sum(axis=0))
            assert float(value) == pytest.approx(score.corpus, abs=1e-12), score.name


@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_the_order_of_images_does_not_matter(name: str) -> None:
    order = [3, 0, 4, 2, 1]
    before, after = run(name, material()), run(name, permuted(material(), order))
    for one, other in zip(before, after, strict=True):
        assert (one.name, one.signature) == (other.name, other.signature)
        assert other.corpus == pytest.approx(one.corpus, abs=1e-9), one.name
        if one.each is not None:
            assert other.each == pytest.approx(one.each[order], abs=1e-9, nan_ok=True), one.name


@pytest.mark.parametrize("name", ["bleu", "rouge", "cider", "meteor", "oracle", "detail", "spice"])
def test_what_needs_references_says_so(name: str) -> None:
    with pytest.raises(TellapartError, match="needs references"):
        run(name, replace(material(), references=None))


@pytest.mark.parametrize("name", ["sets", "oracle"])
def test_measures_of_candidate_sets_want_equally_many(name: str) -> None:
    given = material()
    uneven = replace(given, candidates=(given.candidates[0][:2], *given.candidates[1:]))
    with pytest.raises(TellapartError, match="candidates"):
        run(name, uneven)
