"""`tellapart.score`: plain values in, scores with signatures out, and no number for the wrong image."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tellapart
from tellapart.errors import TellapartError
from tellapart.metrics.parts import METRICS, CiderConfig
from tellapart.metrics.ptb.tokenizer import tokenize
from tellapart.metrics.score import Floats, Scores
from tellapart.scoring import choose, gather, without_repeats

NGRAMS = ["bleu", "rouge", "cider"]
CANDIDATES = ["a dog runs on grass", "two cats sleep", "a red bus"]
REFERENCES = [
    ["a dog is running on the grass", "a dog runs"],
    ["two cats sleep on a bed"],
    ["a bus", "red bus"],
]
IDS = ["dog", "cats", "bus"]


def by_id(values: list[Any]) -> dict[str, Any]:
    return dict(zip(IDS, values, strict=True))


def each(result: Scores, name: str) -> Floats:
    values = result[name].each
    assert values is not None
    return values


@pytest.fixture(scope="module")
def truth(real_data: Path) -> dict[str, Any]:
    found = json.loads((real_data.parent / "metrics" / "loo_500.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_values_are_those_of_pycocoevalcap(truth: dict[str, Any]) -> None:
    result = tellapart.score(truth["candidates"], truth["references"], metrics=NGRAMS)
    names = {"BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D"}
    expected = {key.upper().replace("_", "-"): value for key, value in truth["expected"]["corpus"].items()}
    singly = {key.upper().replace("_", "-"): value for key, value in truth["expected"]["per_image"].items()}
    for name in names:
        theirs = "CIDER" if name == "CIDEr-D" else name
        assert result[name].corpus == pytest.approx(expected[theirs], abs=1e-9)
        np.testing.assert_allclose(each(result, name), singly[theirs], rtol=0, atol=1e-9)
    assert result.images == 500
    assert result.notes == []


def test_lists_and_dicts_agree() -> None:
    listed = tellapart.score(CANDIDATES, REFERENCES, metrics=NGRAMS)
    shuffled = {key: by_id(REFERENCES)[key] for key in ("bus", "dog", "cats")}
    named = tellapart.score(by_id(CANDIDATES), shuffled, metrics="bleu,rouge,cider")
    assert listed.scores == named.scores
    assert (listed.ids, named.ids) == (("0", "1", "2"), tuple(IDS))
    assert listed.signatures == named.signatures
    numbered = tellapart.score({7: "a dog", 9: "a cat"}, {9: ["a cat"], 7: ["a dog"]}, metrics=["bleu"])
    assert numbered.ids == ("7", "9")
    assert numbered["BLEU-1"].corpus == pytest.approx(1)


WORDS = st.lists(st.sampled_from(["a", "dog", "cat", "runs", "red", ".", "🐕"]), max_size=6).map(" ".join)
SETS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=2, max_size=6)


@settings(max_examples=30)
@given(images=SETS, data=st.data())
def test_order_changes_nothing(images: list[tuple[str, list[str]]], data: st.DataObject) -> None:
    ids = [str(number) for number in range(len(images))]
    candidates = {image_id: caption for image_id, (caption, _) in zip(ids, images, strict=True)}
    references = {image_id: texts for image_id, (_, texts) in zip(ids, images, strict=True)}
    order, other = data.draw(st.permutations(ids)), data.draw(st.permutations(ids))
    one = tellapart.score(candidates, references, metrics=NGRAMS)
    two = tellapart.score(
        {image_id: candidates[image_id] for image_id in order},
        {image_id: references[image_id] for image_id in other},
        metrics=NGRAMS,
    )
    place = [two.ids.index(image_id) for image_id in one.ids]
    for name in one:
        assert two[name].corpus == pytest.approx(one[name].corpus, abs=1e-12)
        np.testing.assert_allclose(each(two, name)[place], each(one, name), rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=2, max_size=4),
    odd=st.sampled_from(
        ["", " ", "\u202eabc\u202c", "a\x00b", "a\u2028b", "a\rb", "\U0001f469\u200d\U0001f680", "..."]
    ),
)
def test_no_text_shifts_a_value_of_another_image(texts: list[str], odd: str) -> None:
    plain = tellapart.score([*CANDIDATES, "a"], [*REFERENCES, ["b"]], metrics=["bleu", "rouge"])
    mixed = tellapart.score(
        [*texts, *CANDIDATES, odd],
        [[odd], *([text] for text in texts[1:]), *REFERENCES, [*texts]],
        metrics=["bleu", "rouge"],
    )
    for name in plain:
        found = each(mixed, name)
        np.testing.assert_allclose(found[len(texts) : -1], each(plain, name)[:-1], rtol=0, atol=1e-12)
        assert np.isfinite(found).all()


def test_empty_texts_have_a_value_and_a_note() -> None:
    candidates = {"empty": "", "both": " ", "smiley": "\U0001f600", "word": "dog"}
    references = {"empty": ["a dog"], "both": ["", "a cat"], "smiley": ["a bird"], "word": ["dog", "..."]}
    result = tellapart.score(candidates, references, metrics=NGRAMS)
    values = dict(zip(result.ids, each(result, "ROUGE-L").tolist(), strict=True))
    assert values == pytest.approx({"empty": 0, "both": 1, "smiley": 0, "word": 1})
    assert all(math.isfinite(value) for value in result.scores.values())
    assert result.notes[:2] == [
        "3 of 4 images have a candidate without a word (first: 'empty'); it counts as an empty text",
        "2 of 4 images have a reference without a word (first: 'both'); it counts as an empty text",
    ]


@given(text=st.text(), sign=st.sampled_from("aZ09"), place=st.integers(0, 9))
def test_a_letter_or_digit_always_leaves_a_token(text: str, sign: str, place: int) -> None:
    # Which is why texts that hold one are not looked at for being empty.
    assert tokenize(text[:place] + sign + text[place:])


def test_long_captions_are_scored() -> None:
    long = "a dog runs over the green grass " * 715
    result = tellapart.score([long, "a cat"], [[long], ["a cat"]], metrics=NGRAMS)
    assert len(long.split()) > 5000
    assert result["BLEU-4"].corpus == pytest.approx(1, abs=1e-6)
    assert result["ROUGE-L"].corpus == pytest.approx(1)


@pytest.mark.parametrize(
    ("candidates", "references", "said"),
    [
        (["a"], [["a"], ["b"]], "there are 1 candidates and references of 2"),
        ({"x": "a"}, [["a"]], "not both dicts"),
        (["a"], {"x": ["a"]}, "not both dicts"),
        ({"x": "a", "y": "b"}, {"x": ["a"]}, "image 'y' has no references (1 of 2 images have none)"),
        ({"x": "a"}, {"x": []}, "image 'x' has no references"),
        ({"x": []}, {"x": ["a"]}, "image 'x' has no candidates"),
        ({1: "a", "1": "b"}, {1: ["a"]}, "the candidates have image '1' twice"),
        ({1: "a"}, {1: ["a"], "1": ["b"]}, "the references have image '1' twice"),
        (["a"], ["a"], "the references of image '0' are 'a', which is no list of texts"),
        ("a dog", [["a dog"]], "the candidates are one string"),
        (["a dog"], "a dog", "the references are one string"),
        ([None], [["a"]], "the candidates of image '0' are None"),
        ([math.nan], [["a"]], "the candidates of image '0' are nan"),
        (["a"], [["b", math.nan]], "the references of image '0' hold nan, which is no text"),
        (["a \ud800"], [["b"]], "the candidates of image '0' hold half a character"),
        ([], [], "there are no captions to measure"),
    ],
)
def test_what_does_not_fit_together_is_named(candidates: Any, references: Any, said: str) -> None:
    with pytest.raises(TellapartError) as caught:
        tellapart.score(candidates, references, metrics=["bleu"])
    assert said in caught.value.problem


def test_references_nobody_asked_for_are_remarked_on() -> None:
    result = tellapart.score({"x": "a"}, {"x": ["a"], "y": ["b"]}, metrics=["bleu"])
    assert result.notes == ["no candidate for 1 of the images with references: left out"]


def test_measures_are_named_or_configured() -> None:
    assert [part.name for part, _ in choose(["Bleu", " cider "]).measures] == ["bleu", "cider"]
    ((_, config),) = choose([CiderConfig(df="train")]).measures
    assert config == CiderConfig(df="train")
    ((_, config),) = choose("cider", [CiderConfig(df="train")]).measures
    assert config == CiderConfig(df="train")
    everything = choose("all")
    assert {part.name for part, _ in everything.measures} == set(METRICS.names())
    assert (everything.must_run, choose("bleu").must_run, choose(None).must_run) == (False, True, False)
    nothings: list[list[str] | str] = [[], "", " , "]
    for nothing in nothings:
        with pytest.raises(TellapartError, match=r"no measure is named|no metric is called"):
            choose(nothing)
    with pytest.raises(TellapartError) as caught:
        choose("bleu,cidre")
    assert caught.value.hint == "did you mean 'cider'?"


def test_what_cannot_run_is_an_error_if_it_was_named_and_else_a_remark() -> None:
    with pytest.raises(TellapartError, match="BLEU needs references"):
        tellapart.score(["a dog"], metrics=["bleu"])
    result = tellapart.score(["a dog"])
    assert result.skipped["bleu"] == "BLEU needs references (give them with --references)"
    assert "Length" in result
    assert "BLEU-1" not in result


def test_repeated_words_can_be_dropped_and_the_signature_says_so() -> None:
    candidates = ["a a dog dog runs", "the cat the cat"]
    plain = tellapart.score(candidates, metrics=["diversity"])
    dropped = tellapart.score(candidates, metrics=["diversity"], drop_repeats=True)
    assert (plain["Length"].corpus, dropped["Length"].corpus) == (4.5, 3.5)
    assert all(signature.endswith("|repeats:dropped") for signature in dropped.signatures.values())
    assert without_repeats(gather(candidates, None)).candidates == (("a dog runs",), ("the cat the cat",))


def test_training_captions_and_pictures_have_to_fit() -> None:
    found = tellapart.score(["a dog", "a cat"], train=[["A dog."], ["a bird"]], metrics=["diversity"])
    assert found["Novel"].corpus == 0.5
    with pytest.raises(TellapartError, match="training captions of image '0'"):
        tellapart.score(["a dog"], train=["a dog"], metrics=["diversity"])
    with pytest.raises(TellapartError, match="there are 1 candidates and 2 images"):
        tellapart.score(["a dog"], images=["a.jpg", "b.jpg"], metrics=["diversity"])


def test_the_first_candidate_is_the_caption() -> None:
    several = [[caption, "something else"] for caption in CANDIDATES]
    assert (
        tellapart.score(several, REFERENCES, metrics=NGRAMS).scores
        == tellapart.score(CANDIDATES, REFERENCES, metrics=NGRAMS).scores
    )


def test_everything_as_plain_values() -> None:
    result = tellapart.score(by_id(CANDIDATES), by_id(REFERENCES), metrics=["bleu", "diversity"])
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert found["images"] == 3
    assert found["scores"] == result.scores
    assert found["signatures"].keys() == found["scores"].keys()
    rows = list(result.rows())
    assert [row["image_id"] for row in rows] == IDS
    assert all("BLEU-4" in row and "Vocabulary" not in row for row in rows)


def test_a_name_beside_all_must_be_right() -> None:
    with pytest.raises(TellapartError, match="no metric is called 'blue'"):
        choose("all,blue")


def test_words_said_again_are_dropped_whatever_their_case_and_marks() -> None:
    dropped = without_repeats(gather(["a dog dog.", "A a cat", "so, so far so . ."], None))
    assert dropped.captions == ("a dog", "A cat", "so, far so .")


def test_other_references_have_another_name() -> None:
    one = tellapart.score({"1": "a dog", "2": "a cat"}, {"1": ["a dog"], "2": ["a cat"]}, metrics="bleu")
    same = tellapart.score({"2": "a cat", "1": "a bird"}, {"1": ["a dog"], "2": ["a cat"]}, metrics="bleu")
    other = tellapart.score({"1": "a dog", "2": "a cat"}, {"1": ["a cat"], "2": ["a dog"]}, metrics="bleu")
    assert one.references == same.references != other.references
    assert one.to_json()["references"] == one.references
