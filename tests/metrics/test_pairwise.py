"""Likeness of single captions: by hand, and against the measures themselves pair by pair."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.metrics.bleu import bleu
from tellapart.metrics.cider import cider
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.metrics.material import Material
from tellapart.metrics.pairwise import (
    Pairwise,
    bleu_of_pairs,
    cider_of_pairs,
    frequencies_for,
    mean_f1_of_pairs,
)
from tellapart.metrics.parts import CiderConfig
from tellapart.metrics.score import Floats

WORDS = ["a", "dog", "cat", "runs", "red", "on"]
text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
spoken = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
groups = st.lists(
    st.tuples(st.lists(text, min_size=1, max_size=3), st.lists(spoken, min_size=1, max_size=3)),
    min_size=2,
    max_size=3,
)
Groups = list[tuple[list[str], list[str]]]


def counted(images: Groups) -> CountedCaptions:
    return CountedCaptions.count([[caption.split() for caption in captions] for _, captions in images])


def values(measure: Pairwise, images: Groups, known: CountedCaptions) -> Floats:
    texts = known.read([[one.split() for one in texts] for texts, _ in images])
    return measure(texts, known.of([[row] for row in range(len(images))]))


def pairs_as_images(images: Groups) -> Material:
    """Every pair as an image of its own, with one reference."""
    pairs = [(one, other) for texts, captions in images for one in texts for other in captions]
    return Material(
        tuple(map(str, range(len(pairs)))),
        tuple((one,) for one, _ in pairs),
        tuple((other,) for _, other in pairs),
        training=tuple(tuple(captions) for _, captions in images),
    )


@given(groups)
def test_bleu_is_that_of_a_single_reference(images: Groups) -> None:
    (*_, expected) = bleu(pairs_as_images(images))
    assert expected.each is not None
    np.testing.assert_allclose(values(bleu_of_pairs, images, counted(images)), expected.each, atol=1e-12)


@given(groups)
def test_cider_is_that_of_a_single_reference(images: Groups) -> None:
    expected, _ = cider(pairs_as_images(images), CiderConfig(df="train"))
    assert expected.each is not None
    known = counted(images)
    found = values(cider_of_pairs(frequencies_for(known, "train")), images, known)
    np.testing.assert_allclose(found, expected.each, atol=1e-9)


def test_the_authors_bleu_by_hand() -> None:
    """Of 5 and 4 words: 4 words, 2 pairs, 1 triple and no run of four are shared; "a" counts once."""
    images = [(["a dog runs on a"], ["a dog runs red"]), (["a dog"], ["a dog"])]
    first, short = values(mean_f1_of_pairs, images, counted(images))
    assert first == pytest.approx(np.mean([2 * 3 / 9, 2 * 2 / 7, 2 * 1 / 5, 0]))
    assert short == 0


@given(groups)
def test_the_authors_bleu_is_its_definition(images: Groups) -> None:
    def grams(words: list[str], order: int) -> list[tuple[str, ...]]:
        return [tuple(words[at : at + order]) for at in range(len(words) - order + 1)]

    def f1(one: list[str], other: list[str], order: int) -> float:
        ours, theirs = grams(one, order), grams(other, order)
        both = sum(min(ours.count(gram), theirs.count(gram)) for gram in set(ours))
        precision, recall = both / len(ours), both / len(theirs)
        return 2 * precision * recall / (precision + recall) if both else 0.0

    expected = [
        float(np.mean([f1(one.split(), other.split(), order) for order in range(1, 5)]))
        if min(len(one.split()), len(other.split())) >= 4
        else 0.0
        for texts, captions in images
        for one in texts
        for other in captions
    ]
    np.testing.assert_allclose(values(mean_f1_of_pairs, images, counted(images)), expected, atol=1e-12)


@given(groups)
def test_the_authors_bleu_is_mutual(images: Groups) -> None:
    """Unlike BLEU, F1 asks both alike."""
    known = counted(images)
    captions = known.of([[row] for row in range(len(images))])
    found = mean_f1_of_pairs(captions, captions)
    begin = 0
    for _, group in images:
        table = found[begin : begin + len(group) ** 2].reshape(len(group), -1)
        np.testing.assert_allclose(table, table.T, atol=1e-12)
        begin += table.size


def test_frequencies_come_from_the_captions_or_a_file(tmp_path: Path) -> None:
    images: Groups = [(["a red dog"], ["a red dog", "a dog"]), (["a cat"], ["a cat runs"])]
    known = counted(images)
    file = tmp_path / "captions.jsonl"
    rows = [{"image": f"{row}.jpg", "captions": captions} for row, (_, captions) in enumerate(images)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    by_file = values(cider_of_pairs(frequencies_for(known, str(file))), images, known)
    by_captions = values(cider_of_pairs(frequencies_for(known, "train")), images, known)
    assert by_file.tolist() == by_captions.tolist()
    assert by_captions[0] > 0


def test_references_are_not_known() -> None:
    with pytest.raises(TellapartError, match="no references"):
        frequencies_for(counted([(["a"], ["a"])]), "references")
    with pytest.raises(TellapartError, match="no document frequencies called 'nowhere'"):
        frequencies_for(counted([(["a"], ["a"])]), "nowhere")
