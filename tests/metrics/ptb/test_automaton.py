"""The longest-match machine against `re`, which knows the same expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.metrics.ptb.automaton import NO_RULE, Machine

LEAVES = st.sampled_from(["a", "b", "[ab]", "[^a]", "[a-b-]", r"\.", r"\x61", r"[\u0062c]"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = inner.map(lambda text: f"({text})")
    counted = st.builds("{}{}".format, grouped, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,3}"]))
    return st.one_of(
        counted, st.builds("{}{}".format, grouped, grouped), st.builds("{}|{}".format, inner, inner)
    )


EXPRESSIONS = st.recursive(LEAVES, combined, max_leaves=6)
TEXTS = st.text("abc.-", max_size=8)


@given(EXPRESSIONS, TEXTS)
def test_a_match_is_what_re_matches(expression: str, text: str) -> None:
    expected = [end for end in range(len(text) + 1) if re.fullmatch(expression, text[:end])]
    assert Machine({}, [(expression,)]).match_ends(text) == expected


@given(EXPRESSIONS, EXPRESSIONS, TEXTS)
def test_pieces_follow_one_another(head: str, tail: str, text: str) -> None:
    expected = [end for end in range(len(text) + 1) if re.fullmatch(f"({head})({tail})", text[:end])]
    assert Machine({}, [(head, tail)]).match_ends(text) == expected


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), TEXTS)
def test_the_earlier_rule_wins(expressions: list[str], text: str) -> None:
    machine = Machine({}, [(expression,) for expression in expressions])
    state = machine.start
    for character in text.translate(machine.classes):
        state = state[character]
    matching = [number for number, expression in enumerate(expressions) if re.fullmatch(expression, text)]
    assert state.rule == (matching[0] if matching else NO_RULE)


def test_names_stand_for_expressions_and_for_tests() -> None:
    machine = Machine({"digit": str.isdecimal, "year": "{digit}{2,4}"}, [("in {year} | [ ]{digit}",)])
    assert machine.match_ends("in1984") == [4, 5, 6]
    assert machine.match_ends(" 7") == [2]


def test_letters_match_both_cases_except_in_brackets() -> None:
    assert Machine({}, [("miss",)]).match_ends("MI\u017fS") == [4]
    assert Machine({}, [("[m]iss",)]).match_ends("Miss") == []


def test_a_state_that_nothing_leaves_is_closed() -> None:
    machine = Machine({}, [("ab",)])
    after = [machine.start]
    for character in "abc".translate(machine.classes):
        after.append(after[-1][character])
    assert [state.closed for state in after] == [False, False, True, True]
    assert [state.rule for state in after] == [NO_RULE, NO_RULE, 0, NO_RULE]


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="unexpected"):
        Machine({}, [("a)b",)])
