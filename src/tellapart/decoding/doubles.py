"""Words said twice in a row, taken out of a finished caption: Lindh et al. (2018) did before all measures."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TypeVar

Word = TypeVar("Word")


def without_doubles(words: Iterable[Word]) -> list[Word]:
    """The same words or tokens, each run of equal ones being one: "a a dog dog and a dog" loses two."""
    return [word for word, _ in groupby(words)]
