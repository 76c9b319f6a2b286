"""Self-retrieval: pools, ranks, twins, intervals, and what each caption found."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import bootstrap, kendalltau
from tests.retrievers.colour_retriever import ColourRetriever, paint

from tellapart.errors import TellapartError
from tellapart.judges import LIKELIHOOD, Author, Judge, judge_by
from tellapart.metrics.score import Scores, mean_score
from tellapart.picture_pools import (
    Pictures,
    Pool,
    find_distractors,
    hardest_pool,
    pool_of_sets,
    see_pictures,
    whole_pool,
)
from tellapart.self_retrieval import Terms, accord, first_at_random, intervals, retrieve
from tellapart.vision.efficientnet import build_lite2
from tellapart.vision.patches import Patches

Matrix = NDArray[Any]

CAPTIONS = {"a": "red", "b": "blue", "c": "red and blue", "d": "green"}


@pytest.fixture
def painted(tmp_path: Path) -> Pictures:
    paths = [
        paint(tmp_path / f"{name}.png", *text.replace("and ", "").split()) for name, text in CAPTIONS.items()
    ]
    return see_pictures(paths, Patches())[0]


@pytest.fixture
def pool(painted: Pictures) -> Pool:
    return whole_pool(list(CAPTIONS), list(CAPTIONS.values()), painted)


def scored(matrix: Matrix, name: str = "made-up") -> Judge:
    return Judge(name, f"{name}@1", lambda sentences, pictures: np.asarray(matrix, np.float32))


def made_up(matrix: Matrix, features: Matrix | None = None, digests: list[bytes] | None = None) -> Pool:
    """A pool without files, for scores without a retriever."""
    captions, pictures = matrix.shape
    angles = np.radians(np.arange(pictures) * 360 / pictures)
    apart = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    seen = Pictures(
        tuple(Path(f"{number}.png") for number in range(pictures)),
        apart if features is None else features,
        tuple(digests or [bytes([number]) for number in range(pictures)]),
    )
    ids = tuple(f"image {number}" for number in range(captions))
    return Pool("split", ids, tuple("x" for _ in ids), seen, pictures)


def test_captions_that_say_all_find_their_pictures(pool: Pool) -> None:
    verdict = retrieve(pool, judge_by(ColourRetriever()), Terms())
    assert verdict.scores["R@1"].corpus == 1
    assert verdict.scores["Mean-rank"].corpus == verdict.scores["Median-rank"].corpus == 1
    assert [finding.rank for finding in verdict.findings] == [0, 0, 0, 0]
    assert verdict.scores["R@1"].signature == (
        "retriever:colours@c01|ranks:from-1|pool:4|ties:pessimistic|pictures:split"
    )
    assert verdict.scores.notes == [
        "1 of 4 captions hold words that it does not know",
        "R@5 is 1 whatever the captions say: the pool has no more than 4 pictures",
        "R@10 is 1 whatever the captions say: the pool has no more than 4 pictures",
    ]


def test_what_a_caption_found_instead_is_told(painted: Pictures) -> None:
    told = ["red", "red", "blue", "green"]  # of a red, a blue, a red and blue, and a green picture
    verdict = retrieve(
        whole_pool(list("abcd"), told, painted), judge_by(ColourRetriever()), Terms(ranks_from=0)
    )
    first, second, third, fourth = verdict.findings
    assert (second.rank, second.found.name, round(second.found_score, 4)) == (3, "a.png", 1.0)
    assert (third.rank, third.found.name) == (1, "b.png")
    assert first.rank == fourth.rank == 0
    assert first.found.name == "c.png"  # the closest of the others
    assert verdict.scores["Mean-rank"].corpus == 1.0
    line = second.to_json("colours", ranks_from=1)
    assert (line["image_id"], line["caption"], line["rank"], line["judge"]) == ("b", "red", 4, "colours")
    assert line["found"].endswith("a.png")


def test_distractors_make_the_pool_larger_unless_they_are_in_it(painted: Pictures, tmp_path: Path) -> None:
    more = tmp_path / "more"
    for name, colour in (("x", "white"), ("copy", "red"), ("y", "purple"), ("z", "purple")):
        paint(more / f"{name}.png", colour)
    seen, bad = see_pictures(find_distractors(more), Patches())
    assert (len(seen), bad) == (4, [])
    larger = whole_pool(list(CAPTIONS), list(CAPTIONS.values()), painted, seen)
    assert [path.name for path in larger.pictures.paths[4:]] == ["x.png", "y.png"]
    assert "2 distractors are pictures that are in the pool already" in larger.notes[0]
    assert larger.to_json() == {
        "choice": "split",
        "size": 6,
        "captions": 4,
        "pictures_without_captions": 2,
    }
    verdict = retrieve(larger, judge_by(ColourRetriever()), Terms())
    # Purple is red and blue in equal parts, and so close to caption c that the two pictures tie.
    assert [finding.rank for finding in verdict.findings] == [0, 0, 1, 0]


def test_distractors_that_cannot_be_read_are_told_apart(painted: Pictures, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "broken.png").write_bytes(b"no picture")
    seen, bad = see_pictures(find_distractors(tmp_path / "more"), Patches())
    assert (len(seen), len(bad)) == (0, 1)
    assert len(whole_pool(list(CAPTIONS), list(CAPTIONS.values()), painted, seen).pictures) == 4
    (tmp_path / "list.jsonl").write_text('{"image": "a.png", "captions": ["x"]}\n')
    assert find_distractors(tmp_path / "list.jsonl") == [tmp_path / "a.png"]


def test_one_picture_alone_is_found_by_anything(painted: Pictures) -> None:
    with pytest.raises(TellapartError, match="but one picture"):
        whole_pool(["a"], ["whatever"], painted.take([0]))
    verdict = retrieve(
        whole_pool(["a"], ["blue"], painted.take([0]), painted.take([1])),
        judge_by(ColourRetriever()),
        Terms(),
    )
    assert verdict.scores["R@1"].corpus == 0  # one caption, told from one distractor


def at(*degrees: float) -> Matrix:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_the_hard_pool_holds_look_alikes_and_is_measured_beside_a_random_one() -> None:
    # Two groups of three look-alikes and four loners; the judge cannot tell look-alikes apart.
    features = at(0, 120, 1, 121, 2, 122, 60, 180, 240, 300)
    alike = np.array([0, 1, 0, 1, 0, 1, 2, 3, 4, 5])
    scores = (alike[:, None] == alike).astype(np.float32)
    hard = hardest_pool(made_up(scores, features), size=6, group=3)
    assert hard.name == "hard-in-groups-of-3"
    assert sorted(hard.ids) == [f"image {number}" for number in range(6)]
    assert (hard.size, len(hard.pictures), hard.is_chosen) == (6, 10, True)
    order = [int(path.stem) for path in hard.pictures.paths]
    assert order[:6] == [int(image_id.split()[1]) for image_id in hard.ids]
    verdict = retrieve(hard, scored(scores[np.ix_(order[:6], order)]), Terms())
    assert verdict.scores["R@1"].corpus == 0
    # Alone of its kind among 5 of the 9 others: neither of its two look-alikes may be drawn.
    assert verdict.scores["R@1-random-pool"].corpus == pytest.approx(comb(7, 5) / comb(9, 5))
    assert "drawn-from:10" in verdict.scores["R@1-random-pool"].signature
    assert all(finding.found.stem in "012345" for finding in verdict.findings)


def test_the_hard_pool_takes_the_distractors_that_look_like_it() -> None:
    features = at(90, 180, 0, 1, 91, 0.5, 200, 2)  # of the last four, two look like the two in the middle
    whole = made_up(np.zeros((4, 8)), features)
    hard = hardest_pool(whole, size=2, group=2)
    assert sorted(path.stem for path in hard.pictures.paths[: hard.inside]) == ["2", "3", "5", "7"]
    assert hard.to_json()["pictures_without_captions"] == 2
    everything = hardest_pool(whole, size=9)
    assert len(everything.ids) == 4
    assert "the hard pool is all of the 4 pictures" in everything.notes[0]


def test_a_hard_pool_of_one_is_refused() -> None:
    with pytest.raises(TellapartError, match="but one picture"):
        hardest_pool(made_up(np.zeros((5, 5))), size=1)


def test_by_default_a_fifth_is_hard_and_a_group_at_least() -> None:
    assert len(hardest_pool(made_up(np.zeros((50, 50)))).ids) == 10
    assert len(hardest_pool(made_up(np.zeros((12, 12)))).ids) == 5


def test_in_its_own_set_a_caption_has_to_beat_the_nearest_only() -> None:
    features = at(0, 10, 90, 100, 180)
    scores = np.array(
        [
            [2, 1, 9, 9, 9],  # found among its nearest, whatever the far ones score
            [3, 2, 0, 0, 0],
            [0, 0, 1, 1, 0],  # ties with its nearest
            [9, 9, 1, 2, 9],
            [0, 0, 0, 0, 1],
        ]
    )
    sets = pool_of_sets(made_up(scores, features), others=1)
    assert (sets.name, sets.size) == ("nearest-1-of-each", 2)
    verdict = retrieve(sets, scored(scores), Terms(at=(1, 2)))
    assert [finding.rank for finding in verdict.findings] == [0, 1, 1, 0, 0]
    assert [finding.found.stem for finding in verdict.findings] == ["1", "0", "3", "2", "3"]
    assert verdict.scores["R@1"].corpus == 0.6
    assert verdict.scores["R@2"].corpus == 1
    assert "R@2 is 1 whatever" in verdict.scores.notes[0]
    assert "each set has 4 others and not 9" in pool_of_sets(made_up(scores, features)).notes[0]


def test_a_caption_may_find_what_nobody_could_tell_from_its_picture() -> None:
    # Picture 1 is a copy of 0; picture 3 looks like 2; picture 4 is like neither.
    features = at(0, 200, 90, 91, 45)
    digests = [b"a", b"a", b"c", b"d", b"e"]
    scores = np.array([[1, 2, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 3, 2], [0, 0, 1, 2, 3], [0, 0, 0, 5, 4]])
    verdict = retrieve(made_up(scores, features, digests), scored(scores), Terms(same=0.99))
    assert [finding.rank for finding in verdict.findings] == [1, 1, 2, 1, 1]
    merged = verdict.scores["R@1-merged"]
    assert merged.each is not None
    assert merged.each.tolist() == [1, 1, 1, 0, 0]
    assert "merged:cosine-0.99|with-twins:4" in merged.signature
    # In a set without the twin there is nothing to merge.
    sets = pool_of_sets(made_up(scores, features, digests), others=1)
    assert "with-twins:2" in retrieve(sets, scored(scores), Terms(same=0.99)).scores["R@1-merged"].signature


@given(st.integers(2, 9), st.data())
def test_recall_grows_with_k_and_merging_never_harms(pictures: int, data: st.DataObject) -> None:
    captions = data.draw(st.integers(1, pictures))
    values = data.draw(
        st.lists(st.integers(-3, 3), min_size=captions * pictures, max_size=captions * pictures)
    )
    scores = np.array(values, np.float32).reshape(captions, pictures)
    verdict = retrieve(
        made_up(scores), scored(scores), Terms(at=tuple(range(1, pictures + 1)), same=0.5, draws=20)
    )
    recalls = [verdict.scores[f"R@{k}"].corpus for k in range(1, pictures + 1)]
    assert recalls == sorted(recalls)
    assert recalls[-1] == 1
    assert verdict.scores["R@1-merged"].corpus >= verdict.scores["R@1"].corpus
    for name, (low, high) in verdict.intervals.items():
        assert low <= high
        assert low >= (1 if "rank" in name else 0)
        assert high <= (pictures if "rank" in name else 1)
    assert all((finding.rank == 0) == (finding.score > finding.found_score) for finding in verdict.findings)


@given(st.integers(1, 7), st.data())
def test_the_chance_of_being_first_in_a_random_pool(pictures: int, data: st.DataObject) -> None:
    pool = data.draw(st.integers(1, pictures))
    found = data.draw(st.integers(0, pictures - 1))
    others = range(1, pictures)  # in the order of their scores; those up to `found` rank before
    draws = list(combinations(others, pool - 1))
    lucky = sum(all(other > found for other in drawn) for drawn in draws)
    chance = first_at_random(np.array([found]), pictures=pictures, pool=pool)[0]
    assert chance == pytest.approx(lucky / len(draws), abs=1e-12)


def test_in_large_pools_the_chance_does_not_overflow() -> None:
    chances = first_at_random(np.array([0, 1, 10, 99_999]), pictures=100_000, pool=1000)
    assert chances[[0, 3]].tolist() == [1.0, 0.0]
    assert chances[1] == pytest.approx(0.99, abs=1e-4)


def scores_of(each: Matrix) -> Scores:
    return Scores(tuple(map(str, range(len(each)))), {"R@1": mean_score("R@1", each, "")}, {})


def test_intervals_are_those_of_scipy_and_hang_on_no_order() -> None:
    each = np.random.default_rng(0).random(200)
    (low, high) = intervals(scores_of(each), draws=4000)["R@1"]
    theirs = bootstrap((each,), np.mean, n_resamples=4000, method="percentile", rng=1).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.004)
    assert intervals(scores_of(each[::-1]), draws=4000)["R@1"] == (low, high)
    assert intervals(scores_of(each), draws=0) == {}


def test_medians_have_intervals_of_their_own() -> None:
    scores = np.tril(np.full((60, 60), 2.0), -1) + np.eye(60)  # caption i has rank i
    verdict = retrieve(made_up(scores), scored(scores), Terms(draws=2000))
    low, high = verdict.intervals["Median-rank"]
    assert verdict.scores["Median-rank"].corpus == 30.5
    assert 18 < low < 26
    assert 35 < high < 43
    assert verdict.spoken("Median-rank") == ("30.5", f"[{low:.1f}, {high:.1f}]")
    assert verdict.spoken("R@1")[0] == "0.017"
    assert verdict.spoken("R@77") == ("-", "")
    mean = verdict.intervals["Mean-rank-most-crowded"]
    assert mean[0] < verdict.scores["Mean-rank-most-crowded"].corpus < mean[1]


def test_the_likelihood_is_asked_for_the_places_of_its_paper() -> None:
    scores = np.eye(3)
    names = [
        name
        for name in retrieve(made_up(scores), scored(scores, LIKELIHOOD), Terms()).scores
        if "crowd" not in name
    ]
    assert names[:4] == ["R@1", "R@5", "R@50", "R@500"]
    chosen = retrieve(made_up(scores), scored(scores, LIKELIHOOD), Terms(at=(2,))).scores
    assert "R@2" in chosen
    assert "R@50" not in chosen


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_named_in_every_pool(bad: float) -> None:
    scores = np.zeros((6, 8))
    scores[2, 5] = bad
    whole = made_up(scores)
    for pool in (whole, pool_of_sets(whole, others=2)):
        with pytest.raises(TellapartError, match=rf"caption 'image 2' for picture 'image 5' is {bad}"):
            retrieve(pool, scored(scores), Terms())
    with pytest.raises(TellapartError, match=r"shape \(6, 7\) for 6 captions and 8 pictures"):
        retrieve(whole, scored(scores[:, :7]), Terms())


def test_how_far_two_judges_agree() -> None:
    # Of four pictures both find 0 and 1, one alone 2, nobody 3: kappa is (3/4 - 1/2) / (1 - 1/2).
    scores = np.stack([np.eye(4), np.eye(4)])
    scores[:, 3] = [3, 2, 1, 0]
    scores[1, 2] = [2, 3, 1, 0]
    one, other = (retrieve(made_up(each), scored(each), Terms()) for each in scores)
    found, same = accord(one, other), accord(one, one)
    assert [found.both, found.one, found.kappa] == pytest.approx([0.5, 0.25, 0.5])
    assert found.tau == pytest.approx(kendalltau([0, 0, 0, 3], [0, 0, 2, 3]).statistic)
    assert [same.both, same.one, same.kappa, same.tau] == pytest.approx([0.75, 0, 1, 1])
    assert found.to_json()["kappa"] == pytest.approx(0.5)


def test_a_teacher_who_judges_is_flagged() -> None:
    scores = np.eye(4)
    author = Author("mine", "lite@1", ("runs/teacher@1",))
    verdict = retrieve(made_up(scores), scored(scores), Terms(), author=author)
    assert "IT TAUGHT THIS CAPTIONER" in verdict.cautions[0]
    said = verdict.to_json(author)
    assert said["taught_the_captioner"] is True
    assert said["cautions"] == list(verdict.cautions)
    assert said["scores"]["R@1"] == 1
    assert said["intervals"]["R@1"] == [1, 1]


def test_encoders_without_a_feature_of_the_whole_are_refused(tmp_path: Path) -> None:
    blind = Patches(shapes={"grid": (81, 108), "pooled": (0,), "classes": (0,)})
    with pytest.raises(TellapartError, match="gives no pooled feature"):
        see_pictures([paint(tmp_path / "a.png", "red")], blind)


def test_photographs_of_one_moment_are_merged(real_data: Path) -> None:
    folder = real_data / "flickr8k" / "images"
    # The first two are one photograph under two names.
    names = [
        "2851198725_37b6027625",
        "3050606344_af711c726c",
        "1000268201_693b08cb0e",
        "1001773457_577c3a7d70",
    ]
    seen, bad = see_pictures([folder / f"{name}.jpg" for name in names], build_lite2())
    assert not bad
    pool = whole_pool(names, ["x"] * 4, seen)
    scores = np.array([[1, 2, 0, 0], [0, 1, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1]])
    verdict = retrieve(pool, scored(scores), Terms())
    assert (verdict.scores["R@1"].corpus, verdict.scores["R@1-merged"].corpus) == (0.5, 0.75)
