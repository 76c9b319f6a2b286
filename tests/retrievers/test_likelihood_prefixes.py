"""The beginnings of captions: each once, in order, and sums along the captions' paths."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from hypothesis import given
from hypothesis import strategies as st

from tellapart.retrievers.likelihood.prefixes import Prefixes

CAPTIONS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=6).map(lambda words: (9, *words)),
    min_size=1,
    max_size=12,
)


def spelt(prefixes: Prefixes) -> list[tuple[int, ...]]:
    """Every beginning as its tokens, by following the parents."""
    found: list[tuple[int, ...]] = []
    for node, (token, parent) in enumerate(
        zip(prefixes.tokens.tolist(), prefixes.parents.tolist(), strict=True)
    ):
        found.append((token,) if parent == node else (*found[parent], token))
    return found


@given(CAPTIONS)
def test_every_beginning_is_there_once(captions: Sequence[tuple[int, ...]]) -> None:
    prefixes = Prefixes.of(captions)
    beginnings = spelt(prefixes)
    assert len(set(beginnings)) == len(beginnings) == len(prefixes)
    assert set(beginnings) == {caption[:end] for caption in captions for end in range(1, len(caption) + 1)}
    assert [beginnings[node] for node in prefixes.captions.tolist()] == list(captions)
    followed = {caption[:end] for caption in captions for end in range(1, len(caption))}
    assert [beginnings[node] for node in prefixes.read.tolist()] == sorted(
        followed, key=lambda beginning: (len(beginning), beginning)
    )


@given(CAPTIONS, st.integers(1, 5))
def test_what_follows_stands_together(captions: Sequence[tuple[int, ...]], count: int) -> None:
    prefixes = Prefixes.of(captions)
    beginnings = spelt(prefixes)
    met = []
    for first in range(0, len(prefixes.read), count):
        read = {beginnings[node] for node in prefixes.read[first : first + count].tolist()}
        then = prefixes.following(first, first + count)
        assert {beginning[:-1] for beginning in beginnings[then]} == read
        met += beginnings[then]
    assert met == beginnings[prefixes.begins[1] :]


@given(CAPTIONS)
def test_levels_are_read_from_their_parents(captions: Sequence[tuple[int, ...]]) -> None:
    prefixes = Prefixes.of(captions)
    beginnings = spelt(prefixes)
    before: list[tuple[int, ...]] = [()]
    read: list[tuple[int, ...]] = []
    for level in prefixes.levels():
        assert level.first == len(read)
        before = [
            (*before[parent], token)
            for parent, token in zip(level.parents.tolist(), level.tokens.tolist(), strict=True)
        ]
        read += before
    assert read == [beginnings[node] for node in prefixes.read.tolist()]


@given(CAPTIONS)
def test_totals_are_sums_along_the_path(captions: Sequence[tuple[int, ...]]) -> None:
    prefixes = Prefixes.of(captions)
    steps = torch.rand(len(prefixes), 2, dtype=torch.float64)
    of = dict(zip(spelt(prefixes), steps, strict=True))
    kept = steps.clone()
    for caption, total in zip(captions, prefixes.totals(steps), strict=True):
        path = [of[caption[:end]] for end in range(2, len(caption) + 1)]
        assert torch.allclose(total, torch.stack(path).sum(0), atol=1e-12)
    assert torch.equal(steps, kept)
