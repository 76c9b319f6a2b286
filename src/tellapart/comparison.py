"""Two systems on the same images: is the difference more than chance?

Images are what is drawn anew: a bootstrap over them gives the interval of the difference (Koehn 2004), and
exchanging the two systems' captions image by image gives the test (approximate randomisation, Riezler and
Maxwell 2005). Measures that are formulas on sums (BLEU, METEOR) are computed anew on each draw.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.errors import TellapartError
from tellapart.metrics.material import Watch, unwatched
from tellapart.metrics.score import Floats, Score, Scores, plain
from tellapart.metrics.sentences import Ints

DRAWS = 10_000
LEVEL = 0.95
_CELLS = 4_000_000  # of a matrix of draws by images
_LONGEST_PRINTED = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of A and of B."""

    name: str
    a: float
    b: float
    signature: str
    low: float | None = None  # of B - A; None where the measure is not one of images
    high: float | None = None
    p: float | None = None  # two-sided

    @property
    def value(self) -> float:
        """By how much B is above A."""
        return self.b - self.a

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "a": plain(self.a),
            "b": plain(self.b),
            "difference": plain(self.value),
            "interval": None
            if self.low is None or self.high is None
            else [plain(self.low), plain(self.high)],
            "p": self.p,
            "signature": self.signature,
        }


def compare(
    a: Scores, b: Scores, *, draws: int = DRAWS, seed: int = 0, watch: Watch = unwatched
) -> list[Difference]:
    """Differences of B from A, each with its interval and test where the measure allows."""
    only = sorted(set(a.ids) ^ set(b.ids))
    if only:
        raise TellapartError(
            "the two do not caption the same images: "
            f"{only[0]!r} is in {'A' if only[0] in a.ids else 'B'} only ({len(only)} are in one only)",
            hint="compare on the images that both have",
        )
    expect_like(a.signatures, b.signatures)
    drawn = [name for name in a if _is_of_images(a[name]) and _is_of_images(b[name])]
    pairs = [
        (a[name], _summands(a[name])[_sorted(a.ids)], _summands(b[name])[_sorted(b.ids)]) for name in drawn
    ]
    tests = dict(zip(drawn, _test(pairs, draws=draws, seed=seed, watch=watch), strict=True))
    return [
        Difference(name, a[name].corpus, b[name].corpus, a[name].signature, *tests.get(name, ()))
        for name in a
    ]


def expect_like(a: Mapping[str, str], b: Mapping[str, str]) -> None:
    """An error for the first measure that was computed in two ways, or of one of the two only."""
    for name in (*a, *b):
        if name not in a or name not in b:
            raise TellapartError(
                f"{name} was measured of {'A' if name in a else 'B'} only",
                hint="measure both with the same --metrics, on the same number of candidates an image",
            )
        if a[name] != b[name]:
            raise TellapartError(
                f"{name} of the two cannot be compared: {a[name]} and {b[name]}",
                hint="measure both in the same way",
            )


def _sorted(ids: Sequence[str]) -> Ints:
    """Rows in the order of their ids: what is drawn must not hang on the order of a file."""
    return np.argsort(np.array(ids, dtype=object), kind="stable")


def _is_of_images(score: Score) -> bool:
    """Whether the corpus value follows from values or summands of images: only then may they be drawn."""
    if score.pooled is None and score.each is None:
        return False
    summands = _summands(score)
    whole = _value(score, summands.sum(axis=0), len(summands))
    return bool(np.isclose(whole, score.corpus, rtol=1e-9, atol=1e-12))


def _test(
    pairs: Sequence[tuple[Score, Floats, Floats]], *, draws: int, seed: int, watch: Watch
) -> list[tuple[float, float, float]]:
    """Low and high end of the interval and p of each measure; all of them see the same draws."""
    if not pairs:
        return []
    scores = [score for score, _, _ in pairs]
    one = np.hstack([ours for _, ours, _ in pairs])
    other = np.hstack([theirs for _, _, theirs in pairs])
    cuts = np.cumsum([summands.shape[1] for _, summands, _ in pairs])[:-1]
    images = len(one)

    def values(sums: Floats) -> Floats:
        """Each measure from sums over images: (…, s) -> (measures, …)."""
        pieces = zip(scores, np.split(sums, cuts, -1), strict=True)
        return np.stack([_value(score, piece, images) for score, piece in pieces])

    ours, theirs = values(one.sum(axis=0)), values(other.sum(axis=0))
    # Sums of the same numbers in another order differ in their last digits: equal must count as equal.
    least = np.abs(theirs - ours) - 1e-10 * (np.abs(theirs) + np.abs(ours))
    by_chance: list[Floats] = []
    as_great = np.zeros(len(scores))
    done = 0
    for times, exchanged in zip(
        _resampled(images, draws, seed), _exchanged(images, draws, seed), strict=True
    ):
        by_chance.append(values(times @ other) - values(times @ one))
        moved = exchanged @ (other - one)
        under_null = values(other.sum(axis=0) - moved) - values(one.sum(axis=0) + moved)
        as_great += (np.abs(under_null) >= least[:, None]).sum(axis=1)
        done += len(times)
        watch("drawing images anew", done, draws)
    low, high = np.quantile(np.hstack(by_chance), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    p = (as_great + 1) / (draws + 1)
    return list(zip(low.tolist(), high.tolist(), p.tolist(), strict=True))


def _summands(score: Score) -> Floats:
    """What a corpus value is computed from: a row an image."""
    if score.pooled is not None:
        return score.pooled.statistics
    assert score.each is not None
    return score.each[:, None]


def _value(score: Score, sums: Floats, images: int) -> Floats:
    if score.pooled is not None:
        return score.pooled.formula(sums)
    return np.asarray(sums[..., 0] / images)


def _blocks(images: int, draws: int) -> Iterator[int]:
    """Numbers of draws that are made together: a row each, a column an image, within bounded memory."""
    most = max(1, _CELLS // images)
    for first in range(0, draws, most):
        yield min(most, draws - first)


def _resampled(images: int, draws: int, seed: int) -> Iterator[Floats]:
    """Draws with replacement, some at a time: how often each image is in each draw."""
    chance = np.random.default_rng([seed, 0])
    for rows in _blocks(images, draws):
        drawn = chance.integers(0, images, size=(rows, images)) + np.arange(rows)[:, None] * images
        yield np.bincount(drawn.ravel(), minlength=rows * images).reshape(rows, images).astype(np.float64)


def _exchanged(images: int, draws: int, seed: int) -> Iterator[Floats]:
    """Draws that exchange the two captions of each image (1), or do not (0), some at a time."""
    chance = np.random.default_rng([seed, 1])
    for rows in _blocks(images, draws):
        yield chance.integers(0, 2, size=(rows, images)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Printed:
    """What `tellapart score --json` printed."""

    scores: Mapping[str, float | None]
    signatures: Mapping[str, str]
    images: int
    references: object = None  # their name, where the file has it


def read_printed(path: Path) -> Printed | None:
    """What `tellapart score --json` printed, if the file holds that."""
    if not path.is_file() or path.stat().st_size > _LONGEST_PRINTED:
        return None
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not {"scores", "signatures", "images"} <= value.keys():
        return None
    scores, signatures, images = value["scores"], value["signatures"], value["images"]
    if not _is_printed(scores, signatures) or type(images) is not int:
        raise TellapartError(f"{path}: not what 'tellapart score --json' prints", hint="print it anew")
    return Printed(scores, signatures, images, value.get("references"))


def _is_printed(scores: object, signatures: object) -> bool:
    return (
        isinstance(scores, dict)
        and isinstance(signatures, dict)
        and scores.keys() == signatures.keys()
        and all(value is None or type(value) in (int, float) for value in scores.values())
        and all(isinstance(signature, str) for signature in signatures.values())
    )


def compare_printed(a: Printed, b: Printed) -> list[Difference]:
    """Differences of two printed results: without the values of single images there is no interval."""
    expect_like(a.signatures, b.signatures)
    if a.images != b.images:
        raise TellapartError(
            f"A was measured on {a.images} images and B on {b.images}", hint="measure both on the same images"
        )
    if a.references != b.references:
        raise TellapartError(
            f"A was measured against the references {a.references!r} and B against {b.references!r}",
            hint="measure both against the same references of the same images",
        )
    return [
        Difference(name, _number(a.scores[name]), _number(b.scores[name]), signature)
        for name, signature in a.signatures.items()
    ]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
