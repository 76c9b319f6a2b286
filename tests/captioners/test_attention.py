"""Words attend to themselves and to those before them, however they come."""

from __future__ import annotations

import pytest
import torch

from tellapart.captioners.attention import CausalAttention

WORDS = 7


@pytest.fixture(scope="module")
def attention() -> CausalAttention:
    torch.manual_seed(0)
    return CausalAttention(width=12, heads=3).double()


@pytest.mark.parametrize("parts", [(7,), (3, 4), (1, 5, 1), (1,) * WORDS])
def test_words_in_several_goes_are_words_at_once(attention: CausalAttention, parts: tuple[int, ...]) -> None:
    words = torch.randn(2, WORDS, 12, dtype=torch.double)
    expected, _ = attention(words, attention.empty(2))
    past, found = attention.empty(2), []
    for some in torch.split_with_sizes(words, parts, dim=1):
        mixed, past = attention(some, past)
        found.append(mixed)
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


def test_no_word_sees_a_later_one(attention: CausalAttention) -> None:
    words = torch.randn(1, WORDS, 12, dtype=torch.double, requires_grad=True)
    mixed, _ = attention(words, attention.empty(1))
    (moved,) = torch.autograd.grad(mixed[0, 3].sum(), words)
    assert not moved[0, 4:].any()
    assert moved[0, :4].abs().sum(-1).all()
