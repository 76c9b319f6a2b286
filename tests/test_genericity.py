"""Halves of a training set by retrieval entropy: what is generic, and files that can be trained on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.retrievers.colour_retriever import ColourRetriever, paint

from tellapart.data.examples import Example
from tellapart.data.readers import read_dataset, read_jsonl
from tellapart.errors import TellapartError
from tellapart.genericity import (
    Genericity,
    Hesitation,
    Pair,
    measure_genericity,
    to_filter,
    write_genericity,
)
from tellapart.recipe_sections import DataConfig
from tellapart.retrievers.entropy import high_half
from tellapart.sources import read_examples, split_of

CAPTIONS = {
    "red": ("red", "a thing"),
    "green": ("green", "a thing"),
    "blue": ("blue", "a white thing"),
}


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    return [
        Example(name, paint(tmp_path / "photos" / f"{name}.png", name), captions, "train", "here")
        for name, captions in CAPTIONS.items()
    ]


@pytest.fixture
def found(examples: list[Example]) -> Genericity:
    return measure_genericity(examples, ColourRetriever(), Hesitation(0.1))


def test_a_caption_that_fits_all_pictures_is_generic(found: Genericity) -> None:
    values = {pair.caption: value for pair, value in zip(found.pairs, found.entropy, strict=True)}
    assert values["a thing"] == values["a white thing"] == pytest.approx(math.log(3))
    assert values["red"] == pytest.approx(values["blue"]) == pytest.approx(0.0, abs=2e-3)
    assert [pair.caption for pair, high in zip(found.pairs, found.is_high, strict=True) if high] == [
        "a thing",
        "a thing",
        "a white thing",
    ]
    assert found.pictures == 3
    most, least = found.extremes()
    assert [caption for caption, _ in most[:2]] == ["a thing", "a white thing"]
    assert {caption for caption, _ in least[:3]} == {"red", "green", "blue"}


def test_halves_are_described(found: Genericity) -> None:
    high, low = found.half(high=True), found.half(high=False)
    assert (high.pairs, high.vocabulary) == (3, 3)
    assert high.mean_length == pytest.approx(7 / 3)
    assert high.distinct == pytest.approx(2 / 3)
    assert (low.pairs, low.vocabulary, low.mean_length, low.distinct) == (3, 3, 1.0, 1.0)
    assert high.mean_entropy > low.mean_entropy
    said = found.to_json()
    assert (said["pairs"], said["sentences"], said["temperature"], said["top_n"]) == (6, 5, 0.1, None)
    assert said["retriever"] == "colours@c01"
    assert said["high"]["pairs"] == 3


def test_another_pool_gives_another_entropy(examples: list[Example], tmp_path: Path) -> None:
    pool = [paint(tmp_path / f"{number}.png", "red") for number in range(5)]
    seen: list[str] = []
    found = measure_genericity(
        examples,
        ColourRetriever(),
        Hesitation(0.1),
        pool=pool,
        watch=lambda what, done, total: seen.append(what),
    )
    assert found.pictures == 5
    np.testing.assert_allclose(found.entropy, math.log(5), atol=1e-6)  # all pictures are alike to all
    assert list(dict.fromkeys(seen)) == ["placing pictures", "placing sentences", "measuring entropy"]
    few = measure_genericity(examples, ColourRetriever(), Hesitation(0.1, top_n=2), pool=pool)
    np.testing.assert_allclose(few.entropy, math.log(2), atol=1e-6)


def test_files_hold_every_pair_once_and_can_be_trained_on(
    found: Genericity, examples: list[Example], tmp_path: Path
) -> None:
    other = Example("val", examples[0].path, ("kept",), "val", "here")
    unpictured = Example("text", tmp_path / "no.png", ("words alone",), "train", "here", pictured=False)
    held_out = Example("held", examples[0].path, ("x",), "held-out", "here")
    write_genericity(tmp_path / "out", found, [*examples, other, unpictured, held_out])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "entropy.jsonl",
        "high.jsonl",
        "low.jsonl",
        "summary.json",
    ]
    lines = [json.loads(line) for line in (tmp_path / "out" / "entropy.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert [line["entropy"] for line in lines] == sorted((line["entropy"] for line in lines), reverse=True)
    assert {line["half"] for line in lines[:3]} == {"high"}
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == found.to_json()
    pairs = []
    for name in ("high", "low"):
        read = read_jsonl(tmp_path / "out" / f"{name}.jsonl")
        assert not read.problems
        assert [(each.image_id, each.captions) for each in read.examples if each.split == "val"] == [
            ("val", ("kept",))
        ]
        pairs += [
            (each.image_id, text) for each in read.examples if each.split == "train" for text in each.captions
        ]
        assert all(each.path.is_file() for each in read.examples)
    assert sorted(pairs) == sorted((pair.example.image_id, pair.caption) for pair in found.pairs)
    data = DataConfig(path=str(tmp_path / "out" / "high.jsonl"), root=str(tmp_path / "unused"))
    trained_on = split_of(read_examples(data, seed=1), "train")
    assert [each.captions for each in trained_on] == [("a thing",), ("a thing",), ("a white thing",)]


def test_a_set_without_splits_stays_without(tmp_path: Path, examples: list[Example]) -> None:
    path = tmp_path / "photos" / "captions.jsonl"
    path.write_text(
        "".join(
            json.dumps({"image": each.path.name, "captions": list(each.captions)}) + "\n" for each in examples
        )
    )
    read = read_dataset(path).strict()
    found = measure_genericity(to_filter(read), ColourRetriever(), Hesitation(0.1))
    write_genericity(tmp_path / "out", found, read)
    assert {each.split for each in read_jsonl(tmp_path / "out" / "low.jsonl").strict()} == {""}


def test_what_stands_there_is_never_replaced(found: Genericity, tmp_path: Path) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()
    write_genericity(folder, found, [])  # an empty folder is free
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(TellapartError, match="something at this place already"):
        write_genericity(folder, found, [])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(TellapartError, match="something at this place already"):
        write_genericity(folder / "entropy.jsonl", found, [])


def test_only_what_is_trained_on_is_divided(examples: list[Example]) -> None:
    val = Example("val", examples[0].path, ("x",), "val", "here")
    assert to_filter([*examples, val]) == examples
    with pytest.raises(TellapartError, match="no picture with captions to train on") as error:
        to_filter([val])
    assert "val" in error.value.hint


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", "z"])), min_size=1, max_size=12))
def test_halves_partition_the_pairs(texts: list[tuple[str, str]]) -> None:
    values = {"x": 1.0, "y": 2.0, "z": 2.5}
    example = Example("i", Path("i.png"), (), "train", "here")
    pairs = tuple(Pair(example, caption) for _, caption in texts)
    entropy = np.array([values[pair.caption] for pair in pairs])
    found = Genericity(pairs, entropy, high_half(entropy), "r", 3, Hesitation(1.0))
    high, low = found.half(high=True), found.half(high=False)
    assert high.pairs + low.pairs == len(pairs)
    sides: dict[str, set[bool]] = {}
    for pair, is_high in zip(pairs, found.is_high.tolist(), strict=True):
        sides.setdefault(pair.caption, set()).add(is_high)
    assert all(len(each) == 1 for each in sides.values())  # a sentence never stands in both
    ordered = [float(entropy[row]) for row in found.order()]
    assert ordered == sorted(entropy.tolist(), reverse=True)
