"""How a beam is filled where words are required: in turns, from banks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.decoding.material import TEXT, captioner, read, see

from tellapart.decoding.required import Required, in_turns
from tellapart.decoding.rules import Rule
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam, greedy
from tellapart.errors import TellapartError


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4), st.integers(0, 12))
def test_each_bank_gives_its_best_in_turn(seed: int, width: int, banks: int, impossible: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    compared = torch.randn(2, 20, generator=generator, dtype=torch.float64)
    compared[:, torch.randperm(20, generator=generator)[: 1 + impossible]] = -torch.inf
    bank = torch.randint(banks, (2, 20), generator=generator)
    found = in_turns(compared, bank, banks=banks, width=width)
    for row in range(2):
        values, places = compared[row].tolist(), bank[row].tolist()
        real = [one for one in range(20) if values[one] > -float("inf")]
        turns = sorted(
            real,
            key=lambda one: (
                sum(places[other] == places[one] and values[other] > values[one] for other in real),
                -values[one],
            ),
        )
        chosen = found[row].tolist()
        assert [one for one in chosen if values[one] > -float("inf")] == turns[:width]
        assert len(chosen) == width


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_with_one_bank_they_are_the_best(seed: int, width: int) -> None:
    compared = torch.randn(3, 20, generator=torch.Generator().manual_seed(seed))
    found = in_turns(compared, torch.zeros(3, 20, dtype=torch.long), banks=1, width=width)
    assert torch.equal(found, compared.topk(width).indices)


def test_banks_find_the_best_caption_more_often_than_a_beam_that_puts_words_off() -> None:
    """The same rule is handed over in a wrapping, by which nobody knows that it requires words."""
    required = Required.of(TEXT, ["c", "b"], max_words=4)
    hidden: Rule = lambda scores, tokens: required(scores, tokens)  # noqa: E731
    hits = {"banks": 0, "none": 0}
    for seed in range(25):
        model, vision = captioner(seed), see(1, seed)
        (best, _), *_ = read(beam(model, vision, width=400, max_words=4, rules=[required]))
        for name, rule in (("banks", required), ("none", hidden)):
            (found, _), *_ = read(beam(model, vision, width=6, max_words=4, rules=[rule]))
            hits[name] += found == best
    assert hits["banks"] > 1.5 * hits["none"] > 0


def test_rules_of_required_words_that_cannot_count_are_refused() -> None:
    model, vision = captioner(1), see(1)
    one, other = (Required.of(TEXT, [word], max_words=5) for word in "ab")
    refused: list[tuple[list[Rule], int, str]] = [
        ([one, other], 5, "2 rules of required words"),
        ([one], 4, "counts on 5 words, a caption has 4"),
    ]
    for rules, longest, said in refused:
        with pytest.raises(TellapartError, match=said):
            greedy(model, vision, max_words=longest, rules=rules)
        own = image_generators("x", seed=1)
        with pytest.raises(TellapartError, match=said):
            sample(model, vision, Sampling(1), generators=own, max_words=longest, rules=rules)
