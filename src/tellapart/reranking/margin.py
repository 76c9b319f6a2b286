"""Of a picture's candidates, the one that fits it better than it fits the pictures that resemble it.

How close a caption is to a picture may be told by a retriever, as a cosine, or by the captioner itself, as
log p(c|I). By the latter, with a weight and a temperature of 1, the margin is pointwise mutual information
over the neighbours (m-RNN's Eq. 7) up to the logarithm of their number, which is the same for all candidates
of a picture. Log-probabilities grow with a caption's length, and so do their margins: `per_length` first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tellapart.arrays import Bool, Float, Float64, Int64, Integer
from tellapart.errors import TellapartError


@dataclass(frozen=True, slots=True)
class Terms:
    """What counts as telling a picture apart, and how much truth may be given up for it.

    A candidate's score is its margin and, weighed, its fit: its log-probability, length-penalised; and, where
    it is known, how far it agrees with other captions of its picture. Below the floor it is not chosen
    whatever its score: if its fit is more than `fit_slack` below that of the best candidate by fit, or its
    closeness to its own picture more than `closeness_slack` below that one's. With no slack in fit that best
    candidate is chosen, as without neighbours.

    The defaults are for cosines of `reranker`, chosen on photographs of Flickr8k's val split. A weight of fit
    came out better than a floor: at as many pictures found, captions agree more with those of people.
    """

    weight: float = 0.5  # of the others: 1 is the bare margin, 0 asks for closeness to the own picture alone
    temperature: float = 0.1  # of the soft maximum over the others; 0: the closest of them
    fit_weight: float = 0.05
    agreement_weight: float = 2.0
    fit_slack: float = math.inf
    closeness_slack: float = math.inf
    length_penalty: float = 0.6  # of the fit; the exponent that beam search has

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0 or (value == math.inf and not field.name.endswith("slack")):
                raise TellapartError(f"{field.name} is {value}", hint="take a number from 0 on")


@dataclass(frozen=True, slots=True)
class Choice:
    """In which order the candidates come, and all that spoke for and against each."""

    order: Int64[np.ndarray, " c"]  # best first
    plain: int  # what would have been chosen by log-probability alone
    scores: Float64[np.ndarray, " c"]
    margins: Float64[np.ndarray, " c"]
    fits: Float64[np.ndarray, " c"]  # length-penalised log-probabilities
    eligible: Bool[np.ndarray, " c"]  # whether above the floor

    @property
    def chosen(self) -> int:
        """The best."""
        return int(self.order[0])

    @property
    def margin(self) -> float:
        """Of the one chosen; below 0 another picture is closer to it, where the weight is 1."""
        return float(self.margins[self.chosen])

    def to_json(self) -> dict[str, Any]:
        """As plain values, for the line of a predictions file; a margin over nobody is None."""
        scores, margins = (
            [value if math.isfinite(value) else None for value in values.tolist()]
            for values in (self.scores, self.margins)
        )
        return {
            "chosen": self.chosen,
            "plain": self.plain,
            "scores": scores,
            "margins": margins,
            "fits": self.fits.tolist(),
            "eligible": self.eligible.tolist(),
        }


def choose(
    closeness: Float[np.ndarray, "c p"],
    log_probabilities: Float[np.ndarray, " l"],
    lengths: Integer[np.ndarray, " w"],
    terms: Terms,
    aside: Bool[np.ndarray, " t"] | None = None,
    agreement: Float[np.ndarray, " a"] | None = None,
) -> Choice:
    """Candidates above the floor come first, by their score; of equal ones the likeliest, then the first.

    Args:
        closeness: of each candidate to its own picture, then to each neighbour; the greater the closer.
        log_probabilities: of the candidates under the captioner.
        lengths: their words, the end sign included.
        terms: what counts.
        aside: those that are somebody else's rather, or broken off: of the candidates above the floor they
            come last.
        agreement: of each with other captions of its picture. With it, closeness to the own picture counts
            where there is no neighbour; without it, fit alone does.
    """
    _expect_scores(closeness, log_probabilities)
    fits = per_length(log_probabilities, lengths, terms.length_penalty)
    own = closeness[:, 0].astype(np.float64)
    plain = int(np.argmax(fits))
    eligible = (fits >= fits[plain] - terms.fit_slack) & (own >= own[plain] - terms.closeness_slack)
    found = margins(closeness, weight=terms.weight, temperature=terms.temperature)
    scores = found + terms.fit_weight * fits
    if agreement is not None:
        scores = np.where(np.isfinite(found), found, own) + terms.fit_weight * fits
        scores += terms.agreement_weight * agreement
    last = np.zeros(len(scores), bool) if aside is None else aside
    order = np.lexsort([-fits, -scores, last, ~eligible])  # the last key decides first
    return Choice(order, plain, scores, found, fits, eligible)


def margins(
    closeness: Float[np.ndarray, "c p"], *, weight: float = 1.0, temperature: float = 0.0
) -> Float64[np.ndarray, " c"]:
    """By how much each candidate is closer to its own picture, the first column, than to the others.

    Those are taken together by their maximum or, with a temperature τ, by τ · ln Σ exp(closeness / τ), which
    is never less: another neighbour never raises a margin. Over nobody it has no bound.
    """
    values = closeness.astype(np.float64)
    own, others = values[:, 0], values[:, 1:]
    if not weight:
        return own
    if not others.shape[1]:
        return np.full(len(own), np.inf)
    rival = temperature * logsumexp(others / temperature, axis=1) if temperature else others.max(axis=1)
    return np.asarray(own - weight * rival)


def per_length(
    values: Float[np.ndarray, c * p], lengths: Integer[np.ndarray, " c"], penalty: float
) -> Float64[np.ndarray, c * p]:
    """Log-probabilities over that power of the captions' lengths, as beam search compares them."""
    if len(lengths) != len(values) or (lengths < 1).any():
        raise TellapartError(
            f"{len(values)} candidates have the lengths {lengths.tolist()}",
            hint="give the number of words of each, the end sign included",
        )
    powers = lengths.astype(np.float64) ** penalty
    return np.asarray(values / powers.reshape(-1, *[1] * (values.ndim - 1)))


def _expect_scores(closeness: Float[np.ndarray, "c p"], log_probabilities: Float[np.ndarray, " l"]) -> None:
    if not len(closeness) or len(closeness) != len(log_probabilities) or not closeness.shape[1]:
        raise TellapartError(
            f"closeness is of shape {closeness.shape}, for {len(log_probabilities)} candidates",
            hint="give a row for each candidate, one at least, and in it its own picture first",
        )
    if not (np.isfinite(closeness).all() and np.isfinite(log_probabilities).all()):
        raise TellapartError(
            "a candidate's closeness or log-probability is not finite",
            hint="leave out what fills a beam up (log-probability -inf); NaN means that a retriever failed",
        )
