"""Laws of the tokenizer that need no other program."""

from __future__ import annotations

import string
import time
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tellapart.metrics.ptb import tokenizer
from tellapart.metrics.ptb.tokenizer import tokenize, tokenize_all

ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=60)
CAPTIONS = st.text(
    st.sampled_from(string.ascii_letters + string.digits + "      .,'\"-/&<>()!?:;#$%@_="), max_size=60
)


@cache
def forgetful() -> tokenizer._Lexer:
    """A lexer that reads every text from end to end, and learns nothing of its stretches."""
    lexer = tokenizer._Lexer()
    lexer._settle = lambda stretch, following: None  # type: ignore[method-assign]
    return lexer


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", ""),
        ("   ", ""),
        ("... -- !", ""),
        ("A dog's life isn't bad.", "a dog 's life is n't bad"),
        ("Two (2) men cannot, I'm gonna", "two -lrb- 2 -rrb- men can not i 'm gon na"),
        ("5¢ £5 €5 “hi” … — AT&amp;T", "5 cents # 5 $ 5 hi at&t"),
        ("grey colour theatre", "grey colour theatre"),
        ("😀 x😀y", "x y"),
        ("http://x.y/😀z", "http://x.y/😀z"),
    ],
)
def test_examples(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


def test_a_token_may_hold_a_hard_space() -> None:
    assert tokenize("exactly 22 3/4 inches") == ["exactly", "22\u00a03/4", "inches"]


def test_the_end_of_a_sentence_parts_a_letter_from_its_full_stop() -> None:
    assert tokenize("A street with a sign that reads K.")[-1] == "k"
    assert tokenize("a street with a sign that reads K.")[-1] == "k."


@given(ANYTHING)
@example("\ud83d")
@example("http://a\udc00b")
@example("\ud83d\ude00"[::-1])
def test_any_string_has_tokens(text: str) -> None:
    tokens = tokenize(text)
    assert not {"", ".", ",", "!", "?", ":", ";", "-", "--", "...", "'", "''", "`", "``"} & set(tokens)
    for token in tokens:
        assert " " not in token
        assert token == token.lower()
        token.encode()


@given(CAPTIONS, CAPTIONS, st.sampled_from(["\n", "\r", "\r\n", "\v", "\f", "\u2028", "\u2029"]))
def test_line_ends_inside_a_caption_are_spaces(before: str, after: str, end: str) -> None:
    assert tokenize(before + end + after) == tokenize(f"{before} {after}")
    assert tokenize_all([before + end + after, "next"])[1:] == [["next"]]


@given(CAPTIONS, st.sampled_from(["\n", "\r\n", " ", "  "]), st.sampled_from(["\n", "\r\n", " ", "  "]))
def test_white_space_round_a_caption_means_nothing(text: str, before: str, after: str) -> None:
    assert tokenize(before + text + after) == tokenize(text)


@given(st.lists(CAPTIONS | ANYTHING, max_size=5))
def test_many_captions_are_as_one(texts: list[str]) -> None:
    assert (
        tokenize_all(texts)
        == [tokenize(text) for text in texts]
        == [forgetful().tokens(text) for text in texts]
    )


@given(st.lists(st.text("bcdfghjklmpqrtvwxz", min_size=2), max_size=8))
def test_plain_words_are_their_own_tokens(words: list[str]) -> None:
    assert tokenize(" ".join(words)) == words
    assert tokenize(", ".join(word.upper() for word in words) + "!") == words


def test_memory_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"w{'abcdefghij'[number % 10]}{'xyz' * (number % 7)}, {number} of {number // 3}."
        for number in range(400)
    ]
    expected = tokenize_all(texts)
    monkeypatch.setattr(tokenizer, "_REMEMBERED", 20)
    lexer = tokenizer._Lexer()
    assert [lexer.tokens(text) for text in texts] == expected
    assert len(lexer._known) + len(lexer._unsettled) <= 20


@pytest.mark.parametrize("piece", ["A dog. ", "a,b.", "<!x", "a.b@", "9 9", "'", "x-", "K. The "])
def test_time_is_linear(piece: str) -> None:
    def seconds(count: int) -> float:
        lexer = tokenizer._Lexer()
        lexer.tokens(piece)
        started = time.process_time()
        lexer.tokens(piece * count)
        return time.process_time() - started

    short, long = min(seconds(1_000) for _ in range(3)), min(seconds(16_000) for _ in range(2))
    assert long < 60 * short, "16 times the length; squared it would be 256 times the time"


def test_plain_letters_before_a_space_are_one_word_but_for_six() -> None:
    # Every state that letters lead to, each by one word that leads there: what holds for it holds for all.
    grammar = tokenizer._lexer()._grammar
    words = {id(grammar.machine.start): ""}
    waiting = [(grammar.machine.start, "")]
    while waiting:
        state, word = waiting.pop(0)
        for letter in string.ascii_letters:
            following = state[letter.translate(grammar.machine.classes)]
            if id(following) not in words:
                words[id(following)] = word + letter
                waiting.append((following, word + letter))
    assert len(words) > 100
    for word in [word for word in words.values() if word]:
        reading = tokenizer._Reading(grammar, word, " ")
        is_one = list(reading.words()) == [word.lower()] and not reading.asked_for_more
        assert is_one != (word.lower() in tokenizer._TWO_WORDS), word
    for word in tokenizer._TWO_WORDS:
        assert len(list(tokenizer._Reading(grammar, word, " ").words())) == 2
