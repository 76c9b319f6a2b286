"""What scores are measured against: Eq. 7 by hand, and what it may and may not change."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tellapart.metrics.retrieval import ranks
from tellapart.retrievers.likelihood.normalised import log_marginal, perplexity_ratio, pointwise_information

SCORES = arrays(np.float64, (4, 3), elements=st.integers(-40, 0).map(float))


def test_equation_7_by_hand() -> None:
    probabilities = np.array([[0.2, 0.1], [0.05, 0.4], [0.3, 0.3]])  # P(w|I) of three sentences
    sampled = np.array(
        [[0.1, 0.3, 0.2], [0.5, 0.1, 0.3], [0.2, 0.2, 0.2]]
    )  # P(w|I') of three training images
    by_paper = probabilities / sampled.sum(1, keepdims=True)  # P(I') is a constant, which the paper drops
    scores = pointwise_information(np.log(probabilities), log_marginal(np.log(sampled)))
    np.testing.assert_allclose(np.exp(scores) / 3, by_paper)
    np.testing.assert_allclose(np.exp(log_marginal(np.log(sampled))), [0.2, 0.3, 0.2])


def test_marginal_of_sentences_that_no_float_could_hold() -> None:
    sampled = np.array([[-5000.0, -5000.0 + np.log(3)]], dtype=np.float32)
    np.testing.assert_allclose(log_marginal(sampled), [-5000 + np.log(2)], atol=1e-3)


def test_kiros_divides_perplexities() -> None:
    scores, of_mean, lengths = np.array([[-6.0, -9.0]]), np.array([-12.0]), np.array([3])
    perplexities, reference = np.exp(-scores / 3), np.exp(12 / 3)
    np.testing.assert_allclose(perplexity_ratio(scores, of_mean, lengths), np.log(reference / perplexities))


@given(SCORES, SCORES)
def test_a_sentence_finds_the_same_picture_however_it_is_normalised(
    scores: np.ndarray, sampled: np.ndarray
) -> None:
    own, marginal = np.array([0, 1, 2, 2]), log_marginal(sampled).round(6)
    plain = ranks(scores, own)
    assert (ranks(pointwise_information(scores, marginal).round(9), own) == plain).all()
    ratio = perplexity_ratio(scores, marginal, np.array([1, 2, 3, 4]))
    assert (ranks(ratio.round(9), own) == plain).all()


@given(SCORES)
def test_single_precision_stays_single(scores: np.ndarray) -> None:
    single = scores.astype(np.float32)
    assert pointwise_information(single, log_marginal(single)).dtype == np.float32
    assert perplexity_ratio(single, log_marginal(single), np.arange(1, 5)).dtype == np.float32
