from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Bool, Float64

from tellapart.data.imagined import TOP, imagine_classes, singular
from tellapart.vision.nouns import everyday_words

NOUNS = tuple(everyday_words().values())
DIFFERENT = sorted(set(NOUNS))

words = st.sampled_from([*DIFFERENT, "zebras", "a", "the", "runs", "benches", "children"])
many_captions = st.lists(st.lists(words, max_size=12), max_size=6)
seeds = st.integers(0, 2**32)


def by_noun(classes: np.ndarray, nouns: tuple[str, ...] = NOUNS) -> dict[str, float]:
    added: dict[str, float] = {}
    for noun, likely in zip(nouns, classes, strict=True):
        added[noun] = added.get(noun, 0.0) + float(likely)
    return added


@given(many_captions, seeds)
def test_gives_probabilities(captions: list[list[str]], seed: int) -> None:
    classes = imagine_classes(captions, NOUNS, np.random.default_rng(seed))

    assert classes.shape == (len(NOUNS),)
    assert classes.dtype == np.float32
    assert (classes > 0).all()
    assert classes.sum() == pytest.approx(1, abs=1e-5)


@given(many_captions, seeds)
def test_one_of_the_likeliest_words_stands_in_the_captions(captions: list[list[str]], seed: int) -> None:
    classes = imagine_classes(captions, NOUNS, np.random.default_rng(seed))

    named = {singular(word) for caption in captions for word in caption} & set(map(singular, NOUNS))
    likely = by_noun(classes)
    top = sorted(likely, key=likely.__getitem__)[-TOP:]
    assert not named or named & set(map(singular, top))


@given(many_captions, seeds)
def test_only_the_generator_decides(captions: list[list[str]], seed: int) -> None:
    first, again = (imagine_classes(captions, NOUNS, np.random.default_rng(seed)) for _ in range(2))
    other = imagine_classes(captions, NOUNS, np.random.default_rng(seed + 1))

    assert (first == again).all()
    assert (first != other).any()


@given(st.lists(st.sampled_from(["dog", "cat", "bus"]), min_size=1, max_size=12), many_captions, seeds)
def test_any_list_of_nouns_will_do(nouns: list[str], captions: list[list[str]], seed: int) -> None:
    classes = imagine_classes([*captions, nouns], nouns, np.random.default_rng(seed))

    assert len(classes) == len(nouns)
    assert classes.sum() == pytest.approx(1, abs=1e-5)


@given(seeds)
def test_the_order_of_words_changes_nothing_but_their_first_mention(seed: int) -> None:
    captions = [["a", "zebra", "by", "a", "bus"], ["zebras"]]
    shuffled = [["zebra", "bus", "a", "a", "by"], ["zebras", "zebra"]]

    drawn = [imagine_classes(each, NOUNS, np.random.default_rng(seed)) for each in (captions, shuffled)]

    assert (drawn[0] == drawn[1]).all()


def mean_probability(captions: list[list[str]], noun: str) -> float:
    generator = np.random.default_rng(5)
    place = NOUNS.index(noun)
    drawn = [imagine_classes(captions, NOUNS, generator)[place] for _ in range(400)]
    return float(np.mean(drawn))


def test_a_noun_is_likelier_the_more_captions_name_it() -> None:
    silent = ["a", "photo"]

    shares = [mean_probability([["zebras"]] * many + [silent] * (5 - many), "zebra") for many in range(6)]

    assert shares[0] < 0.01
    assert shares[5] > 0.3
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("zebras", "zebra"),
        ("buses", "bus"),
        ("bus", "bus"),
        ("puppies", "puppy"),
        ("ties", "tie"),
        ("benches", "bench"),
        ("brushes", "brush"),
        ("boxes", "box"),
        ("glasses", "glass"),
        ("glass", "glass"),
        ("tennis", "tennis"),
        ("potatoes", "potato"),
        ("shoes", "shoe"),
        ("knives", "knife"),
        ("mice", "mouse"),
        ("men", "man"),
        ("gas", "gas"),
        ("sheep", "sheep"),
    ],
)
def test_singular(plural: str, expected: str) -> None:
    assert singular(plural) == expected


@given(words)
def test_a_singular_stays(word: str) -> None:
    assert singular(singular(word)) == singular(word)


# Of 10,117 photographs: `python -m benchmarks.everyday_words measure`, "table, all other photographs".
RIGHT = (0.505, 0.160, 0.105, 0.084, 0.069, 0.060, 0.046, 0.045, 0.040, 0.035)
PROBABILITY = (0.377, 0.085, 0.048, 0.033, 0.025, 0.020, 0.016, 0.014, 0.012, 0.011)


def captions_like_real_ones(generator: np.random.Generator) -> list[list[str]]:
    """As many nouns as a picture's captions name, each in as many of five as is usual."""
    counts = generator.choice([1, 2, 3, 4, 5], generator.poisson(2.9), p=[0.459, 0.176, 0.111, 0.099, 0.155])
    chosen = generator.choice(DIFFERENT, len(counts), replace=False)
    return [
        [noun for noun, count in zip(chosen, counts, strict=True) if caption < count] for caption in range(5)
    ]


def drawn_pictures(count: int) -> tuple[Bool[np.ndarray, "n 10"], Float64[np.ndarray, "n 10"]]:
    generator = np.random.default_rng(1)
    right, weights = [], []
    for _ in range(count):
        captions = captions_like_real_ones(generator)
        likely = by_noun(imagine_classes(captions, NOUNS, generator))
        top = sorted(likely, key=likely.__getitem__, reverse=True)[:10]
        right.append([noun in captions[0] for noun in top])
        weights.append([likely[noun] for noun in top])
    return np.array(right), np.array(weights)


def test_errs_as_the_encoder_does() -> None:
    right, weights = drawn_pictures(1500)

    assert right.mean(0) == pytest.approx(RIGHT, abs=0.06)
    assert weights.mean(0) == pytest.approx(PROBABILITY, abs=0.04)
    # What is said with a probability of .2 to .4 is right as often as measured, and so on.
    for low, high, share in ((0.02, 0.05, 0.08), (0.1, 0.2, 0.25), (0.2, 0.4, 0.44), (0.6, 0.8, 0.88)):
        inside = (weights >= low) & (weights < high)
        assert right[inside].mean() == pytest.approx(share, abs=0.08)
