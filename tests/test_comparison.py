"""A difference between two systems: its interval and test mean what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tellapart
from tellapart import comparison
from tellapart.comparison import Difference, Printed, compare, compare_printed, expect_like, read_printed
from tellapart.errors import TellapartError
from tellapart.metrics.score import Floats, Score, Scores, mean_score

WORDS = ["a", "dog", "cat", "runs", "on", "grass", "the", "red", "bus", "sleeps"]


def scores(values: Sequence[float] | Floats, ids: Sequence[str] | None = None) -> Scores:
    score = mean_score("M", np.asarray(values, dtype=np.float64), "way:one")
    return Scores(tuple(ids or map(str, range(len(values)))), {"M": score}, {})


def only(differences: list[Difference]) -> tuple[float, float, float, float]:
    """Difference, low, high and p of the only measure."""
    (found,) = differences
    assert found.low is not None
    assert found.high is not None
    assert found.p is not None
    return found.value, found.low, found.high, found.p


def texts(count: int, seed: int) -> dict[str, str]:
    chance = np.random.default_rng(seed)
    return {f"i{number}": " ".join(chance.choice(WORDS, size=7)) for number in range(count)}


def references(count: int) -> dict[str, list[str]]:
    others = [texts(count, seed) for seed in (100, 101)]
    return {image_id: [other[image_id] for other in others] for image_id in others[0]}


def test_a_system_does_not_differ_from_itself() -> None:
    result = tellapart.score(texts(30, 0), references(30), metrics=["bleu", "rouge", "cider", "diversity"])
    for found in compare(result, result, draws=200):
        assert found.value == 0
        if found.name in ("Distinct", "Vocabulary"):
            assert (found.low, found.high, found.p) == (None, None, None)
        else:
            assert (found.low, found.high, found.p) == (0, 0, 1)


@settings(max_examples=20)
@given(
    values=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12),
    data=st.data(),
    seed=st.integers(0, 5),
)
def test_order_is_irrelevant_and_exchanging_the_two_negates(
    values: list[tuple[float, float]], data: st.DataObject, seed: int
) -> None:
    ids = [f"i{number}" for number in range(len(values))]
    a, b = (dict(zip(ids, side, strict=True)) for side in zip(*values, strict=True))
    one, other = data.draw(st.permutations(ids)), data.draw(st.permutations(ids))
    found = only(compare(scores(list(a.values()), ids), scores(list(b.values()), ids), draws=100, seed=seed))
    shuffled = compare(
        scores([a[each] for each in one], one),
        scores([b[each] for each in other], other),
        draws=100,
        seed=seed,
    )
    assert only(shuffled) == pytest.approx(found, abs=1e-12)
    value, low, high, p = only(
        compare(scores(list(b.values()), ids), scores(list(a.values()), ids), draws=100, seed=seed)
    )
    assert (-value, -high, -low, p) == pytest.approx(found, abs=1e-12)
    assert low - 1e-12 <= value <= high + 1e-12 or len(ids) > 1


def test_the_seed_decides() -> None:
    chance = np.random.default_rng(0)
    a, b = scores(chance.normal(size=50)), scores(chance.normal(size=50))
    assert compare(a, b, draws=100, seed=1) == compare(a, b, draws=100, seed=1)
    assert compare(a, b, draws=100, seed=1) != compare(a, b, draws=100, seed=2)


def test_blocks_of_draws_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    a, b = scores(chance.normal(size=37)), scores(chance.normal(size=37))
    whole = only(compare(a, b, draws=150))
    seen: list[tuple[str, int, int]] = []
    monkeypatch.setattr(comparison, "_CELLS", 37 * 40)
    blocks = compare(a, b, draws=150, watch=lambda *what: seen.append(what))
    assert only(blocks) == pytest.approx(whole, abs=1e-12)
    assert seen == [("drawing images anew", done, 150) for done in (40, 80, 120, 150)]


def test_a_clear_improvement_is_significant_and_noise_is_not() -> None:
    chance = np.random.default_rng(3)
    a = chance.normal(size=200)
    _, low, high, p = only(compare(scores(a), scores(a + 0.3 + chance.normal(size=200) * 0.5), draws=1000))
    assert 0 < low < 0.3 < high
    assert p < 0.01
    noise = chance.normal(size=200) * 0.5
    noise += 0.01 - noise.mean()  # one draw of noise in twenty would be significant, and rightly so
    value, low, high, p = only(compare(scores(a), scores(a + noise), draws=1000))
    assert low < 0 < high
    assert low < value < high
    assert p > 0.5


def test_p_is_as_often_small_as_it_should_be_and_intervals_cover() -> None:
    chance = np.random.default_rng(11)
    trials, truth = 300, 0.25
    small = covered = 0
    for _ in range(trials):
        a = chance.gamma(1.0, size=40)
        noise = chance.normal(size=40)
        small += only(compare(scores(a), scores(a + noise), draws=100))[3] < 0.05
        _, low, high, _ = only(compare(scores(a), scores(a + noise + truth), draws=100))
        covered += low <= truth <= high
    # Of 300 trials at .05, between 5 and 27 are within three and a half standard deviations.
    assert 5 <= small <= 27
    assert covered / trials > 0.88


def test_bleu_is_computed_anew_on_the_images_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    count, draws = 25, 7
    ids = sorted(texts(count, 0))
    a, b = ({image_id: texts(count, seed)[image_id] for image_id in ids} for seed in (1, 2))
    theirs = references(count)
    ours = [tellapart.score(system, theirs, metrics=["bleu"]) for system in (a, b)]

    def bleu(system: dict[str, str], rows: Sequence[int], name: str) -> float:
        drawn = [ids[row] for row in rows]
        result = tellapart.score(
            [system[image_id] for image_id in drawn],
            [theirs[image_id] for image_id in drawn],
            metrics=["bleu"],
        )
        return result[name].corpus

    times = np.concatenate(list(comparison._resampled(count, draws, 5)))
    assert (times.sum(axis=1) == count).all()
    rows = [np.repeat(np.arange(count), row.astype(int)).tolist() for row in times]
    found = {each.name: each for each in compare(*ours, draws=draws, seed=5)}
    for name in ("BLEU-1", "BLEU-4"):
        by_hand = [bleu(b, drawn, name) - bleu(a, drawn, name) for drawn in rows]
        low, high = np.quantile(by_hand, [0.025, 0.975])
        assert found[name].low == pytest.approx(low, abs=1e-12)
        assert found[name].high == pytest.approx(high, abs=1e-12)

    swapped = np.concatenate(list(comparison._exchanged(count, draws, 5)))
    everyone = range(count)
    gaps = []
    for coins in swapped:
        pairs = [(b, a) if coin else (a, b) for coin in coins]
        left = {image_id: pair[0][image_id] for image_id, pair in zip(ids, pairs, strict=True)}
        right = {image_id: pair[1][image_id] for image_id, pair in zip(ids, pairs, strict=True)}
        gaps.append(bleu(right, everyone, "BLEU-4") - bleu(left, everyone, "BLEU-4"))
    seen = abs(bleu(b, everyone, "BLEU-4") - bleu(a, everyone, "BLEU-4"))
    assert found["BLEU-4"].p == pytest.approx((sum(abs(gap) >= seen for gap in gaps) + 1) / (draws + 1))


def test_a_value_that_is_not_made_of_images_has_no_interval() -> None:
    each = np.array([1.0, 2.0, 4.0])
    odd = {
        "median": Score("median", 2.0, "s", each),  # values of images, but the whole is no mean of them
        "hole": Score("hole", 1.5, "s", np.array([1.0, 2.0, np.nan])),
        "none": Score("none", float("nan"), "s"),
    }
    result = Scores(("a", "b", "c"), odd, {})
    assert all(found.low is found.high is found.p is None for found in compare(result, result, draws=100))
    assert compare(result, result, draws=100)[2].to_json()["difference"] is None


def test_other_images_are_refused() -> None:
    with pytest.raises(TellapartError, match=r"'a' is in A only \(3 are in one only\)") as caught:
        compare(scores([1, 2, 3], ["p", "a", "b"]), scores([1, 2], ["p", "z"]))
    assert caught.value.hint
    with pytest.raises(TellapartError, match="'a' is in B only"):
        compare(scores([1], ["p"]), scores([1, 2], ["p", "a"]))


def test_unlike_ways_are_refused() -> None:
    with pytest.raises(TellapartError, match="CIDEr of the two cannot be compared: df:one and df:two"):
        expect_like({"BLEU": "x", "CIDEr": "df:one"}, {"BLEU": "x", "CIDEr": "df:two"})
    with pytest.raises(TellapartError, match="CIDEr was measured of A only"):
        expect_like({"BLEU": "x", "CIDEr": "df:one"}, {"BLEU": "x"})
    with pytest.raises(TellapartError, match="CIDEr was measured of B only"):
        expect_like({"BLEU": "x"}, {"BLEU": "x", "CIDEr": "df:one"})


def test_printed_results_differ_without_an_interval(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    result = tellapart.score(texts(5, 0), references(5), metrics=["bleu"])
    path.write_text(json.dumps(result.to_json()))
    printed = read_printed(path)
    assert printed == Printed(result.scores, result.signatures, 5, result.references)
    assert printed is not None
    for found in compare_printed(printed, printed):
        assert (found.value, found.low, found.p) == (0, None, None)
    with pytest.raises(TellapartError, match="A was measured on 5 images and B on 6"):
        compare_printed(printed, Printed(result.scores, result.signatures, 6))
    with pytest.raises(TellapartError, match="measured against the references"):
        compare_printed(printed, Printed(result.scores, result.signatures, 5, "others"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"image_id": 1, "caption": "a"}', '{"scores": {}}', "[" * 100_000, "\xff"]
)
def test_what_was_not_printed_is_not_taken_for_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="latin-1")
    assert read_printed(path) is None
    assert read_printed(tmp_path) is None
    assert read_printed(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    "changes",
    [{"scores": 5}, {"scores": {"M": "high"}}, {"signatures": {}}, {"signatures": {"M": 5}}, {"images": "3"}],
)
def test_a_printed_result_that_was_tampered_with_is_refused(
    changes: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"scores": {"M": 1.0}, "signatures": {"M": "s"}, "images": 3} | changes))
    with pytest.raises(TellapartError, match="not what 'tellapart score --json' prints"):
        read_printed(path)
