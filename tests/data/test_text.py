from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tellapart.data.text import PRESETS, TextRules, words

FAMILY = "👩\u200d👩\u200d👧"
TONED = "👍🏽"
AWKWARD = (
    "aZ09 '’.,-_/\t\n\r\0\u00ad\u200b\u200d\ufe0f\u20e3\u0301\u0338\u037e\u1fef\u2126İΣſ5①ʼé🐶👩🏽🇫🇷❤©Ⓜ\ud83d"
)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("mrnn", ["a", "mans", "t", "shirt", "says", "no", "5", "50", "off", "or", "not", "café"]),
        ("specificity", ["a", "mans", "t", "shirt", "says", "no", "5", "50", "off", "or", "not", "café"]),
        ("unkt", ["a", "mans", "t", "shirt", "says", "no", "5", "50", "off", "or", "not", "café"]),
        ("contrastive", ["a", "mans", "t", "shirt", "says", "no", "off", "or", "not", "🐶", "🐶", "café"]),
        (
            "smile",
            ["a", "man's", "t-shirt,", "says", "no", "5,", "50%", "off/or", "not?", "🐶", "🐶", "café"],
        ),
    ],
)
def test_presets_strip_what_the_papers_say(preset: str, expected: list[str]) -> None:
    text = 'A man\'s T-shirt, says: "No #5, 50% off/or NOT?" (🐶🐶) Cafe\u0301!'

    assert words(text, PRESETS[preset]) == expected


@pytest.mark.parametrize(
    ("preset", "most"), [("mrnn", 30), ("contrastive", 18), ("specificity", 16), ("smile", 30), ("unkt", 20)]
)
def test_presets_truncate_and_count_as_the_papers_say(preset: str, most: int) -> None:
    rules = PRESETS[preset]

    assert words("dog " * 40, rules) == ["dog"] * most
    assert rules.min_count == 5


def test_emoji_count_as_words() -> None:
    assert words("🐶" * 40, PRESETS["contrastive"]) == ["🐶"] * 18


@pytest.mark.parametrize(
    "emoji",
    [
        "🐶",
        FAMILY,
        TONED,
        "👩🏽\u200d🚀",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "🇫🇷",
        "❤\ufe0f",
        "❤",
        "❤\ufe0f\u200d🔥",
        "1\ufe0f\u20e3",
        "©\ufe0f",
        "Ⓜ\ufe0f",
        "⌚",
        "🥹",
    ],
)
def test_an_emoji_is_one_word_even_without_spaces(emoji: str) -> None:
    rules = PRESETS["contrastive"]

    assert words(f"dog{emoji}{emoji}cat", rules) == ["dog", emoji, emoji, "cat"]
    assert words(f"dog{emoji}{emoji}cat", PRESETS["mrnn"]) == ["dog", "cat"]


@pytest.mark.parametrize("sign", ["©", "↔", "1", "#", "✂\ufe0e"])
def test_a_sign_is_no_emoji_unless_it_says_so(sign: str) -> None:
    assert "\ufe0f" not in "".join(words(f"dog {sign}", PRESETS["contrastive"]))
    assert words("dog © ↔ 1 #", PRESETS["contrastive"]) == ["dog"]


def test_letters_of_every_script_are_letters() -> None:
    text = "Ein Übermaß, हिन्दी शब्द — 猫 и ёж"

    assert words(text, PRESETS["contrastive"]) == ["ein", "übermaß", "हिन्दी", "शब्द", "猫", "и", "ёж"]


def test_spellings_of_one_text_give_one_word() -> None:
    assert words("cafe\u0301", PRESETS["mrnn"]) == words("caf\u00e9", PRESETS["mrnn"]) == ["caf\u00e9"]


def test_what_nobody_sees_is_left_out() -> None:
    assert words("葛\U000e0100 x\ufe0fy", PRESETS["contrastive"]) == ["葛", "xy"]
    assert words("a\u00addog \u200d \ufe0f \0 \u0301 \ud83d run\u200bs", PRESETS["smile"]) == ["adog", "runs"]


def test_case_is_kept_on_request() -> None:
    assert words("A Dog.", TextRules(lower=False)) == ["A", "Dog"]


@pytest.mark.parametrize("apostrophe", ["'", "’", "ʼ"])
def test_apostrophes_join(apostrophe: str) -> None:
    assert words(f"five o{apostrophe}clock", PRESETS["contrastive"]) == ["five", "oclock"]


@example(text="e'\u0301", preset="mrnn", lower=True, keep_emoji=False)
@example(text="dog\u037e", preset="smile", lower=True, keep_emoji=False)
@example(text="a1\u00ad\u20e3", preset="smile", lower=True, keep_emoji=True)
@example(text="a🇫\u00ad🇷", preset="smile", lower=True, keep_emoji=True)
@example(text="a©\u00ad\ufe0f", preset="smile", lower=True, keep_emoji=True)
@given(
    text=st.one_of(st.text(), st.text(alphabet=AWKWARD), st.text(st.characters())),
    preset=st.sampled_from(sorted(PRESETS)),
    lower=st.booleans(),
    keep_emoji=st.booleans(),
)
def test_words_are_words_and_stay_the_same(text: str, preset: str, lower: bool, keep_emoji: bool) -> None:
    rules = PRESETS[preset].model_copy(update={"lower": lower, "keep_emoji": keep_emoji})

    found = words(text, rules)

    assert all(word.split() == [word] for word in found)
    assert all(word.encode("utf-8") for word in found)
    assert len(found) <= rules.max_words
    assert words(" ".join(found), rules) == found


@given(text=st.text(alphabet=AWKWARD, max_size=12), preset=st.sampled_from(sorted(PRESETS)))
def test_words_do_not_depend_on_their_neighbours(text: str, preset: str) -> None:
    rules = PRESETS[preset]

    assert words(f"dog {text} cat", rules) == ["dog", *words(text, rules), "cat"]


def test_agrees_with_the_token_lists_of_flickr8k(real_data: Path) -> None:
    with gzip.open(real_data / "flickr8k" / "dataset_flickr8k.json.gz") as file:
        images = json.load(file)["images"]
    sentences = [sentence for image in images for sentence in image["sentences"]]
    rules = TextRules(max_words=100)

    equal = sum(words(sentence["raw"], rules) == sentence["tokens"] for sentence in sentences)

    # The rest keeps a lone "#", "&" or "(" as a token, or joins "statefarm.com".
    assert len(sentences) == 40_000
    assert equal / len(sentences) > 0.999
