"""Captions are true, sentences mean what they say, and full ones single their scene out."""

from __future__ import annotations

import random
import re
from dataclasses import astuple, replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tellapart.data.shapes.language import (
    FORMS,
    RELATION_WORDS,
    RELATIONS,
    VOCABULARY,
    Description,
    Phrase,
    captions,
    is_true,
    parse,
    render,
    singles_out,
)
from tellapart.data.shapes.scenes import ATTRIBUTES, Scene, Thing, draw_scenes, look_alikes
from tellapart.errors import TellapartError

THINGS = st.builds(Thing, *(st.sampled_from(words) for words in ATTRIBUTES.values()))
# Drawn beforehand: run-time type checks use `random`, which hypothesis forbids while it makes examples.
SCENES = st.sampled_from(draw_scenes(3000, seed=0))
PHRASES = st.builds(Phrase, *(st.sampled_from(("", *words)) for words in ATTRIBUTES.values()))
SEEDS = st.integers(0, 2**32)
Parts = tuple[tuple[Phrase, ...], tuple[str, ...]]  # of a description


@st.composite
def description_parts(choose: st.DrawFn) -> Parts:
    phrases, relations = choose(st.sampled_from(sorted(FORMS)))
    return (
        tuple(choose(PHRASES) for _ in range(phrases)),
        tuple(choose(st.sampled_from(sorted(RELATIONS))) for _ in range(relations)),
    )


# A second reading of the language, which shares nothing with the first: it strips the frame, cuts the
# sentence before each article, and tries every assignment of things to the pieces.
FRAME = (
    r"^(there is|this picture shows|a picture of|a drawing of|a simple drawing with|here we can see"
    r"|somebody drew) "
    r"| (in this picture|on a white background|drawn on white paper)$"
)
CELLS = {
    "top": (0, 1),
    "left": (1, 0),
    "right": (1, 2),
    "bottom": (2, 1),
    "centre": (1, 1),
    "middle": (1, 1),
} | {
    f"{row} {column}": (y, x)
    for y, row in ((0, "top"), (2, "bottom"))
    for x, column in ((0, "left"), (2, "right"))
}
DIRECTIONS = {
    "to the left of": lambda one, other: one[1] < other[1],
    "to the right of": lambda one, other: one[1] > other[1],
    "above": lambda one, other: one[0] < other[0],
    "higher than": lambda one, other: one[0] < other[0],
    "below": lambda one, other: one[0] > other[0],
    "lower than": lambda one, other: one[0] > other[0],
}
SAME = {"little": "small", "big": "large", "shape": None, "object": None}


def cell(thing: Thing) -> tuple[int, int]:
    return CELLS[thing.place]


def piece_fits(piece: str, thing: Thing) -> bool:
    what, _, where = re.sub(r" (?:at|in|on) the ", "|", piece, count=1).partition("|")
    where = where.removesuffix(" corner")
    known = {thing.shape, thing.colour, thing.size, None}
    is_there = not where or CELLS[where] == cell(thing)
    return is_there and all(SAME.get(word, word) in known for word in what.split())


def brute_force(caption: str, scene: Scene) -> bool:
    body = re.sub(FRAME, "", re.sub(FRAME, "", caption))
    pieces, links = [], []
    for piece in re.split(r"\ban? ", body)[1:]:
        link = re.search(rf"(?:^| )({'|'.join(DIRECTIONS)}) ?$", piece.strip())
        links.append(link.group(1) if link else "")
        pieces.append(piece.strip().removesuffix(links[-1]).strip().removesuffix("and").strip())
    for chosen in product(scene.things, repeat=len(pieces)):
        related = (
            not link or DIRECTIONS[link](cell(chosen[0]), cell(other))
            for link, other in zip(links, chosen[1:], strict=False)
        )
        if len(set(chosen)) == len(chosen) and all(map(piece_fits, pieces, chosen)) and all(related):
            return True
    return False


@given(SCENES, SEEDS)
def test_captions_are_true_distinct_and_of_six_to_eighteen_plain_words(scene: Scene, seed: int) -> None:
    written = captions(scene, count=10, seed=seed)
    assert len(set(written)) == len(written) == 10
    for caption in written:
        assert is_true(caption, scene)
        assert brute_force(caption, scene)
        assert 6 <= len(caption.split(" ")) <= 18
        assert re.fullmatch(r"[a-z]+( [a-z]+)*", caption)
        assert set(caption.split()) <= VOCABULARY


@given(description_parts(), SEEDS)
def test_every_wording_is_read_back_as_what_was_meant(parts: Parts, seed: int) -> None:
    description = Description(*parts)
    caption = render(description, random.Random(seed))
    assert parse(caption) == description
    assert set(caption.split()) <= VOCABULARY


@settings(max_examples=400)
@given(description_parts(), SCENES, SEEDS)
def test_truth_agrees_with_brute_force(parts: Parts, scene: Scene, seed: int) -> None:
    caption = render(Description(*parts), random.Random(seed))
    assert is_true(caption, scene) == brute_force(caption, scene)


def test_truth_of_true_and_false_captions_agrees_with_brute_force() -> None:
    """Captions of a scene asked of its look-alikes, where both answers are frequent."""
    answers = []
    for scene in draw_scenes(150, seed=8):
        for caption, other in product(captions(scene, count=4, seed=1), look_alikes(scene, 6, seed=2)):
            answers.append(is_true(caption, other))
            assert answers[-1] == brute_force(caption, other), (caption, other)
    assert 0.2 < sum(answers) / len(answers) < 0.9


@given(THINGS, SEEDS)
def test_changing_a_named_attribute_makes_a_caption_false_and_an_unnamed_one_does_not(
    thing: Thing, seed: int
) -> None:
    scene = Scene((thing,))
    for caption in captions(scene, count=3, seed=seed):
        description = parse(caption)
        assert description is not None
        (phrase,) = description.phrases
        for attribute, words in ATTRIBUTES.items():
            for word in set(words) - {getattr(thing, attribute)}:
                changed = Scene((replace(thing, **{attribute: word}),))
                assert is_true(caption, changed) == (getattr(phrase, attribute) == "")


@given(SCENES, SEEDS)
def test_a_full_description_singles_its_scene_out_among_all_look_alikes(scene: Scene, seed: int) -> None:
    full = Description(tuple(Phrase(*astuple(thing)) for thing in scene.things))
    others = look_alikes(scene, 20, seed=seed)
    assert singles_out(render(full, random.Random(seed)), scene, others)


@given(SCENES, SEEDS, st.data())
def test_a_description_singles_out_only_if_it_names_what_differs(
    scene: Scene, seed: int, data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from(look_alikes(scene, 20, seed=seed)))
    (gone,), (new,) = set(scene.things) - set(other.things), set(other.things) - set(scene.things)
    (differing,) = (name for name in ATTRIBUTES if getattr(gone, name) != getattr(new, name))
    whole = Phrase(*astuple(gone))
    assume(not any(whole.fits(thing) for thing in other.things))
    named = render(Description((whole,)), random.Random(seed))
    silent = render(Description((replace(whole, **{differing: ""}),)), random.Random(seed))
    assert singles_out(named, scene, [other])
    assert is_true(silent, scene)
    assert not singles_out(silent, scene, [other])


TWO = Scene((Thing("circle", "red", "small", "top left"), Thing("circle", "blue", "large", "bottom")))


@pytest.mark.parametrize(
    ("caption", "truth"),
    [
        ("a red circle", True),
        ("a red square", False),
        ("a large red circle", False),
        ("a circle and a circle", True),
        ("a red circle and a red circle", False),
        ("a red circle and a small circle", False),
        ("a shape an object and a circle", False),
        ("a red circle above a blue circle", True),
        ("a blue circle above a red circle", False),
        ("a red circle to the left of a blue circle", True),
        ("a blue circle lower than a shape on a white background", True),
        ("there is a big circle at the bottom in this picture", True),
        ("a circle at the bottom left", False),
        ("a circle at the top", False),
        ("a circle in the top left corner", True),
        ("  a   red circle ", True),
    ],
)
def test_what_sentences_mean(caption: str, truth: bool) -> None:
    assert parse(caption) is not None
    assert is_true(caption, TWO) is truth


@pytest.mark.parametrize("relation", sorted(RELATION_WORDS))
def test_a_relation_and_its_contrary_exclude_each_other(relation: str) -> None:
    contrary = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}[relation]
    for scene in draw_scenes(200, seed=6):
        for one, other in product(scene.things, repeat=2):
            assert RELATIONS[relation](one, other) == RELATIONS[contrary](other, one)
            assert not (RELATIONS[relation](one, other) and RELATIONS[contrary](one, other))


@pytest.mark.parametrize(
    "caption",
    [
        "",
        "circle",
        "a dog on a white background",
        "an red circle",
        "a orange circle",
        "a red small circle",
        "A red circle",
        "a red circle.",
        "a circle and a circle and a circle",
        "a circle a circle",
        "a circle above a square and a star",
        "a circle above",
        "there isa circle",
        "there is there is a circle",
        "there is in this picture",
        "a circle a circle a circle and a circle",
        "a {phrase0}",
    ],
)
def test_a_sentence_outside_the_grammar_is_neither_read_nor_true(caption: str) -> None:
    assert parse(caption) is None
    assert is_true(caption, TWO) is False
    assert singles_out(caption, TWO, []) is False


@given(st.text())
def test_no_text_whatever_raises(caption: str) -> None:
    assert parse(caption) is None or is_true(caption, TWO) in (True, False)


def test_singling_out_is_being_true_of_it_alone() -> None:
    other = Scene((Thing("circle", "red", "small", "right"),))
    assert singles_out("a red circle", TWO, [])
    assert not singles_out("a red circle", TWO, [other])
    assert singles_out("a red circle at the top left", TWO, [other])
    assert not singles_out("a red circle on the right", TWO, [])
    assert not singles_out("a red circle on the right", TWO, [other])


def test_captions_vary_in_words_and_in_detail() -> None:
    scenes = draw_scenes(1000, seed=9)
    written = [caption for scene in scenes for caption in captions(scene, count=5, seed=0)]
    assert len(set(written)) > 3000
    assert set(" ".join(written).split()) == VOCABULARY
    read = [meaning for meaning in map(parse, written) if meaning is not None]
    said = [sum(map(bool, astuple(phrase))) for meaning in read for phrase in meaning.phrases]
    assert {0, 1, 2, 3, 4} == set(said)
    assert {(len(meaning.phrases), len(meaning.relations)) for meaning in read} == set(FORMS)
    lengths = {len(caption.split()) for caption in written}
    assert lengths == set(range(6, 19))


def test_some_captions_single_out_among_look_alikes_and_some_do_not() -> None:
    single: list[bool] = []
    for scene in draw_scenes(100, seed=10):
        others = look_alikes(scene, 5, seed=3)
        single.extend(singles_out(caption, scene, others) for caption in captions(scene, count=5, seed=4))
    assert 0.05 < sum(single) / len(single) < 0.6


def test_the_seed_decides_the_captions() -> None:
    assert captions(TWO, count=5, seed=1) == captions(TWO, count=5, seed=1)
    assert captions(TWO, count=5, seed=1) != captions(TWO, count=5, seed=2)


def test_fifty_captions_can_be_had_of_the_poorest_scenes_and_no_more() -> None:
    for place in ATTRIBUTES["place"]:
        scene = Scene((Thing("star", "red", "small", place),))
        assert len(set(captions(scene, count=50, seed=0))) == 50
    with pytest.raises(TellapartError, match="51 captions"):
        captions(Scene((Thing("star", "red", "small", "top"),)), count=51, seed=0)


@pytest.mark.parametrize(("phrases", "relations"), [(0, 0), (4, 0), (1, 1), (3, 1), (2, 2)])
def test_descriptions_without_a_form_are_refused(phrases: int, relations: int) -> None:
    with pytest.raises(TellapartError):
        Description((Phrase(),) * phrases, ("above",) * relations)
