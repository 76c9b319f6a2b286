"""Captions as words, by the rules that each paper states.

An apostrophe joins what it stands between ("man's" is one word, "mans"), as in Karpathy's token lists;
every other mark that a rule strips parts words ("t-shirt" is "t" and "shirt"). Letters of all scripts are
letters. Equal text in different Unicode spellings gives equal words (NFC), and characters that nobody sees
are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from tellapart.registry import Config

Strip = Literal["punctuation", "non-letters", "blip"]
"""What goes: all but letters and digits, all but letters, or only the ten marks of BLIP's pre_caption."""


class TextRules(Config):
    """How a caption becomes words, and which words a vocabulary keeps."""

    lower: bool = True
    strip: Strip = "punctuation"
    keep_emoji: bool = False
    max_words: int = Field(default=30, ge=1)  # an emoji counts as a word
    min_count: int = Field(default=5, ge=1)  # rarer words are unknown ones


PRESETS: Mapping[str, TextRules] = MappingProxyType(
    {
        # Mao et al. say nothing; 30 words are the longest bucket of their code.
        "mrnn": TextRules(),
        # Dai & Lin: "non-alphabet characters except emojis are removed", so numbers go as well.
        "contrastive": TextRules(strip="non-letters", keep_emoji=True, max_words=18),
        # Lindh et al.: lower case, no punctuation, words seen fewer than 5 times are UNK.
        "specificity": TextRules(max_words=16),
        # Yue et al. take BLIP's pre_caption, which keeps commas, hyphens, apostrophes and emoji.
        "smile": TextRules(strip="blip", keep_emoji=True, max_words=30),
        # Fei & Huang say nothing.
        "unkt": TextRules(max_words=20),
    }
)
"""Rules by the name of the paper's method."""

# Whole blocks rather than the exact list, which grows with each Unicode version.
_PICTURE = (
    r"[\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u25fb-\u25fe\u2600-\u2767\u2794-\u27bf\u2b05-\u2b07\u2b1b\u2b1c"
    r"\u2b50\u2b55\U0001f000-\U0001f0ff\U0001f170-\U0001f19a\U0001f200-\U0001faff\U0001fc00-\U0001fffd]"
)
# Signs that are emoji only when a variation selector says so, such as © and ↔.
_SIGN = r"[©®‼⁉™ℹ↔-↙↩↪Ⓜ▪▫▶◀⤴⤵〰〽㊗㊙]\ufe0f"
_ELEMENT = rf"(?:{_PICTURE}|{_SIGN})[\U0001f3fb-\U0001f3ff\ufe0f]*(?:[\U000e0020-\U000e007e]+\U000e007f)?"
_FLAG = r"[\U0001f1e6-\U0001f1ff]{1,2}"
_KEYCAP = r"[0-9#*]\ufe0f?\u20e3"
_EMOJI = re.compile(rf"({_FLAG}|{_KEYCAP}|{_ELEMENT}(?:\u200d{_ELEMENT})*)")


def words(text: str, rules: TextRules) -> list[str]:
    """The words of a caption, at most `rules.max_words`; words joined by spaces give the same words again."""
    if text.isascii():
        found = _plain_words(text, rules)
    else:
        found = _words_and_emoji(unicodedata.normalize("NFC", text), rules)
    return found[: rules.max_words]


def _words_and_emoji(text: str, rules: TextRules) -> list[str]:
    found: list[str] = []
    for index, piece in enumerate(_EMOJI.split(text)):
        if index % 2 == 0:
            found.extend(_visible(_plain_words(piece, rules)))
        elif rules.keep_emoji:
            found.append(piece)
    return found


def _plain_words(text: str, rules: TextRules) -> list[str]:
    return (text.lower() if rules.lower else text).translate(_TABLES[rules.strip]).split()


def _visible(plain: list[str]) -> Iterator[str]:
    """The words without accents that lost their letter; taking characters out may call for composing anew."""
    for word in plain:
        if based := "".join(dropwhile(_is_mark, word)):
            yield unicodedata.normalize("NFC", based)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


class _Table(dict[int, str]):
    """A table for `str.translate` that is filled as characters are met."""

    def __init__(self, keeps: Callable[[str], bool]) -> None:
        super().__init__()
        self._keeps = keeps

    def __missing__(self, code: int) -> str:
        self[code] = self._replacement(chr(code))
        return self[code]

    def _replacement(self, character: str) -> str:
        category = unicodedata.category(character)
        if category == "Cf" or _is_variation_selector(character):
            return ""
        # Half a surrogate pair cannot be written to a file; an enclosing mark would make a keycap of a digit.
        if category in {"Cc", "Cs", "Me"}:
            return " "
        if self._keeps(character):
            return character
        return "" if character in "'’ʼ" else " "


def _is_variation_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _is_letter(character: str) -> bool:
    return character != "ʼ" and unicodedata.category(character)[0] in "LM"


def _is_letter_or_digit(character: str) -> bool:
    return _is_letter(character) or unicodedata.category(character)[0] == "N"


def _is_kept_by_blip(character: str) -> bool:
    return character not in '.!"()*#:;~'


_TABLES: Mapping[Strip, _Table] = {
    "punctuation": _Table(_is_letter_or_digit),
    "non-letters": _Table(_is_letter),
    "blip": _Table(_is_kept_by_blip),
}
