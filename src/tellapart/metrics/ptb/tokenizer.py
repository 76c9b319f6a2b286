"""The tokens of a caption as Stanford's PTB tokenizer gives them to COCO's scorers, without Java.

The authority is `stanford-corenlp-3.4.1.jar` as pycocoevalcap 1.2 calls it: `-preserveLines -lowerCase`, one
caption a line, and then COCO's list of punctuation marks dropped. `grammar` holds its rules, `automaton`
finds the longest match of any of them, `spelling` says what a match is written as.

**How it is fast.** A lexer's decision rests on the characters it has looked at and on nothing else. So each
stretch between two spaces is read once with one space after it; if the machine came to its decisions without
asking for more, they hold wherever that stretch stands, and it is remembered. A caption made of remembered
stretches costs one look-up a word; any other is read as a whole.

**How it was checked.** The tables of the jar's own automaton were walked together with this one, over every
character of the Basic Multilingual Plane: no string leads the two to different rules (a test does it again).
Where a token ends before the end of its match, and how it is spelt, was compared on real captions and on
random strings, live.

**Where it departs from the jar.** The jar sees a file, and what stands on the next line can change the end of
this one: "the letter K." ends in `k` before a caption that begins with "A" or "The", and in `k.` before
others. A caption here is read alone, with a guess at what follows it: a sentence ("A") after a caption that
begins like a sentence, nothing after any other. All of COCO val2017 and all but three captions of Flickr30k
come out as they do in a file. And line ends inside a caption are spaces, so captions never shift.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from tellapart.metrics.ptb.automaton import NO_RULE, Machine
from tellapart.metrics.ptb.grammar import NAMES, RULES
from tellapart.metrics.ptb.spelling import lower

# COCO's list, as far as lower-cased text can hold it: brackets are spelt -lrb-, and so they count as words.
_DROPPED = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

_LINE_END = re.compile("\r\n|[\n\v\f\r\u2028\u2029]")
_SENTENCE = re.compile(" *[A-Z][a-z]* ")
_HALF = re.compile("[\ud800-\udfff]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")

# What is taken to follow a caption: a sentence, or nothing. No other stretch is kept with as much after it.
_ENDINGS = (" A ", "   ")

_MARKED = re.compile("[A-Za-z]+[.,]")

# The only words of plain letters that the grammar does not leave as they are.
_TWO_WORDS = frozenset(["cannot", "gonna", "wanna", "gotta", "lemme", "gimme"])

_REMEMBERED = 1 << 17
_LONGEST_REMEMBERED = 40
_FAR = 256  # characters read in vain before it is worth remembering where they led
_STRIDE = 16


def tokenize(text: str) -> list[str]:
    """The words of one caption as COCO's scorers count them.

    Args:
        text: any string; line ends in it are spaces, half surrogate pairs are replacement characters.

    Returns:
        Lower-cased tokens without punctuation. A token may hold U+00A0 ("22 3/4" is one) but never a space.
    """
    return _lexer().tokens(text)


def tokenize_all(texts: Sequence[str]) -> list[list[str]]:
    """The words of many captions, each as `tokenize` gives them."""
    tokens = _lexer().tokens
    return [tokens(text) for text in texts]


class _Grammar:
    """The rules, compiled; those with something to follow them once more in two parts, when needed."""

    def __init__(self) -> None:
        self.machine = Machine(NAMES, [(rule.token, rule.followed_by) for rule in RULES])
        self._parts: dict[int, tuple[Machine, Machine]] = {}

    def token(self, rule: int, match: str) -> str:
        """The part of a match that is the token: the longest one whose rest may follow it."""
        if not RULES[rule].followed_by:
            return match
        if rule not in self._parts:
            self._parts[rule] = (
                Machine(NAMES, [(RULES[rule].token,)]),
                Machine(NAMES, [(RULES[rule].followed_by,)]),
            )
        token, followed_by = self._parts[rule]
        ends = reversed(token.match_ends(match))
        return next(match[:end] for end in ends if len(match) - end in followed_by.match_ends(match[end:]))


class _Reading:
    """One text, read from left to right.

    `asked_for_more` becomes true once a decision could have been another had the text gone on, or a token
    took of what follows.
    """

    def __init__(self, grammar: _Grammar, text: str, following: str) -> None:
        text = _as_java_sees(text)
        self._grammar = grammar
        self._text = text + _as_java_sees(following)
        self._shape = self._text.translate(grammar.machine.classes)
        self._end = len(text)
        self._in_vain: set[tuple[int, int]] = set()
        self.asked_for_more = False

    def words(self) -> Iterator[str]:
        """What is read, as it is spelt, white space and the like left out."""
        at = 0
        while at < self._end:
            rule, end = self._longest(at)
            token = self._grammar.token(rule, self._text[at:end])
            at += len(token)
            word = RULES[rule].spelling(token)
            if word:
                yield word.lower() if word.isascii() else lower(_unpaired(word))
        self.asked_for_more |= at > self._end

    def _longest(self, start: int) -> tuple[int, int]:
        """The rule of the longest match from here, and the end of that match."""
        shape, size, in_vain = self._shape, len(self._shape), self._in_vain
        state = self._grammar.machine.start
        rule, end, at = NO_RULE, start, start
        while at < size:
            state = state[shape[at]]
            at += 1
            if state.rule != NO_RULE:
                rule, end = state.rule, at
            if state.closed or (in_vain and (at, id(state)) in in_vain):
                break
        else:
            self.asked_for_more = True
        if at - end > _FAR:
            self._remember_in_vain(start, end, at)
        return rule, end

    def _remember_in_vain(self, start: int, end: int, stop: int) -> None:
        """Keep where a long search for more led, so that the next one ends there: time stays linear."""
        state = self._grammar.machine.start
        for at in range(start, stop):
            state = state[self._shape[at]]
            if at >= end and at % _STRIDE == 0:
                self._in_vain.add((at + 1, id(state)))


def _as_java_sees(text: str) -> str:
    return text if text.isascii() else _ASTRAL.sub(_pair, _HALF.sub("\ufffd", text))


def _pair(match: re.Match[str]) -> str:
    """A character beyond the Basic Multilingual Plane as the two halves that Java's lexer sees."""
    code = ord(match.group()) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def _unpaired(word: str) -> str:
    return word.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


class _Lexer:
    """The grammar, and what was learnt of the stretches between spaces.

    A stretch is remembered under its own text if that settles its tokens, else together with the first
    character after the space; the last of a caption, together with all that is taken to follow it.
    """

    def __init__(self) -> None:
        self._grammar = _Grammar()
        self._known: dict[str, tuple[str, ...]] = {}
        self._unsettled: set[str] = set()
        self._keeps_word: dict[tuple[int, str], bool] = {}  # by the state of a word, and what follows it

    def tokens(self, text: str) -> list[str]:
        """The words of one caption, from memory where it serves."""
        text = text.rstrip(" ")
        stretches = text.split(" ")
        stretches[-1] += _ending(text)
        try:
            return list(chain.from_iterable(map(self._known.__getitem__, stretches)))
        except KeyError:
            return self._read(_LINE_END.sub(" ", text).rstrip(" "))

    def _read(self, text: str) -> list[str]:
        *stretches, last = text.split(" ")
        found: list[str] = []
        for stretch, after in zip(stretches, [*stretches, last][1:], strict=True):
            tokens = self._known.get(stretch)
            if tokens is None:
                tokens = self._settle(stretch, " ")
            if tokens is None:
                tokens = self._settle(stretch, " " + (after[:1] or " "))
            if tokens is None:
                return _scored(self._words(text, _ending(text)))
            found += tokens
        tokens = self._settle(last, _ending(text))
        return _scored(self._words(text, _ending(text))) if tokens is None else found + list(tokens)

    def _words(self, text: str, ending: str) -> list[str]:
        words = list(_Reading(self._grammar, text, ending).words())
        if words:
            words[-1] = words[-1].rstrip()  # as pycocoevalcap does to every line
        return words

    def _settle(self, stretch: str, following: str) -> tuple[str, ...] | None:
        """The tokens of a stretch if they are certain once this much of what follows is known."""
        key = stretch if following == " " else stretch + following
        if key in self._unsettled or stretch[:1].isspace():  # the space before and other white space are one
            return None
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._work_out(stretch, following)
            if len(key) <= _LONGEST_REMEMBERED:
                self._remember(key, tokens)
        return tokens

    def _work_out(self, stretch: str, following: str) -> tuple[str, ...] | None:
        if stretch.isalpha() and stretch.isascii() and stretch.lower() not in _TWO_WORDS:
            return (stretch.lower(),)  # nothing in the grammar sees more in plain letters before a space
        if _MARKED.fullmatch(stretch):
            # Words that lead to the same state of the machine are read alike, whatever follows them.
            word = stretch[:-1].lower()
            kind = (id(self._grammar.machine.after(stretch[:-1])), stretch[-1] + following)
            if kind not in self._keeps_word:
                self._keeps_word[kind] = self._read_out(stretch, following) == (word,)
            if self._keeps_word[kind]:
                return (word,)
        return self._read_out(stretch, following)

    def _read_out(self, stretch: str, following: str) -> tuple[str, ...] | None:
        if following in _ENDINGS:
            words = self._words(stretch, following)
            return tuple(_scored(words)) if words else None  # then the end of the line is before this stretch
        reading = _Reading(self._grammar, stretch, following)
        tokens = tuple(_scored(list(reading.words())))
        return None if reading.asked_for_more else tokens

    def _remember(self, key: str, tokens: tuple[str, ...] | None) -> None:
        if len(self._known) + len(self._unsettled) >= _REMEMBERED:
            self._known.clear()
            self._unsettled.clear()
        if tokens is None:
            self._unsettled.add(key)
        else:
            self._known[key] = tokens


def _ending(text: str) -> str:
    return _ENDINGS[0] if _SENTENCE.match(text) else _ENDINGS[1]


def _scored(words: list[str]) -> list[str]:
    """Words without COCO's punctuation; one odd smiley of the grammar holds spaces, and they part it."""
    return [token for word in words for token in word.split(" ") if token and token not in _DROPPED]


@cache
def _lexer() -> _Lexer:
    return _Lexer()
