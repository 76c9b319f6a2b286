r"""METEOR's own second tokenizer (the jar's `-norm`): what it makes of a line that is tokenized already.

The steps and their order are the jar's: they were found in its byte code and are tested against it. They
lean on details of Java that differ from Python's: `\s`, `\p{Digit}` and `\p{Lower}` are ASCII only, and a
line is split at blanks, tabs, line ends and form feeds and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# ASCII and Latin letters, Cyrillic, and phonetic extensions: no other letter counts as one.
_LETTERS = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_SPACES = " \\t\\n\\x0b\\f\\r"

_UNTOUCHED = re.compile("[a-z0-9 ]*")
_SEPARATE = re.compile(f"([^0-9{_LETTERS}{_SPACES}.'`,\\-‘’])")
_DOTS = re.compile(r"\.(\.+)")
_LAST_DOT = re.compile(r"DOTMULTI\.([^.])")
_COMMAS = (
    re.compile("([^0-9]),([^0-9])"),
    re.compile("([0-9]),([^0-9])"),
    re.compile("([^0-9]),([0-9])"),
)
_SINGLE_QUOTES = re.compile("[`‘’]")
_DOUBLE_QUOTES = re.compile("[“”]|''")
_DASH_IN_WORD = re.compile(f"([0-9{_LETTERS}.])-([0-9{_LETTERS}])")
_APOSTROPHES = (
    (re.compile(f"([^{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
    (re.compile(f"([^{_LETTERS}0-9])'([{_LETTERS}])"), r"\1 ' \2"),
    (re.compile(f"([{_LETTERS}])'([^{_LETTERS}])"), r"\1 ' \2"),
    (re.compile(f"([{_LETTERS}])'([{_LETTERS}])"), r"\1 '\2"),
    (re.compile("([0-9])'(s)"), r"\1 '\2"),
)
_LETTER = re.compile(f"[{_LETTERS}]")
_WIDE_SPACES = re.compile("[ \u2000-\u200a\u202f\u205f\u3000\u00a0]+")
_BREAKS = re.compile("[ \\t\\n\\r\\f]+")

_TRIMMED = "".join(map(chr, range(33)))  # Java's trim takes every control character for a blank


class Normalizer:
    """Turns lines into the words that METEOR aligns; `prefixes` are abbreviations whose dot stays on.

    A prefix maps to whether its dot stays only in front of a number.
    """

    def __init__(self, prefixes: Mapping[str, bool]) -> None:
        self.prefixes = prefixes

    def words(self, line: str) -> list[str]:
        """The words of a line, in lower case."""
        if _UNTOUCHED.fullmatch(line):
            return line.split()
        return words_of(self.normalized(line).lower())

    def normalized(self, line: str) -> str:
        """The line with punctuation set apart, quotes and dashes unified; its case stays."""
        text = _separated(f" {line.strip(_TRIMMED)} ")
        words = words_of(text)
        text = " ".join(
            self._dotted(word, following) for word, following in zip(words, [*words[1:], ""], strict=False)
        )
        while "DOTDOTMULTI" in text:
            text = text.replace("DOTDOTMULTI", "DOTMULTI.")
        text = text.replace("DOTMULTI", ".")
        return _WIDE_SPACES.sub(" ", text).strip(_TRIMMED)

    def _dotted(self, word: str, following: str) -> str:
        """A word with its final dot dropped (`U.S.`), kept (`vs.`) or set apart (`end .`)."""
        if len(word) < 2 or not word.endswith("."):
            return word
        stem = word[:-1]
        if "." in stem and _LETTER.search(stem):
            return word.replace(".", "")
        only_numbers = self.prefixes.get(stem)
        if only_numbers is False or "a" <= following[:1] <= "z":
            return word
        if only_numbers and "0" <= following[:1] <= "9":
            return word
        return f"{stem} ."


def _separated(text: str) -> str:
    text = _SEPARATE.sub(r" \1 ", text)
    # Runs of dots are spelled out, so that no single dot of them is taken for the end of a sentence.
    text = _DOTS.sub(r" DOTMULTI\1", text)
    while "DOTMULTI." in text:
        text = _LAST_DOT.sub(r"DOTDOTMULTI \1", text)
        text = text.replace("DOTMULTI.", "DOTDOTMULTI")
    for comma in _COMMAS:
        text = comma.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTES.sub(' " ', _SINGLE_QUOTES.sub("'", text))
    text = text.replace("–", "-").replace("--", "-")
    text = _DASH_IN_WORD.sub(r"\1 \2", text)
    for apostrophe, replacement in _APOSTROPHES:
        text = apostrophe.sub(replacement, text)
    return text


def words_of(text: str) -> list[str]:
    """Split as Java's StringTokenizer does: a vertical tab or a no-break space separates nothing."""
    return [word for word in _BREAKS.split(text) if word]
