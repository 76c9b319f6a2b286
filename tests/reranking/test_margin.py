"""The laws of margins, and choices worked out by hand."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.reranking.margin import Choice, Terms, choose, margins, per_length

Scores = NDArray[np.float64]

# Sixteenths: equal and distinct values are so exactly, and sums are not rounded.
sixteenths = st.integers(-32, 32).map(lambda number: number / 16)


@st.composite
def candidates(draw: st.DrawFn, others: int = 1) -> tuple[Scores, Scores, NDArray[np.int64]]:
    """Closeness, log-probabilities and lengths."""
    count, pictures = draw(st.integers(1, 6)), draw(st.integers(1 + others, 5))
    closeness = [[draw(sixteenths) for _ in range(pictures)] for _ in range(count)]
    likely = [-abs(draw(sixteenths)) - 1 for _ in range(count)]
    return np.array(closeness), np.array(likely), np.array([draw(st.integers(1, 9)) for _ in range(count)])


terms = st.builds(
    Terms,
    weight=st.sampled_from([0.0, 0.5, 1.0]),
    temperature=st.sampled_from([0.0, 0.1, 1.0]),
    fit_weight=st.sampled_from([0.0, 0.05, 2.0]),
    fit_slack=st.sampled_from([0.0, 0.25, 1.0, math.inf]),
    closeness_slack=st.sampled_from([0.0, 0.5, math.inf]),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0]),
)


def by_hand(closeness: Scores, likely: Scores, lengths: NDArray[np.int64], rule: Terms) -> tuple[Any, ...]:
    """What decides about each candidate, in the order in which it does; the greatest is to be chosen."""
    fits = [value / length**rule.length_penalty for value, length in zip(likely, lengths, strict=True)]
    plain = max(range(len(fits)), key=lambda place: (fits[place], -place))
    keys = []
    for place, row in enumerate(closeness.tolist()):
        rival = max(row[1:])
        if rule.temperature:
            rival += rule.temperature * math.log(
                sum(math.exp((value - rival) / rule.temperature) for value in row[1:])
            )
        is_fit = fits[place] >= fits[plain] - rule.fit_slack
        is_close = row[0] >= closeness[plain, 0] - rule.closeness_slack
        keys.append((is_fit and is_close, row[0] - rule.weight * rival, fits[place]))
    return tuple(keys)


@given(candidates(), terms)
def test_choices_are_as_by_hand(given_: tuple[Scores, Scores, NDArray[np.int64]], rule: Terms) -> None:
    found, keys = choose(*given_, rule), by_hand(*given_, rule)
    assert found.eligible.tolist() == [is_eligible for is_eligible, _, _ in keys]
    np.testing.assert_allclose(found.margins, [margin for _, margin, _ in keys], atol=1e-12)
    np.testing.assert_allclose(found.fits, [fit for _, _, fit in keys])
    scores = [margin + rule.fit_weight * fit for _, margin, fit in keys]
    np.testing.assert_allclose(found.scores, scores, atol=1e-12)
    best = max(score for score, (is_eligible, _, _) in zip(scores, keys, strict=True) if is_eligible)
    assert keys[found.chosen][0]
    assert scores[found.chosen] == pytest.approx(best, abs=1e-12)
    assert sorted(found.order) == list(range(len(keys)))
    in_order = [
        (not found.eligible[place], -found.scores[place], -found.fits[place]) for place in found.order
    ]
    assert in_order == sorted(in_order)


@given(candidates(), terms, st.randoms(use_true_random=False))
def test_the_order_of_candidates_and_neighbours_does_not_matter(
    given_: tuple[Scores, Scores, NDArray[np.int64]], rule: Terms, random: Any
) -> None:
    closeness, likely, lengths = given_
    first = choose(closeness, likely, lengths, rule)
    rows, columns = list(range(len(likely))), list(range(1, closeness.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    again = choose(closeness[rows][:, [0, *columns]], likely[rows], lengths[rows], rule)
    ties = np.isclose(first.scores, first.scores[first.chosen], atol=1e-9) & first.eligible
    assert ties[rows[again.chosen]]
    np.testing.assert_allclose(again.margins, first.margins[rows], atol=1e-12)


@given(candidates(others=2), st.sampled_from([0.0, 0.25, 1.0]), st.sampled_from([0.0, 0.01, 0.3, 5.0]))
def test_another_neighbour_never_raises_a_margin(
    given_: tuple[Scores, Scores, NDArray[np.int64]], weight: float, temperature: float
) -> None:
    closeness, _, _ = given_
    for fewer in range(1, closeness.shape[1]):
        before = margins(closeness[:, :fewer], weight=weight, temperature=temperature)
        after = margins(closeness[:, : fewer + 1], weight=weight, temperature=temperature)
        assert (after <= before + 1e-12).all()


@given(candidates(), terms)
def test_with_no_slack_in_fit_the_likeliest_is_chosen(
    given_: tuple[Scores, Scores, NDArray[np.int64]], rule: Terms
) -> None:
    found = choose(*given_, replace(rule, fit_slack=0.0))
    assert found.fits[found.chosen] == found.fits[found.plain] == found.fits.max()
    assume((found.fits == found.fits.max()).sum() == 1)
    assert found.chosen == found.plain


@given(candidates(), terms)
def test_more_slack_never_lowers_the_score(
    given_: tuple[Scores, Scores, NDArray[np.int64]], rule: Terms
) -> None:
    found = [choose(*given_, replace(rule, fit_slack=slack)) for slack in (0.0, 0.2, 0.7, math.inf)]
    best = [one.scores[one.chosen] for one in found]
    assert best == sorted(best)


@given(candidates(), terms)
def test_the_more_fit_weighs_the_likelier_the_choice(
    given_: tuple[Scores, Scores, NDArray[np.int64]], rule: Terms
) -> None:
    found = [choose(*given_, replace(rule, fit_weight=weight)) for weight in (0.0, 0.1, 1.0, 1e6)]
    fits = [one.fits[one.chosen] for one in found]
    assert (np.diff(fits) >= -1e-9).all()
    assert fits[-1] == pytest.approx(found[0].fits.max())


@given(candidates(), st.sampled_from([1e-4, 0.05, 1.0]))
def test_a_soft_maximum_is_above_the_hard_one_and_nears_it(
    given_: tuple[Scores, Scores, NDArray[np.int64]], temperature: float
) -> None:
    closeness, _, _ = given_
    gap = margins(closeness) - margins(closeness, temperature=temperature)
    assert (gap >= -1e-12).all()
    assert (gap <= temperature * math.log(closeness.shape[1]) + 1e-12).all()


def test_at_temperature_one_it_is_pointwise_information() -> None:
    logs = np.array([[-4.0, -9.0, -6.0, -7.0], [-3.0, -3.5, -3.0, -4.0]])
    marginal = np.log(np.exp(logs[:, 1:]).mean(axis=1))
    expected = logs[:, 0] - marginal - math.log(3)
    np.testing.assert_allclose(margins(logs, temperature=1.0), expected)


def test_the_floor_keeps_a_caption_true() -> None:
    # A dog; a brown dog in grass; and a brown cat, which no neighbour is, nor is the picture.
    closeness = np.array([[0.50, 0.50, 0.45], [0.55, 0.40, 0.30], [0.20, -0.60, -0.50]])
    likely, lengths = np.array([-3.0, -6.0, -14.0]), np.array([3, 6, 4])

    def chosen(rule: Terms) -> int:
        return choose(closeness, likely, lengths, rule).chosen

    bare = Terms(weight=1.0, temperature=0.0, fit_weight=0.0)
    assert chosen(bare) == 2
    assert chosen(replace(bare, closeness_slack=0.0)) == 1
    assert chosen(replace(bare, fit_slack=1.0)) == 1
    assert chosen(replace(bare, fit_slack=0.0)) == 0
    assert chosen(replace(bare, weight=0.0)) == 1
    assert chosen(replace(bare, fit_weight=0.2)) == 1
    assert chosen(replace(bare, fit_weight=2.0)) == 0


def test_without_neighbours_the_likeliest_is_chosen() -> None:
    found = choose(np.array([[0.1], [0.9]]), np.array([-1.0, -2.0]), np.array([3, 3]), Terms())
    assert found.chosen == found.plain == 0
    assert found.margin == math.inf
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["margins"] == [None, None]


def test_extreme_scores_stay_numbers() -> None:
    closeness = np.array([[1e300, -1e300, 1e300], [-1e300, 1e-300, 0.0], [0.0, -1e300, -1e300]]) / 4
    for temperature in (0.0, 1e-3, 1.0):
        found = choose(
            closeness, np.array([-1e30, -1.0, -1e-30]), np.array([1, 20, 5]), Terms(temperature=temperature)
        )
        assert np.isfinite(found.margins).all()
        assert found.chosen in (0, 2)


def test_what_is_kept_is_plain() -> None:
    found = choose(
        np.array([[0.5, 0.25], [0.75, 0.0]]),
        np.array([-1.0, -2.0]),
        np.array([1, 1]),
        Terms(weight=1.0, temperature=0.0, fit_weight=0.5),
    )
    assert isinstance(found, Choice)
    assert found.to_json() == {
        "chosen": 0,
        "plain": 0,
        "scores": [-0.25, -0.25],
        "margins": [0.25, 0.75],
        "fits": [-1.0, -2.0],
        "eligible": [True, True],
    }


def test_lengths_divide_every_column() -> None:
    logs = np.array([[-8.0, -16.0], [-27.0, -54.0]])
    np.testing.assert_allclose(per_length(logs, np.array([4, 9]), 0.5), [[-4.0, -8.0], [-9.0, -18.0]])
    np.testing.assert_allclose(per_length(logs[:, 0], np.array([4, 9]), 1.0), [-2.0, -3.0])


@pytest.mark.parametrize(
    ("closeness", "likely", "lengths", "problem"),
    [
        (np.zeros((0, 2)), np.zeros(0), np.zeros(0, int), "0 candidates"),
        (np.zeros((2, 0)), np.zeros(2), np.ones(2, int), "2 candidates"),
        (np.zeros((2, 3)), np.zeros(3), np.ones(3, int), "3 candidates"),
        (np.zeros((2, 3)), np.array([-1.0, -np.inf]), np.ones(2, int), "not finite"),
        (np.full((2, 3), np.nan), np.zeros(2), np.ones(2, int), "not finite"),
        (np.zeros((2, 3)), np.zeros(2), np.array([1, 0]), "lengths"),
        (np.zeros((2, 3)), np.zeros(2), np.array([1]), "lengths"),
    ],
)
def test_what_cannot_be_chosen_from(
    closeness: Scores, likely: Scores, lengths: NDArray[np.int64], problem: str
) -> None:
    with pytest.raises(TellapartError, match=problem):
        choose(closeness, likely, lengths, Terms())


@pytest.mark.parametrize("name", [field.name for field in fields(Terms)])
def test_terms_that_mean_nothing(name: str) -> None:
    with pytest.raises(TellapartError, match=name):
        Terms(**{name: -0.1})
    with pytest.raises(TellapartError, match=name):
        Terms(**{name: math.nan})
