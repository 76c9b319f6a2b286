"""Several captions of one picture that are good, and unlike each other."""

from __future__ import annotations

import numpy as np

from tellapart.arrays import Float, Int64
from tellapart.errors import TellapartError


def choose_set(
    quality: Float[np.ndarray, " n"],
    similarity: Float[np.ndarray, "a b"],
    count: int,
    *,
    trade_off: float,
) -> Int64[np.ndarray, " m"]:
    """The places of `count` candidates, or of all where there are no more, in the order they were chosen.

    Maximal marginal relevance (Carbonell & Goldstein 1998): the best comes first, then again and again the
    one for which (1 - λ) · quality - λ · (similarity to the most similar one chosen) is greatest. Of equal
    ones the first is taken. The trade-off weighs two scales against each other: bring them to one before.

    Args:
        quality: of each candidate, the greater the better.
        similarity: of each candidate to each; how like itself a candidate is does not matter.
        count: how many to choose.
        trade_off: λ, from 0, which asks for quality alone, to 1, which asks for unlikeness alone.
    """
    if similarity.shape != (len(quality), len(quality)):
        raise TellapartError(
            f"similarities are of shape {similarity.shape}, for {len(quality)} candidates",
            hint="give a row and a column for each candidate",
        )
    if not (np.isfinite(quality).all() and np.isfinite(similarity).all()):
        raise TellapartError(
            "a quality or similarity of the candidates is not finite", hint="leave such candidates out"
        )
    if count < 1 or not 0 <= trade_off <= 1:
        raise TellapartError(
            f"{count} captions with a trade-off of {trade_off} were asked for",
            hint="ask for at least 1, with a trade-off from 0 to 1",
        )
    chosen: list[int] = []
    nearest = np.full(len(quality), -np.inf)
    for _ in range(min(count, len(quality))):
        value = quality if not chosen else (1 - trade_off) * quality - trade_off * nearest
        value = value.astype(np.float64)
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
        nearest = np.maximum(nearest, similarity[:, chosen[-1]])
    return np.array(chosen, dtype=np.int64)
