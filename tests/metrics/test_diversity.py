"""Distinct and novel captions, vocabulary and length: against counts by other programs, and by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.metrics.diversity import build_diversity, diversity
from tellapart.metrics.material import Material
from tellapart.metrics.parts import DiversityConfig
from tellapart.metrics.score import Score

WORDS = ["a", "dog", "cat", "runs", "red"]
captions = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def of(texts: list[str], *, training: tuple[tuple[str, ...], ...] | None = None) -> dict[str, Score]:
    material = Material(
        tuple(map(str, range(len(texts)))), tuple((text,) for text in texts), training=training
    )
    return {score.name: score for score in diversity(material)}


def test_as_counted_by_hand() -> None:
    texts = ["A dog runs.", "a dog runs", "A red, red cat!", ""]
    found = of(texts, training=(("A dog  runs!",), ("two cats",)))
    assert list(found) == ["Distinct", "Novel", "Vocabulary", "Length"]
    assert found["Distinct"].corpus == 3 / 4
    assert found["Novel"].each is not None
    assert found["Novel"].each.tolist() == [0, 0, 1, 1]
    assert found["Novel"].corpus == 1 / 2
    assert found["Novel"].signature == "tokenizer:ptb|captions:first|train:2,fb206651"
    assert found["Vocabulary"].corpus == 5
    assert found["Length"].each is not None
    assert found["Length"].each.tolist() == [3, 3, 4, 0]
    assert found["Length"].corpus == 2.5


def test_novelty_needs_training_captions() -> None:
    assert list(of(["a dog"])) == ["Distinct", "Vocabulary", "Length"]


def test_only_the_first_candidate_counts() -> None:
    material = Material(("x", "y"), (("a dog", "a red cat"), ("a dog", "so many other words")))
    found = {score.name: score.corpus for score in build_diversity(DiversityConfig())(material)}
    assert found == {"Distinct": 0.5, "Vocabulary": 2, "Length": 2}


@given(st.lists(captions, min_size=1, max_size=8), st.lists(captions, max_size=8))
def test_laws(texts: list[str], trained: list[str]) -> None:
    found = of(texts, training=tuple((text,) for text in trained))
    assert 1 / len(texts) <= found["Distinct"].corpus <= 1
    assert found["Distinct"].corpus == len(set(texts)) / len(texts)
    assert found["Vocabulary"].corpus == len({word for text in texts for word in text.split()})
    assert found["Novel"].corpus == sum(text not in trained for text in texts) / len(texts)
    backwards = of(texts[::-1], training=tuple((text,) for text in trained))
    assert {name: score.corpus for name, score in backwards.items()} == pytest.approx(
        {name: score.corpus for name, score in found.items()}
    )


def test_first_captions_of_a_thousand_photographs(real_data: Path) -> None:
    truth: dict[str, Any] = json.loads((real_data.parent / "metrics" / "diversity_1000x5.json").read_bytes())
    with gzip.open(real_data / "text" / "coco_captions_val2017.json.gz") as file:
        annotations = json.load(file)["annotations"]
    measured = set(truth["ids"])
    others = tuple((each["caption"],) for each in annotations if each["image_id"] not in measured)
    found = of([group[0] for group in truth["captions"]], training=others)
    expected = truth["expected"]["lindh_first_only_tokenized"]
    assert found["Distinct"].corpus == expected["fraction_distinct"]
    assert found["Novel"].corpus == pytest.approx(expected["fraction_novel"], abs=1e-12)
    assert found["Vocabulary"].corpus == expected["vocabulary"]
    lengths = [len(group[0].split()) for group in truth["captions_tok"]]
    assert found["Length"].corpus == pytest.approx(sum(lengths) / len(lengths))
