"""METEOR's normalizer and stemmer, held against the jar's own."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tellapart.metrics.java import find_java
from tellapart.metrics.meteor.extras import stem_function
from tellapart.metrics.meteor.normalizer import Normalizer, words_of
from tellapart.metrics.meteor.resources import ResourceFiles, Resources
from tellapart.metrics.meteor.words import key_of

CHARACTERS = (
    "abcdefghij ABC xyz 0123456789   ....,,,''''``\"\"----–—‘’“”!?;:()[]|&%$#@*+=/\\<>{}~^_"
    "éÉßÿŸŠžÆøĀſƀЖжԧԨꙮꙿᴀᵿᶀΩσςİıﬁ日本😀\u00a0\u2003\u200b\u2028\u3000\ufeff\x01\x0b\x0c\x1f\x7f\x85"
)
PIECES = [
    *CHARACTERS,
    " DOTMULTI",
    "DOTDOTMULTI.",
    " Mr.",
    " vs.",
    " No. ",
    " i.e.",
    " U.S.",
    "..",
    "...",
    "'s",
]


def answers(files: ResourceFiles, program: Sequence[str], lines: Sequence[str]) -> list[str]:
    """What a program in the jar makes of some lines."""
    done = subprocess.run(
        [find_java(), "-Dfile.encoding=UTF-8", "-cp", files.jar, *program],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split("\n")[: len(lines)]


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_random_lines_become_the_jars(seed: int, meteor_files: ResourceFiles, resources: Resources) -> None:
    chance = random.Random(seed)
    blanks = "".join(map(chr, range(33)))  # the scorer trims a line before it normalizes it
    lines = ["".join(chance.choices(PIECES, k=chance.randrange(40))).strip(blanks) for _ in range(3_000)]
    theirs = answers(meteor_files, ["edu.cmu.meteor.util.Normalizer", "english", "true"], lines)
    ours = map(resources.normalizer.normalized, lines)
    assert [found for found in zip(lines, ours, theirs, strict=True) if found[1] != found[2]] == []


def test_every_known_word_is_cut_as_the_jar_cuts_it(
    meteor_files: ResourceFiles, resources: Resources
) -> None:
    words = [word for word in resources.numbers if word.isprintable()]
    assert len(words) > 100_000
    theirs = answers(meteor_files, ["Stemmer", "english"], words)
    stems = {word: int(resources.stems[resources.numbers[word]]) for word in words}
    assert [
        (word, stem) for word, stem in zip(words, theirs, strict=True) if key_of(stem) != stems[word]
    ] == []
    stem = stem_function()
    assert all(key_of(stem(word)) == stems[word] for word in words[::50])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("a man riding a horse", ["a", "man", "riding", "a", "horse"]),
        ("A Man's t-shirt", ["a", "man", "'s", "t", "shirt"]),
        ("in the u.s. today", ["in", "the", "us", "today"]),
        ("it ends.", ["it", "ends", "."]),
        ("cats vs. dogs", ["cats", "vs.", "dogs"]),
        ("wait ... what", ["wait", "...", "what"]),
        ("1,000 cats, 3 dogs", ["1,000", "cats", ",", "3", "dogs"]),
        ("22\u00a03/4", ["22", "3", "/", "4"]),
        ("a\x0bb", ["a\x0bb"]),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert Normalizer({"vs": False}).words(line) == words


@given(st.text(alphabet="abcxyz0189 "))
def test_plain_captions_take_a_short_cut_to_the_same_words(line: str) -> None:
    normalizer = Normalizer({})
    assert normalizer.words(line) == words_of(normalizer.normalized(line).lower())


@pytest.mark.parametrize(
    ("word", "key"),
    [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("racquet", 968142823), ("😀é", 54960102)],
)
def test_keys_are_javas_hashes(word: str, key: int) -> None:
    assert key_of(word) == key
