from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.data.vocabulary import Vocabulary
from tellapart.errors import TellapartError

WORDS = st.lists(st.text(st.characters(exclude_categories=("Z", "C")), min_size=1), unique=True)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    words = tuple(draw(WORDS))
    special = draw(st.permutations(range(len(words) + 4)))[:4]
    return Vocabulary(words, *special)


def special_ids(vocabulary: Vocabulary) -> set[int]:
    return {vocabulary.pad, vocabulary.start, vocabulary.end, vocabulary.unknown}


def test_build_orders_by_count_and_then_by_the_alphabet() -> None:
    captions = [["dog", "cat", "a"], ["a", "dog", "bird"], ["a", "cat", "ant"]]

    assert Vocabulary.build(captions, min_count=1).words == ("a", "cat", "dog", "ant", "bird")
    assert Vocabulary.build(captions, min_count=2).words == ("a", "cat", "dog")
    assert Vocabulary.build(reversed(captions), min_count=2) == Vocabulary.build(captions, min_count=2)
    assert Vocabulary.build([], min_count=1).words == ()


def test_encode_puts_a_caption_between_start_and_end() -> None:
    vocabulary = Vocabulary(("a", "dog"), pad=5, start=4, end=1, unknown=2)

    assert len(vocabulary) == 6
    assert [vocabulary.id(word) for word in ("a", "dog", "cat")] == [0, 3, 2]
    assert vocabulary.encode(["a", "red", "dog"]) == [4, 0, 2, 3, 1]
    assert vocabulary.decode([4, 0, 5, 2, 3, 1, 0]) == ["a", "<unk>", "dog"]
    assert "dog" in vocabulary
    assert "red" not in vocabulary


@pytest.mark.parametrize("sign", ["<pad>", "<start>", "<end>", "<unk>", "pad", "start", "end", "unknown"])
def test_a_word_that_looks_like_a_sign_is_a_word(sign: str) -> None:
    without, with_it = Vocabulary(("dog",)), Vocabulary(("dog", sign))

    assert without.encode([sign, "dog"]) == [without.start, without.unknown, 4, without.end]
    assert with_it.decode(with_it.encode([sign, "dog"])) == [sign, "dog"]
    assert with_it.id(sign) not in special_ids(with_it)


@given(vocabulary=vocabularies(), data=st.data())
def test_known_words_survive_and_ids_are_in_range(vocabulary: Vocabulary, data: st.DataObject) -> None:
    chosen = st.sampled_from(vocabulary.words) if vocabulary.words else st.nothing()
    caption = data.draw(st.lists(chosen))

    ids = vocabulary.encode(caption)

    assert vocabulary.decode(ids) == caption
    assert all(0 <= number < len(vocabulary) for number in ids)
    assert special_ids(vocabulary).isdisjoint(ids[1:-1])
    assert vocabulary.encode(["a b"])[1] == vocabulary.unknown


@given(vocabulary=vocabularies())
def test_every_id_is_one_sign_or_one_word(vocabulary: Vocabulary) -> None:
    words = [vocabulary.id(word) for word in vocabulary.words]

    assert sorted([*words, *special_ids(vocabulary)]) == list(range(len(vocabulary)))
    assert words == sorted(words)


@given(vocabulary=vocabularies())
def test_json_keeps_all(vocabulary: Vocabulary) -> None:
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())), name="vocabulary.json")

    assert again == vocabulary
    assert again.fingerprint == vocabulary.fingerprint


@given(one=vocabularies(), other=vocabularies())
def test_fingerprints_are_equal_only_for_equal_content(one: Vocabulary, other: Vocabulary) -> None:
    assert (one.fingerprint == other.fingerprint) == (one == other)


def test_fingerprint_tells_order_and_special_ids() -> None:
    vocabularies = [
        Vocabulary(("a", "b")),
        Vocabulary(("b", "a")),
        Vocabulary(("ab",)),
        Vocabulary(("a", "b"), pad=4, start=1, end=2, unknown=3),
        Vocabulary(("a", "b"), pad=1, start=0, end=2, unknown=3),
    ]

    assert len({vocabulary.fingerprint for vocabulary in vocabularies}) == 5
    assert all(len(bytes.fromhex(vocabulary.fingerprint)) == 32 for vocabulary in vocabularies)


SPECIAL = {"pad": 0, "start": 1, "end": 2, "unknown": 3}


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        ([], 'should be an object with the keys "words" and "special"'),
        ({"words": ["a"]}, 'should be an object with the keys "words" and "special"'),
        ({"special": SPECIAL}, 'should be an object with the keys "words" and "special"'),
        ({"words": "abc", "special": SPECIAL}, '"words" should be a list of strings'),
        ({"words": ["a", 1], "special": SPECIAL}, '"words" should be a list of strings'),
        ({"words": ["a", "b", "a"], "special": SPECIAL}, "the word 'a' stands twice"),
        ({"words": ["a b"], "special": SPECIAL}, "'a b' is not a word"),
        ({"words": [""], "special": SPECIAL}, "'' is not a word"),
        ({"words": [], "special": {"pad": 0, "start": 1, "end": 2}}, "keys pad, start, end, unknown"),
        ({"words": [], "special": SPECIAL | {"mask": 4}}, "keys pad, start, end, unknown"),
        ({"words": [], "special": SPECIAL | {"end": 4}}, "the id of 'end' is 4, but the ids go from 0 to 3"),
        ({"words": ["a"], "special": SPECIAL | {"pad": -1}}, "the id of 'pad' is -1"),
        ({"words": ["a"], "special": SPECIAL | {"pad": 1}}, "two special signs have the same id"),
        ({"words": ["a"], "special": SPECIAL | {"pad": "0"}}, '"special" should hold whole numbers'),
        ({"words": ["a"], "special": SPECIAL | {"pad": False}}, '"special" should hold whole numbers'),
    ],
)
def test_a_bad_file_is_named_with_its_flaw(tmp_path: Path, content: object, flaw: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(content))

    with pytest.raises(TellapartError) as caught:
        Vocabulary.read(path)

    assert caught.value.problem.startswith(f"{path}: ")
    assert flaw in caught.value.problem


@pytest.mark.parametrize("data", [b"", b"{", b'{"words": ["\xff"]}', b"[" * 100_000, b"1" * 5000])
def test_a_file_that_is_not_json_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(data)

    with pytest.raises(TellapartError, match="is not JSON"):
        Vocabulary.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match=r"vocabulary\.json: cannot be read: No such file"):
        Vocabulary.read(tmp_path / "vocabulary.json")


def test_a_good_file_is_read(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build([["a", "dog", "🐶"]], min_count=1)
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(vocabulary.to_json()))

    assert Vocabulary.read(path) == vocabulary
    assert json.loads(path.read_text())["special"] == SPECIAL


def test_what_cannot_be_a_vocabulary_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="the same id"):
        Vocabulary(("a",), pad=1, start=1)
