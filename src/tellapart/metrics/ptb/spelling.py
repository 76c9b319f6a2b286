"""What the tokenizer writes for what it matched: Penn Treebank spelling."""

from __future__ import annotations

import re

_SOFT_HYPHEN = "\u00ad"
# What Java takes for one word round a sigma: no ideographs, and hyphens and the like only between letters.
_SIGMA_RUN = re.compile(
    r"((?![\u3040-\u30ff\u3400-\u9fff])[\w\u0300-\u036f]|(?<=[^\W\d]|[\u0300-\u036f])[.'\u00ad-](?=[^\W\d]))+"
)
_AMPERSAND = re.compile("&amp;", re.IGNORECASE)

# The C1 controls among the quotation marks are those of Windows-1252, taken for Unicode by mistake.
_QUOTES = {
    "\u0091\u2018\u201b\u2039": "`",
    "\u0092\u2019\u203a": "'",
    "\u0093\u201c\u00ab": "``",
    "\u0094\u201d\u00bb": "''",
}
_CURLY = str.maketrans({mark: spelling for marks, spelling in _QUOTES.items() for mark in marks})
_CURRENCY = str.maketrans({"¢": "cents", "£": "#", "\u0080": "$", "¤": "$", "\u20a0": "$", "€": "$"})
_FRACTION = str.maketrans({"¼": "1/4", "½": "1/2", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"})
_BRACKETS = str.maketrans(
    {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
)
_PARENTHESES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def as_it_is(match: str) -> str:
    """The match itself."""
    return match


def nothing(match: str) -> str:
    """White space, and characters that no token is made of."""
    return ""


def dash(match: str) -> str:
    """Any dash is two hyphens."""
    return "--"


def ellipsis(match: str) -> str:
    """Any row of dots is three."""
    return "..."


def without_soft_hyphens(match: str) -> str:
    """Soft hyphens only say where a word may break; one that stands alone is a hyphen."""
    return match.replace(_SOFT_HYPHEN, "") or "-"


def with_ampersand(match: str) -> str:
    """`AT&amp;T` is AT&T."""
    return _AMPERSAND.sub("&", match)


def with_hard_spaces(match: str) -> str:
    """A token with spaces in it, such as "22 3/4", stays one token: the spaces become U+00A0."""
    return match.replace(" ", "\u00a0")


def opening_quotes(match: str) -> str:
    """Straight quotation marks at the beginning of a word."""
    return (
        match.replace("&apos;", "`")
        .replace("'", "`")
        .replace('"', "``")
        .replace("&quot;", "``")
        .translate(_CURLY)
    )


def closing_quotes(match: str) -> str:
    """Straight quotation marks anywhere else, and the apostrophes of 's and n't."""
    return match.replace("&apos;", "'").replace('"', "''").replace("&quot;", "''").translate(_CURLY)


def currency(match: str) -> str:
    """Cents in words, the pound as #, the euro and the currency sign as $; others stay."""
    return match.translate(_CURRENCY)


def fraction(match: str) -> str:
    """Quarters, halves and thirds in figures; others stay."""
    return match.translate(_FRACTION)


def bracket(match: str) -> str:
    """One bracket by its Treebank name."""
    return match.translate(_BRACKETS)


def with_named_parentheses(match: str) -> str:
    """A smiley: its parentheses get their Treebank names, other brackets stay."""
    return match.translate(_PARENTHESES)


def telephone(match: str) -> str:
    """A telephone number stays one token."""
    return with_named_parentheses(with_hard_spaces(match))


def comparison(match: str) -> str:
    """`&lt;` and `&gt;` as signs."""
    return {"&lt;": "<", "&gt;": ">"}.get(match.lower(), match)


def hyphens(match: str) -> str:
    """Three or four hyphens are a dash; a longer row is itself."""
    return "--" if len(match) in (3, 4) else match


def lower(word: str) -> str:
    """Small letters as Java writes them, which looks further round a capital sigma than Python does."""
    return (_SIGMA_RUN.sub(_lower_sigmas, word) if "Σ" in word else word).lower()


def _is_cased(letter: str) -> bool:
    return (letter.isupper() or letter.islower() or letter.istitle()) and letter not in "ªº"


def _lower_sigmas(match: re.Match[str]) -> str:
    """A sigma is final where it is the last cased letter, and not the only one, of one word."""
    run = match.group()
    cased = [at for at, letter in enumerate(run) if _is_cased(letter)]
    if len(cased) > 1 and run[cased[-1]] == "Σ":
        run = run[: cased[-1]] + "ς" + run[cased[-1] + 1 :]
    return run.replace("Σ", "σ")
