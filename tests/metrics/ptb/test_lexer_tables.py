"""The grammar against the tables inside the jar: both automata walked together, over all strings at once.

If no pair of states that some string leads to disagrees, no string does. That is a proof where random strings
are a sample; what it leaves open (where a token ends before its match does, and spelling) is compared live.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tellapart.metrics.ptb import spelling
from tellapart.metrics.ptb.automaton import NO_RULE, Machine, State
from tellapart.metrics.ptb.grammar import NAMES, RULES

LEXER = "edu/stanford/nlp/process/PTBLexer.class"
START = 2  # of the lexical state that these options lead to
LINE_ENDS = "\n\r\v\f\u2028\u2029"  # never reach our rules

# What the jar's actions do under these options: how the token is spelt, and whether something must follow it.
ACTIONS = {
    (spelling.nothing, False): [1, 5, 7, 23],
    (spelling.as_it_is, False): [3, 9, 19, 31, 33, 45, 52],
    (spelling.as_it_is, True): [24, 25, 41, 42, 43, 44, 47, 48, 50, 53],
    (spelling.without_soft_hyphens, False): [6, 12, 29],
    (spelling.without_soft_hyphens, True): [30, 32, 40, 46],
    (spelling.comparison, False): [2, 10],
    (spelling.hyphens, False): [4],
    (spelling.dash, False): [11],
    (spelling.ellipsis, False): [13],
    (spelling.fraction, False): [14],
    (spelling.currency, False): [15],
    (spelling.bracket, False): [16, 17, 18, 20, 21, 22],
    (spelling.closing_quotes, False): [8],
    (spelling.closing_quotes, True): [36],
    (spelling.opening_quotes, True): [26, 35],
    (spelling.with_hard_spaces, False): [27, 38, 39],
    (spelling.with_named_parentheses, False): [28],
    (spelling.with_named_parentheses, True): [34],
    (spelling.with_ampersand, False): [37],
    (spelling.with_ampersand, True): [51],
    (spelling.telephone, False): [54],
}
MEANING = {action: meaning for meaning, actions in ACTIONS.items() for action in actions}
FULL_STOP_TWICE = (
    49  # an abbreviation at the end of a sentence: the same token, and a full stop nobody scores
)


@dataclass(frozen=True)
class Tables:
    """The jar's automaton."""

    classes: list[int]
    rows: list[int]
    moves: list[int]
    actions: list[int]
    attributes: list[int]

    def step(self, state: int, character: str) -> int:
        return self.moves[self.rows[state] + self.classes[ord(character)]] if state >= 0 else -1

    def accepts(self, state: int) -> bool:
        return state >= 0 and self.attributes[state] & 1 == 1

    def action(self, state: int) -> int:
        """The action of what was read so far; 0 if no rule matches it."""
        return self.actions[state] if self.accepts(state) else 0


def string_constants(file: bytes) -> dict[str, str]:
    """The string constants of a Java class, by field (JVM specification, chapter 4)."""
    pool: dict[int, bytes | int] = {}
    at, number = 10, 1
    while number < int.from_bytes(file[8:10]):
        tag = file[at]
        if tag == 1:
            length = int.from_bytes(file[at + 1 : at + 3])
            pool[number] = file[at + 3 : at + 3 + length]
            at += 3 + length
        else:
            pool[number] = int.from_bytes(file[at + 1 : at + 3])
            at += {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 15: 4, 16: 3}.get(tag, 5)
        number += 2 if tag in (5, 6) else 1

    def short(offset: int) -> int:
        return int.from_bytes(file[offset : offset + 2])

    def text(index: int) -> str:
        entry = pool[index]
        raw = entry if isinstance(entry, bytes) else pool[entry]
        assert isinstance(raw, bytes)
        return raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")

    at += 8 + 2 * short(at + 6)  # past flags, class, superclass and interfaces
    found: dict[str, str] = {}
    fields, at = short(at), at + 2
    for _ in range(fields):
        name, attributes, at = text(short(at + 2)), short(at + 6), at + 8
        for _ in range(attributes):
            length = int.from_bytes(file[at + 2 : at + 6])
            if text(short(at)) == "ConstantValue" and isinstance(pool.get(pool_index := short(at + 6)), int):
                found[name] = text(pool_index) if name.startswith("ZZ_") and "PACKED" in name else ""
            at += 6 + length
    return found


def runs(packed: Sequence[str]) -> Iterator[int]:
    """Numbers packed as how often and what."""
    for piece in packed:
        for count, value in zip(piece[::2], piece[1::2], strict=True):
            yield from [ord(value)] * ord(count)


@pytest.fixture(scope="module")
def tables(jar: Path) -> Tables:
    with zipfile.ZipFile(jar) as file:
        constants = string_constants(file.read(LEXER))
    rows = constants["ZZ_ROWMAP_PACKED_0"]
    moves = [constants[name] for name in sorted(constants) if name.startswith("ZZ_TRANS_PACKED")]
    return Tables(
        classes=list(runs([constants["ZZ_CMAP_PACKED"]])),
        rows=[(ord(high) << 16) + ord(low) for high, low in zip(rows[::2], rows[1::2], strict=True)],
        moves=[move - 1 for move in runs(moves)],
        actions=list(runs([constants["ZZ_ACTION_PACKED_0"]])),
        attributes=list(runs([constants["ZZ_ATTRIBUTE_PACKED_0"]])),
    )


def alphabet(tables: Tables, machine: Machine) -> dict[str, str]:
    """One character for every class that either automaton tells apart, and what ours knows it by."""
    found: dict[tuple[int, str], str] = {}
    for code in range(0x10000):
        if chr(code) not in LINE_ENDS:
            found.setdefault((tables.classes[code], machine.classes[code]), chr(code))
    return {character: known_by for (_, known_by), character in found.items()}


def walk(tables: Tables, machine: Machine, start: int) -> Iterator[tuple[str, int, State]]:
    """Every pair of states that one string leads to, with the shortest such string."""
    characters = alphabet(tables, machine)
    pairs: list[tuple[str, int, State]] = [("", start, machine.start)]
    seen = {(start, machine.start.positions)}
    for string, theirs, ours in pairs:
        for character, known_by in characters.items():
            pair = string + character, tables.step(theirs, character), ours[known_by]
            if (pair[1], pair[2].positions) not in seen and (pair[1] >= 0 or pair[2].positions):
                seen.add((pair[1], pair[2].positions))
                pairs.append(pair)
                yield pair


def test_the_tables_are_all_there(tables: Tables) -> None:
    assert len(tables.classes) == 0x10000
    assert len(tables.rows) == len(tables.actions) == len(tables.attributes) == 4058
    assert max(tables.rows) + max(tables.classes) < len(tables.moves)
    assert set(tables.actions) <= {0, FULL_STOP_TWICE, *MEANING}


def test_every_string_leads_both_automata_to_the_same_rule(tables: Tables) -> None:
    machine = Machine(NAMES, [(rule.token, rule.followed_by) for rule in RULES])
    different = []
    count = 0
    for string, theirs, ours in walk(tables, machine, START):
        count += 1
        action = tables.action(theirs)
        meaning = (
            None if ours.rule == NO_RULE else (RULES[ours.rule].spelling, bool(RULES[ours.rule].followed_by))
        )
        if action != FULL_STOP_TWICE and MEANING.get(action) != meaning:
            different.append((string, action, meaning))
    assert different[:10] == []
    assert count > 4000


# Where the jar has to search for the end of a token, it walks these: the token alone, from these states.
@pytest.mark.parametrize(
    ("start", "followed_by"),
    [(3, "{clitic}"), (5, "{not}"), (9, "{gap}?{digit}"), (13, "{gap}"), (16, "{gap}|[.?!,]")],
)
def test_tokens_that_something_follows_are_the_same_without_it(
    start: int, followed_by: str, tables: Tables
) -> None:
    token = next(rule.token for rule in RULES if rule.followed_by == followed_by)
    pairs = list(walk(tables, Machine(NAMES, [(token,)]), start))
    assert pairs
    assert [string for string, theirs, ours in pairs if tables.accepts(theirs) != (ours.rule == 0)] == []
