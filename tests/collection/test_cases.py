"""Which candidate is chosen, held against comparing every one with every picture by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float32

from tellapart.captioning import Candidate
from tellapart.collection.cases import Case
from tellapart.collection.gathering import Picture
from tellapart.reranking.margin import Terms

PICTURE = Picture(Path("a.png"), "a", "fingerprint", is_wanted=True)
TERMS = Terms()
WORDS = ("a", "red", "dog", "runs")

angles = st.lists(st.integers(0, 40), min_size=1, max_size=6)
written = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        st.integers(-40, 0),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one[0],
)
"""Captions with their log-probabilities and where they lie."""
Written = list[tuple[str, int, int]]


def at(*places: int) -> Float32[np.ndarray, "n 2"]:
    """Unit vectors in the plane; so few that captions are often equally close."""
    turned = np.array(places, np.float64) / 20
    return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def case_of(pictures: list[int], captions: Written, terms: Terms = TERMS) -> Case:
    case = Case(0, PICTURE, at(*pictures))
    case.add([Candidate(caption, float(likely)) for caption, likely, _ in captions], by="candidates")
    case.judge(at(*(place for _, _, place in captions)), terms, by="candidates")
    return case


def closeness(one: int, other: int) -> float:
    first, second = at(one)[0].tolist(), at(other)[0].tolist()
    return math.fsum(left * right for left, right in zip(first, second, strict=True))


def score(own: float, rivals: list[float], fit: float) -> float:
    """What decides between candidates, written out."""
    if not rivals:
        return math.inf
    soft = TERMS.temperature * math.log(sum(math.exp(rival / TERMS.temperature) for rival in rivals))
    return own - TERMS.weight * soft + TERMS.fit_weight * fit


@given(angles, written)
def test_as_by_comparing_every_candidate_with_every_picture(pictures: list[int], captions: Written) -> None:
    case = case_of(pictures, captions)

    own, *others = pictures
    expected = {}
    for caption, likely, place in captions:
        rivals = [closeness(place, other) for other in others]
        margin = closeness(place, own) - max(rivals, default=-math.inf)
        fit = likely / (len(caption.split()) + 1) ** TERMS.length_penalty
        expected[caption] = (round(score(closeness(place, own), rivals, fit), 9), fit, margin)
    best = max(expected.values())
    chosen = case.candidates[0]
    assert expected[chosen.caption][:2] == best[:2]
    assert case.is_found == (expected[chosen.caption][2] > 1e-12)
    if others:
        assert chosen.margin == pytest.approx(expected[chosen.caption][2], abs=1e-9)
        assert case.attempts[-1].margin == chosen.margin
    else:
        assert chosen.margin is None
    assert sorted(one.caption for one in case.candidates) == sorted(expected)
    for one in case.candidates:
        place = next(place for caption, _, place in captions if caption == one.caption)
        assert one.closeness == pytest.approx(closeness(place, own), abs=1e-9)


def told(case: Case, *captions: tuple[str, int]) -> str:
    case.add([Candidate(caption, -1.0) for caption, _ in captions], by="candidates")
    case.judge(at(*(place for _, place in captions)), TERMS, by="candidates")
    return case.candidates[0].caption


def test_a_caption_is_left_to_a_rival_that_could_have_it_and_is_closer_to_it() -> None:
    shared, own = ("two dogs run", 4), ("two dogs play", 12)
    assert told(Case(0, PICTURE, at(0, 6)), shared, own) == "two dogs run"
    assert told(Case(0, PICTURE, at(0, 6), [{"two dogs run"}]), shared, own) == "two dogs play"
    assert told(Case(0, PICTURE, at(0, 6), [{"two dogs bark"}]), shared, own) == "two dogs run"
    assert told(Case(0, PICTURE, at(0, 9), [{"two dogs run"}]), shared, own) == "two dogs run"
    assert told(Case(0, PICTURE, at(0, 6), [{"two dogs run"}]), shared) == "two dogs run"


def test_a_caption_that_is_cut_off_is_chosen_only_where_there_is_no_other() -> None:
    cut, whole = ("a red dog in the", 2), ("a dog", 9)
    for places, drawn in ((at(0, 20), []), (at(0), ["a red dog in the"])):
        assert told(Case(0, PICTURE, places, (), drawn, most_words=5), cut, whole) == "a dog"
        assert told(Case(0, PICTURE, places, (), drawn, most_words=5), cut) == "a red dog in the"
        # What it ends with was meant where more might have followed, or ends a caption well.
        assert told(Case(0, PICTURE, places, (), drawn, most_words=6), cut, whole) == "a red dog in the"
        full = ("a red dog in snow", 2)
        assert told(Case(0, PICTURE, places, (), drawn, most_words=5), full, whole) == "a red dog in snow"


def test_the_captioners_own_favourite_stays_as_it_is() -> None:
    case = Case(0, PICTURE, at(0), most_words=5)
    case.add([Candidate("a red dog in the", -1.0), Candidate("a dog", -20.0)], by="candidates")
    case.judge(at(2, 9), TERMS, by="candidates")
    assert case.candidates[0].caption == "a red dog in the"


def test_a_caption_that_agrees_with_what_was_drawn_is_preferred() -> None:
    near, agreed = ("a red dog runs there", 2), ("two cats sit there now", 4)
    drawn = ["two cats sit there now", "two cats sit there", "a dog sits"]
    for places in (at(0, 20), at(0)):  # with a rival, and with none
        assert told(Case(0, PICTURE, places), near, agreed) == near[0]
        case = Case(0, PICTURE, places, (), drawn)
        assert told(case, near, agreed) == agreed[0]
        assert all(one.agreement is not None for one in case.candidates)
        assert case.is_found


def test_of_captions_that_agree_as_much_the_closer_one_is_taken() -> None:
    drawn = ["a dog runs", "a cat runs"]
    for places in (at(0, 20), at(0)):
        assert told(Case(0, PICTURE, places, (), drawn), ("a dog runs", 5), ("a cat runs", 1)) == "a cat runs"


@given(angles, angles, written)
def test_of_two_rivals_only_one_takes_a_caption_that_both_could_have(
    first: list[int], second: list[int], captions: Written
) -> None:
    one, other = first[0], second[0]
    texts = {caption for caption, _, _ in captions}
    chosen = []
    for places in ([one, other], [other, one]):
        case = Case(0, PICTURE, at(*places), [texts])
        case.add([Candidate(caption, float(likely)) for caption, likely, _ in captions], by="candidates")
        case.judge(at(*(place for _, _, place in captions)), TERMS, by="candidates")
        chosen.append(case.candidates[0].caption)
    free = [
        {text for text, _, place in captions if closeness(place, mine) >= closeness(place, its)}
        for mine, its in ((one, other), (other, one))
    ]
    if all(free) and chosen[0] == chosen[1]:
        place = next(place for text, _, place in captions if text == chosen[0])
        assert closeness(place, one) == pytest.approx(closeness(place, other), abs=1e-6)


@given(angles, written, st.integers(0, 8))
def test_in_two_attempts_as_in_one(pictures: list[int], captions: Written, first: int) -> None:
    first = min(max(first, 1), len(captions))
    at_once = case_of(pictures, captions)

    case = case_of(pictures, captions[:first])
    later = [Candidate(caption, float(likely)) for caption, likely, _ in captions]  # the first ones again
    case.add(later, by="more")
    assert case.unread == [caption for caption, _, _ in captions[first:]]
    places = [place for _, _, place in captions[first:]]
    case.judge(at(*places) if places else np.empty((0, 2), np.float32), TERMS, by="more")

    found = [(one.closeness, one.margin) for one in case.candidates]
    assert found == [(one.closeness, one.margin) for one in at_once.candidates]
    assert [attempt.by for attempt in case.attempts] == ["candidates", "more"]
    assert [attempt.candidates for attempt in case.attempts] == [first, len(captions)]
    came = {one.caption: one.by for one in case.candidates}
    assert came == {
        caption: "candidates" if place < first else "more" for place, (caption, _, _) in enumerate(captions)
    }


def test_a_tie_is_lost() -> None:
    case = case_of([0, 10], [("a dog", -1, 5)])

    assert case.candidates[0].margin == pytest.approx(0, abs=1e-7)
    equal = case_of([10, 10], [("a dog", -1, 5)])
    assert equal.candidates[0].margin == 0
    assert not equal.is_found
    assert not equal.is_found_by(at(5)[0])


def test_a_caption_that_fits_comes_before_one_that_finds_its_picture_by_a_hair() -> None:
    # The red dog fits the picture well, and another one better; the dog fits neither, but the other one less.
    case = case_of([0, 4], [("a dog", -1, -30), ("a red dog", -9, 3)])

    fits, finds = case.candidates
    assert (fits.caption, finds.caption) == ("a red dog", "a dog")
    assert fits.margin is not None
    assert finds.margin is not None
    assert fits.margin < 0 < finds.margin
    assert not case.is_found, "it is not said to find the picture, for it does not"


def test_with_nobody_to_be_told_from_the_captioners_favourite_comes_first() -> None:
    captions = [("dog", -2, 9), ("a red dog runs", -3, 1), ("a dog", -4, 0)]

    plain = case_of([0], captions, Terms(length_penalty=0.0))
    assert [one.caption for one in plain.candidates] == ["dog", "a red dog runs", "a dog"]
    penalised = case_of([0], captions, Terms(length_penalty=1.0))
    assert [one.caption for one in penalised.candidates] == ["a red dog runs", "dog", "a dog"]
    assert plain.is_found
    assert plain.attempts[0].to_json() == {"by": "candidates", "candidates": 3, "margin": None, "found": True}


def test_a_case_that_nobody_has_judged_is_not_found() -> None:
    case = Case(0, PICTURE, at(0, 9))

    assert case.has_rivals
    assert not case.is_found
    case.add([Candidate("a dog", -1.0), Candidate("a dog", -2.0)], by="candidates")
    assert case.unread == ["a dog"]
