"""What an encoder might have said of a picture that is known only by its captions.

A captioner that is given concept words must learn how far to trust them, so what is imagined errs as the
encoder does. Quantiles were measured on the 6,000 photographs of Flickr8k's train split and 4,117 of COCO;
the other numbers were chosen so that the k-th word is right as often, and seems as likely, as it does there.
`python -m benchmarks.everyday_words measure` prints the quantiles, and the imagined beside the real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tellapart.arrays import Float32, Float64, Int

TOP = 10
"""Among so many of the likeliest words there is one of the captions, if they hold any."""

# Log-probability of a noun that captions name: its quantiles, by the share of the captions that name it.
_LEVELS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_QUANTILES = (
    (-12.0, -10.27, -8.68, -7.72, -6.44, -4.82, -3.05, -0.56, 0.0),  # one caption of five
    (-12.0, -9.93, -8.38, -7.22, -5.63, -3.68, -1.7, -0.24, 0.0),
    (-11.0, -9.78, -8.04, -6.63, -4.67, -2.41, -0.79, -0.15, 0.0),
    (-11.0, -9.25, -7.42, -5.84, -3.46, -1.27, -0.4, -0.1, 0.0),
    (-10.0, -8.98, -6.52, -4.38, -1.51, -0.44, -0.25, -0.08, 0.0),  # all five
)
_NAMED = np.array([np.interp((np.arange(1000) + 0.5) / 1000, _LEVELS, row) for row in _QUANTILES])
_MOST = 0.98  # what all named nouns have together at the most
_OTHERS = 0.7  # how much of it the likeliest leaves to the others
# Log-probability of a noun that nobody names: a little for each of its classes, now and then a mistake.
_FAINT, _FAINT_SPREAD = -8.36, 1.06
_MISTAKES, _MISTAKE, _MISTAKE_SPREAD = 0.03, -5.0, 1.6
_SURE_MISTAKES, _SURE = 0.06, (0.3, 0.8)  # of all pictures, and how likely such a mistake seems

_IRREGULAR: Mapping[str, str] = {
    "buses": "bus",
    "calves": "calf",
    "children": "child",
    "feet": "foot",
    "geese": "goose",
    "knives": "knife",
    "leaves": "leaf",
    "loaves": "loaf",
    "men": "man",
    "mice": "mouse",
    "people": "person",
    "scarves": "scarf",
    "shelves": "shelf",
    "teeth": "tooth",
    "wolves": "wolf",
    "women": "woman",
}


@lru_cache(maxsize=1 << 16)
def singular(word: str) -> str:
    """What singular and plural of a word have in common: "zebra" for "zebras"; not always a word itself."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zzes", "toes")):
        return word[:-2]
    return word[:-1]


@dataclass(frozen=True, slots=True)
class _Nouns:
    """The different nouns among those of the classes, singular."""

    numbers: Mapping[str, int]
    of_class: Int[np.ndarray, " c"]
    log_classes: Float64[np.ndarray, " w"]  # how many classes share each noun, its logarithm


@lru_cache(maxsize=8)
def _different(nouns: tuple[str, ...]) -> _Nouns:
    folded = [singular(noun) for noun in nouns]
    numbers = {noun: number for number, noun in enumerate(dict.fromkeys(folded))}
    of_class = np.array([numbers[noun] for noun in folded])
    return _Nouns(numbers, of_class, np.log(np.bincount(of_class)))


def imagine_classes(
    captions: Sequence[Sequence[str]], nouns: Sequence[str], generator: np.random.Generator
) -> Float32[np.ndarray, " c"]:
    """Probabilities of an encoder's classes that fit the captions of one picture.

    Args:
        captions: the words of each caption, lower case.
        nouns: the noun of every class; a noun is named by its singular and by its plural.
        generator: the only source of chance.
    """
    different = _different(tuple(nouns))
    counts = _named(captions, different.numbers)
    places = np.fromiter(counts, np.int64, len(counts))
    shares = np.fromiter(counts.values(), np.float64, len(counts)) / max(1, len(captions))
    likely = _likely(different.log_classes, places, shares, generator)
    # A noun's probability is spread over its classes at random; whoever asks for nouns adds it up again.
    parts = generator.standard_exponential(len(nouns))
    whole = np.bincount(different.of_class, parts)
    classes: Float32[np.ndarray, " c"] = (parts * (likely / whole)[different.of_class]).astype(np.float32)
    return classes


def _named(captions: Sequence[Sequence[str]], numbers: Mapping[str, int]) -> dict[int, int]:
    """Nouns that captions name, and how many captions do, in the order in which they are named."""
    counts: dict[int, int] = {}
    for caption in captions:
        seen = {numbers[noun]: None for word in caption if (noun := singular(word)) in numbers}
        for number in seen:
            counts[number] = counts.get(number, 0) + 1
    return counts


def _likely(
    log_classes: Float64[np.ndarray, " w"],
    named: Int[np.ndarray, " s"],
    shares: Float64[np.ndarray, " s"],
    generator: np.random.Generator,
) -> Float64[np.ndarray, " w"]:
    """Probabilities of all nouns; those that are named by these shares of the captions have theirs first."""
    likely: Float64[np.ndarray, " w"] = np.exp(
        _FAINT + _FAINT_SPREAD * generator.standard_normal(len(log_classes)) + log_classes
    )
    mistakes = np.flatnonzero(generator.random(len(likely)) < _MISTAKES)
    likely[mistakes] += np.exp(_MISTAKE + _MISTAKE_SPREAD * generator.standard_normal(len(mistakes)))
    if not len(named):
        likely /= likely.sum()
        return likely
    rows = np.ceil(shares * len(_NAMED) - 1e-9).astype(np.int64) - 1
    right = np.exp(_NAMED[rows, generator.integers(_NAMED.shape[1], size=len(named))])
    # Where one thing fills the picture, the others have little.
    right *= np.where(right == right.max(), 1.0, _OTHERS * (1.0 - right.max()))
    right *= min(1.0, _MOST / right.sum())
    likely[named] = 0.0
    likely *= (1.0 - right.sum()) / (likely.sum() or 1.0)
    likely[named] = right
    likely /= likely.sum()  # it is 1 already, unless every noun is named
    if generator.random() < _SURE_MISTAKES:
        mistake = generator.uniform(*_SURE)
        likely *= 1.0 - mistake
        likely[generator.integers(len(likely))] += mistake
    return _lifted(likely, named, int(named[shares.argmax()]), generator)


def _lifted(
    likely: Float64[np.ndarray, " w"],
    named: Int[np.ndarray, " s"],
    most_named: int,
    generator: np.random.Generator,
) -> Float64[np.ndarray, " w"]:
    """Where no named noun is among the likeliest, the one that most captions name trades with one of them."""
    if len(likely) <= TOP:
        return likely
    top = np.argpartition(likely, -TOP)[-TOP:]
    if likely[named].max() < likely[top].min():
        other = generator.choice(top, p=likely[top] / likely[top].sum())
        likely[[most_named, other]] = likely[[other, most_named]]
    return likely
