r"""A longest-match machine: regular expressions in, a lazily built deterministic automaton out.

`re` takes the first alternative that matches; a lexer takes the longest one over all its rules. This machine
does the latter in one pass, by positions (Glushkov): every character set written in an expression is one
position, a state is the set of positions that may come next, kept as the bits of one integer, and a state's
successors are worked out the first time a text asks for them. Nothing is built that no text needs.

The notation is that of `re` with four differences: white space outside brackets means nothing, `{name}`
stands for another expression, letters outside brackets match both cases, and there is neither `^`, `$`, `.`
nor a backslash class. Inside brackets, case counts; `\uXXXX` and `\xXX` name characters everywhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

NO_RULE = -1

Membership = Callable[[str], bool]

# Unicode folds these into ASCII letters, and so does a lexer that ignores case.
_OTHER_CASES = {"s": "\u017f", "k": "\u212a", "i": "\u0130\u0131"}


@dataclass(frozen=True)
class _Part:
    """A piece of an expression: where it may begin and end, and whether it may be empty."""

    empty: bool
    first: int
    last: int


class Expressions:
    """Expressions compiled side by side into one table of positions.

    Args:
        names: what `{name}` stands for: another expression, or a test of one character.
    """

    def __init__(self, names: Mapping[str, str | Membership]) -> None:
        self.names = names
        self._sets: dict[str, int] = {}
        self._tests: list[Membership] = []
        self._holders: list[int] = []  # for each set: the positions that it labels
        self.follow: list[int] = []  # for each position: the positions that may come next

    def add(self, text: str) -> _Part:
        """Compile one expression; its positions are new ones."""
        return _Parser(self, text).whole()

    def concatenate(self, head: _Part, tail: _Part) -> _Part:
        """The expression of `head` and then `tail`."""
        self._link(head.last, tail.first)
        return _Part(
            empty=head.empty and tail.empty,
            first=head.first | tail.first if head.empty else head.first,
            last=head.last | tail.last if tail.empty else tail.last,
        )

    def end(self) -> _Part:
        """A position that no character leaves: reached when all before it was read."""
        self.follow.append(0)
        position = 1 << (len(self.follow) - 1)
        return _Part(empty=False, first=position, last=position)

    def allowed(self, character: str) -> int:
        """The positions whose set holds this character."""
        allowed = 0
        for holds, positions in zip(self._tests, self._holders, strict=True):
            if holds(character):
                allowed |= positions
        return allowed

    def leaf(self, key: str, make_test: Callable[[str], Membership]) -> _Part:
        """A new position for one character of the set written as `key`."""
        number = self._sets.setdefault(key, len(self._sets))
        if number == len(self._tests):
            self._tests.append(make_test(key))
            self._holders.append(0)
        part = self.end()
        self._holders[number] |= part.first
        return part

    def repeat(self, part: _Part) -> _Part:
        """The expression once or more."""
        self._link(part.last, part.first)
        return part

    def _link(self, sources: int, targets: int) -> None:
        while sources:
            lowest = sources & -sources
            self.follow[lowest.bit_length() - 1] |= targets
            sources ^= lowest


_NOTHING = _Part(empty=True, first=0, last=0)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


class _Parser:
    """Recursive descent over one expression."""

    def __init__(self, table: Expressions, text: str) -> None:
        self._table = table
        self._text = text
        self._at = 0

    def spans(self) -> Iterator[tuple[str, str]]:
        """The text as the inside of brackets: first and last character of every span."""
        while self._at < len(self._text):
            low = high = self._character()
            if self._text[self._at : self._at + 1] == "-" and self._at + 1 < len(self._text):
                self._at += 1
                high = self._character()
            yield low, high

    def whole(self) -> _Part:
        """The text as one expression."""
        part = self._choice()
        if self._at < len(self._text):
            raise ValueError(f"unexpected {self._text[self._at]!r} at {self._at} of {self._text!r}")
        return part

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at] in " \n":
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _choice(self) -> _Part:
        part = self._sequence()
        while self._peek() == "|":
            self._at += 1
            other = self._sequence()
            part = _Part(part.empty or other.empty, part.first | other.first, part.last | other.last)
        return part

    def _sequence(self) -> _Part:
        part = _NOTHING
        while self._peek() not in ("", "|", ")"):
            part = self._table.concatenate(part, self._repeated())
        return part

    def _repeated(self) -> _Part:
        start = self._at
        part = self._atom()
        mark = self._peek()
        if mark in ("*", "+"):
            self._at += 1
            part = self._table.repeat(part)
        if mark == "?":
            self._at += 1
        if mark in ("*", "?"):
            return _Part(True, part.first, part.last)
        if mark == "{" and self._text[self._at + 1].isdigit():
            return self._counted(part, start)
        return part

    def _counted(self, part: _Part, start: int) -> _Part:
        """`x{2,4}` is written out as xx(x(x)?)?: every copy has positions of its own."""
        close = self._text.index("}", self._at)
        least, _, most = self._text[self._at + 1 : close].partition(",")
        copies = [part]
        for _ in range(int(most or least) - 1):
            self._at = start
            copies.append(self._atom())
        self._at = close + 1
        result = _NOTHING
        for number, copy in reversed(list(enumerate(copies))):
            result = self._table.concatenate(copy, result)
            if number >= int(least):
                result = _Part(True, result.first, result.last)
        return result

    def _atom(self) -> _Part:
        symbol = self._peek()
        if symbol == "(":
            self._at += 1
            part = self._choice()
            self._at += 1
            return part
        if symbol == "[":
            return self._brackets()
        if symbol == "{":
            return self._named()
        character = self._character()
        return self._table.leaf(character.lower(), _either_case)

    def _named(self) -> _Part:
        close = self._text.index("}", self._at)
        name = self._text[self._at + 1 : close]
        self._at = close + 1
        meaning = self._table.names[name]
        if isinstance(meaning, str):
            return self._table.add(meaning)
        return self._table.leaf(f"{{{name}}}", lambda _: meaning)

    def _character(self) -> str:
        character = self._text[self._at]
        self._at += 1
        if character != "\\":
            return character
        kind = self._text[self._at]
        self._at += 1
        digits = {"u": 4, "x": 2}.get(kind, 0)
        if not digits:
            return _ESCAPES.get(kind, kind)
        self._at += digits
        return chr(int(self._text[self._at - digits : self._at], 16))

    def _brackets(self) -> _Part:
        start = self._at
        self._at += 1
        while self._text[self._at] != "]":
            self._character()
        self._at += 1
        return self._table.leaf(self._text[start : self._at], _bracketed)


def _either_case(character: str) -> Membership:
    return {character, character.upper(), *_OTHER_CASES.get(character, "")}.__contains__


def _bracketed(text: str) -> Membership:
    """The test that `[a-z]` or `[^a-z]` stands for."""
    inverted = text[1] == "^"
    edges: list[int] = []  # inside from an even one to the odd one after it
    for low, high in sorted(_Parser(Expressions({}), text[1 + inverted : -1]).spans()):
        if edges and ord(low) <= edges[-1]:
            edges[-1] = max(edges[-1], ord(high) + 1)
        else:
            edges += [ord(low), ord(high) + 1]
    return lambda character: bisect_right(edges, ord(character)) % 2 != inverted


class State(dict[str, "State"]):
    """A state of the automaton: a class of characters, by one of them -> next state, filled in as texts ask.

    `rule` is the first rule that what was read so far satisfies, or NO_RULE; `closed` says that nothing leads
    further.
    """

    __slots__ = ("closed", "machine", "positions", "rule")

    def __init__(self, machine: Machine, positions: int) -> None:
        super().__init__()
        self.machine = machine
        self.positions = positions
        accepted = positions & machine.ends
        self.rule = machine.rules[accepted & -accepted] if accepted else NO_RULE
        self.closed = positions == accepted

    def __missing__(self, representative: str) -> State:
        return self.machine.step(self, representative)


class Machine:
    """An automaton over expressions, each given in pieces that follow one another.

    The number of an expression is its rule: among matches of equal length, the lowest wins.

    Args:
        names: what `{name}` stands for in the expressions.
        expressions: the rules, in order.
    """

    def __init__(self, names: Mapping[str, str | Membership], expressions: Sequence[tuple[str, ...]]) -> None:
        self._table = Expressions(names)
        self._states: dict[int, State] = {}
        self._allowed: dict[str, int] = {}
        self.classes = _Classes(self._table, self._allowed)
        self.rules: dict[int, int] = {}  # end position -> rule
        first = 0
        for rule, pieces in enumerate(expressions):
            parts = [self._table.add(piece) for piece in pieces]
            end = self._table.end()
            self.rules[end.first] = rule
            first |= reduce(self._table.concatenate, [*parts, end]).first
        self.ends = sum(self.rules)
        self.start = self._state(first)

    def step(self, state: State, representative: str) -> State:
        """The state after one more character, worked out once."""
        active = state.positions & self._allowed[representative]
        positions = 0
        while active:
            lowest = active & -active
            positions |= self._table.follow[lowest.bit_length() - 1]
            active ^= lowest
        following = state[representative] = self._state(positions)
        return following

    def _state(self, positions: int) -> State:
        state = self._states.get(positions)
        if state is None:
            state = self._states[positions] = State(self, positions)
        return state

    def after(self, text: str) -> State:
        """The state that a text leads to; the machine keeps it for good."""
        state = self.start
        for representative in text.translate(self.classes):
            state = state[representative]
        return state

    def match_ends(self, text: str) -> list[int]:
        """Every length of `text` from its beginning that some rule matches, shortest first."""
        state = self.start
        ends = [] if state.rule == NO_RULE else [0]
        for length, representative in enumerate(text.translate(self.classes), 1):
            state = state[representative]
            if state.rule != NO_RULE:
                ends.append(length)
        return ends


class _Classes(dict[int, str]):
    """Code point -> the first character seen that no expression tells apart from it."""

    def __init__(self, table: Expressions, allowed: dict[str, int]) -> None:
        super().__init__()
        self._table = table
        self._allowed = allowed
        self._representatives: dict[int, str] = {}

    def __missing__(self, code: int) -> str:
        character = chr(code)
        positions = self._table.allowed(character)
        representative = self._representatives.setdefault(positions, character)
        self._allowed.setdefault(representative, positions)
        self[code] = representative
        return representative
