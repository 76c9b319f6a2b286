"""Ranks of the own picture: their definition, their laws, and what is refused."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import rankdata

from tellapart.errors import TellapartError
from tellapart.metrics.crowding import crowding
from tellapart.metrics.material import Material
from tellapart.metrics.parts import RetrievalConfig
from tellapart.metrics.retrieval import (
    build_retrieval,
    embedding_ranks,
    mean_rank,
    median_rank,
    rank_scores,
    ranks,
    recall,
)
from tellapart.metrics.score import Score

Matrix = NDArray[Any]


@st.composite
def matrices(draw: st.DrawFn, elements: st.SearchStrategy[float] | None = None) -> tuple[Matrix, Matrix]:
    """Scores with many ties, and the own picture of each caption."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    scores = draw(arrays(kind, shape, elements=elements or st.integers(-3, 3).map(float)))
    own = draw(arrays(np.int64, shape[0], elements=st.integers(0, shape[1] - 1)))
    return scores, own


@given(matrices())
def test_a_rank_is_the_number_of_others_that_score_at_least_as_high(case: tuple[Matrix, Matrix]) -> None:
    scores, own = case
    expected = [
        sum(1 for other, score in enumerate(row) if other != mine and score >= row[mine])
        for row, mine in zip(scores.tolist(), own.tolist(), strict=True)
    ]
    assert ranks(scores, own).tolist() == expected


@given(matrices())
def test_ranks_agree_with_those_of_scipy(case: tuple[Matrix, Matrix]) -> None:
    scores, own = case
    theirs = rankdata(-scores, method="max", axis=1)[np.arange(len(own)), own] - 1
    assert ranks(scores, own).tolist() == theirs.tolist()


@given(matrices(), st.integers(1, 12))
def test_blocks_change_nothing(case: tuple[Matrix, Matrix], rows: int) -> None:
    scores, own = case
    assert ranks(scores, own, rows=rows).tolist() == ranks(scores, own, rows=1000).tolist()


@given(matrices())
def test_recall_grows_with_k_up_to_one(case: tuple[Matrix, Matrix]) -> None:
    scores, own = case
    recalls = [recall(ranks(scores, own), k) for k in range(1, scores.shape[1] + 1)]
    assert recalls == sorted(recalls)
    assert recalls[-1] == 1.0


@given(matrices())
def test_monotone_transforms_of_a_captions_scores_change_nothing(case: tuple[Matrix, Matrix]) -> None:
    scores, own = case
    stretched = np.exp(scores.astype(np.float64)) * np.arange(1, len(scores) + 1)[:, None] - 5
    assert ranks(stretched, own).tolist() == ranks(scores, own).tolist()


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_pictures_changes_nothing(case: tuple[Matrix, Matrix], random: Any) -> None:
    scores, own = case
    order = np.array(random.sample(range(scores.shape[1]), scores.shape[1]))
    assert ranks(scores[:, order], np.argsort(order)[own]).tolist() == ranks(scores, own).tolist()


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.0, -1.5, 1e30]))
def test_a_retriever_to_which_all_looks_alike_has_the_worst_ranks(n: int, pool: int, score: float) -> None:
    own = np.arange(n) % pool
    assert ranks(np.full((n, pool), score), own).tolist() == [pool - 1] * n
    assert embedding_ranks(np.ones((n, 2)), np.ones((pool, 2)), own).tolist() == [pool - 1] * n


small = st.integers(-4, 4).map(float)  # products and sums of such numbers are exact


@given(st.data(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 5))
def test_ranks_by_embeddings_are_those_by_their_product(data: Any, n: int, pool: int, rows: int) -> None:
    kind = data.draw(st.sampled_from([np.float16, np.float32, np.float64]))
    texts = data.draw(arrays(kind, (n, 2), elements=small))
    images = data.draw(arrays(kind, (pool, 2), elements=small))
    own = data.draw(arrays(np.int64, n, elements=st.integers(0, pool - 1)))
    assert embedding_ranks(texts, images, own, rows=rows).tolist() == ranks(texts @ images.T, own).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("pool", [7, 64, 301])
def test_a_picture_that_is_there_twice_ties_with_itself(kind: Any, pool: int) -> None:
    # Where a matrix product rounds by the place of a column, equal columns come out unlike.
    generator = np.random.default_rng(pool)
    images = generator.standard_normal((pool, 333)).astype(kind)
    images[:, 5] = 0.0
    texts = images + generator.standard_normal(images.shape).astype(kind) / 10
    before = embedding_ranks(texts, images)
    again = images[::-1].copy()
    again[:, 5] = -0.0  # which is the same number
    twice = np.concatenate([images, again])
    assert embedding_ranks(texts, twice, rows=50).tolist() == (2 * before + 1).tolist()


def test_half_precision_does_not_tie_what_is_unlike() -> None:
    images = np.array([[2048, 1], [2048, 0]], dtype=np.float16)
    assert embedding_ranks(np.ones((1, 2), dtype=np.float16), images).tolist() == [0]


def test_the_matrix_of_embeddings_is_never_whole() -> None:
    generator = np.random.default_rng(0)
    texts, images = generator.standard_normal((2, 4000, 8), dtype=np.float32)
    tracemalloc.start()
    embedding_ranks(texts, images, rows=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * 4000  # a quarter of the matrix


def test_a_file_of_scores_is_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).standard_normal((3000, 3000)).astype(np.float32)
    np.save(tmp_path / "scores.npy", scores)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    tracemalloc.start()
    found = ranks(mapped, rows=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < scores.nbytes / 4
    assert found.tolist() == ranks(scores).tolist()


def test_progress_is_told_up_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    ranks(np.eye(5), rows=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    seen.clear()
    embedding_ranks(np.eye(5), np.eye(5), rows=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 5), (5, 5)]


def test_means_and_medians_are_in_the_base_that_is_asked_for() -> None:
    found = np.array([0, 3, 1, 10])
    assert mean_rank(found, ranks_from=0) == 3.5
    assert mean_rank(found, ranks_from=1) == 4.5
    assert median_rank(found, ranks_from=0) == 2.0  # Lindh et al. would print 3 beside a mean of 3.5
    assert median_rank(found, ranks_from=1) == 3.0
    assert recall(found, 1) == 0.25
    assert recall(found, 2) == 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_named(bad: float) -> None:
    scores = np.zeros((700, 700))
    scores[600, 3] = bad
    with pytest.raises(TellapartError, match=rf"caption 600 .* picture 3 .* is {bad}"):
        ranks(scores)
    with pytest.raises(TellapartError, match=rf"caption 'i600' for picture 'i3' is {bad}"):
        ranks(scores, ids=[f"i{number}" for number in range(700)])


def test_scores_too_great_to_be_added_are_scores_all_the_same() -> None:
    scores = np.full((2, 2), 1e308)
    scores[0, 0] = 1.7e308
    assert ranks(scores).tolist() == [0, 1]


def test_embeddings_that_are_not_finite_are_named_by_their_own_place() -> None:
    images = np.ones((4, 2))
    images[3, 1] = np.nan  # the second of two distinct rows
    with pytest.raises(TellapartError, match=r"caption 0 .* picture 3 "):
        embedding_ranks(np.ones((4, 2)), images)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ([0, 1], "3 captions"),
        ([0, 1, 4], "caption 2 .* picture 4, and there are 4"),
        ([0, -1, 1], "picture -1"),
    ],
)
def test_own_pictures_have_to_be_in_the_pool(own: list[int], said: str) -> None:
    with pytest.raises(TellapartError, match=said):
        ranks(np.zeros((3, 4)), own)
    with pytest.raises(TellapartError, match=said):
        embedding_ranks(np.zeros((3, 1)), np.zeros((4, 1)), own)


def test_what_is_no_matrix_of_scores_is_refused() -> None:
    with pytest.raises(TellapartError, match=re.escape("shape (3,)")):
        ranks(np.zeros(3))
    with pytest.raises(TellapartError, match="complex128"):
        ranks(np.zeros((2, 2), dtype=complex))
    with pytest.raises(TellapartError, match=re.escape("(2, 3) and pictures as (2, 4)")):
        embedding_ranks(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(TellapartError, match="no rank"):
        recall(np.array([], dtype=np.int64), 1)
    with pytest.raises(TellapartError, match="recall@0"):
        recall(np.array([0]), 0)


def material(similarity: Matrix | None, features: Matrix | None = None, captions: int = 10) -> Material:
    ids = tuple(f"image {number}" for number in range(captions))
    return Material(ids, tuple(("a cat",) for _ in ids), similarity=similarity, features=features)


def measured(given: Material, config: RetrievalConfig | None = None) -> dict[str, Score]:
    return {score.name: score for score in build_retrieval(config or RetrievalConfig())(given)}


def staircase(pictures: int = 10) -> Matrix:
    """Caption i has rank i."""
    scores = np.zeros((10, pictures))
    for row in range(10):
        scores[row, :row] = 2
        scores[row, row] = 1
    return scores + np.where(np.arange(pictures) >= 10, 3, 0)


def test_the_measure_gives_recalls_mean_and_median() -> None:
    scores = measured(material(staircase()))
    assert {name: score.corpus for name, score in scores.items()} == {
        "R@1": 0.1,
        "R@5": 0.5,
        "R@10": 1.0,
        "Mean-rank": 5.5,
        "Median-rank": 5.5,
    }
    assert {score.signature for score in scores.values()} == {"ranks:from-1|pool:10|ties:pessimistic"}
    assert scores["R@5"].each is not None
    assert scores["R@5"].each.tolist() == [1.0] * 5 + [0.0] * 5
    assert scores["Mean-rank"].each is not None
    assert scores["Mean-rank"].each.tolist() == list(range(1, 11))
    assert "R@10 is 1 whatever" in scores["R@10"].notes[0]
    assert scores["R@5"].notes == ()


def test_ranks_from_zero_say_so() -> None:
    scores = measured(material(staircase()), RetrievalConfig(ranks_from=0, at=(2, 2)))
    assert list(scores) == ["R@2", "Mean-rank", "Median-rank"]
    assert scores["R@2"].corpus == 0.2
    assert scores["Mean-rank"].corpus == scores["Median-rank"].corpus == 4.5
    assert scores["Mean-rank"].signature.startswith("ranks:from-0|")


def test_signatures_name_the_retriever_where_it_is_known() -> None:
    angles = np.radians([0, 120, 200, 210, 220, 230, 240, 250, 285, 285])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    named = replace(material(staircase(), features), retriever="runs/a|b@1")
    scores = measured(named)
    assert all(score.signature.startswith("retriever:runs/a/b@1|ranks:from-1|") for score in scores.values())
    plain = measured(material(staircase(), features))
    assert [score.corpus for score in scores.values()] == [score.corpus for score in plain.values()]


def test_ranks_from_anywhere_are_summed_up_the_same() -> None:
    angles = np.radians([0, 120, 200, 210, 220, 230, 240, 250, 285, 285])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    config = RetrievalConfig(at=(1, 3))
    whole = build_retrieval(config)(replace(material(staircase(), features), retriever="r"))
    found = ranks(staircase())
    parts = rank_scores(found, config, pool=10, retriever="r")
    parts += rank_scores(found, config, pool=10, retriever="r", crowded=crowding(features))
    assert [(part.name, part.corpus, part.signature) for part in parts] == [
        (score.name, score.corpus, score.signature) for score in whole
    ]


def test_crowding_is_told_from_all_pictures_and_not_from_those_with_captions() -> None:
    parts = rank_scores(
        np.arange(10), RetrievalConfig(), pool=10, crowded=np.random.default_rng(0).random(250)
    )
    assert "crowding:cosine-to-nearest-2|captions:2" in parts[0].signature


def test_pictures_without_captions_make_the_pool_larger() -> None:
    scores = measured(material(staircase(pictures=12)))
    assert scores["Mean-rank"].corpus == 7.5
    assert "pool:12" in scores["R@1"].signature


def test_the_measure_says_what_it_lacks() -> None:
    with pytest.raises(TellapartError, match=r"--similarity FILE\.npy"):
        measured(material(None))
    for shape in ((9, 10), (10, 9), (50, 10), (10,)):
        with pytest.raises(TellapartError, match=" x ".join(map(str, shape)) + ".*10 captions"):
            measured(material(np.zeros(shape)))
    with pytest.raises(TellapartError, match="features of 9 pictures and scores of 10"):
        measured(material(staircase(), np.ones((9, 2))))
    with pytest.raises(TellapartError, match="'image 2'"):
        measured(material(np.where(np.eye(10) * np.arange(10) == 2, np.nan, 0)))
    with pytest.raises(TellapartError, match="recall@0"):
        build_retrieval(RetrievalConfig(at=(0,)))


def test_the_most_and_least_crowded_are_measured_apart() -> None:
    # Pictures 8 and 9 are one picture; 0 and 1 point away from all others and from one another.
    angles = np.radians([0, 120, 200, 210, 220, 230, 240, 250, 285, 285])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    scores = measured(material(staircase(), features))
    most, least = scores["Mean-rank-most-crowded"], scores["Mean-rank-least-crowded"]
    assert most.corpus == 9.5
    assert least.corpus == 1.5
    assert scores["Median-rank-most-crowded"].corpus == 9.5
    assert (scores["R@1-least-crowded"].corpus, scores["R@5-most-crowded"].corpus) == (0.5, 0.0)
    assert "crowding:cosine-to-nearest-1|captions:2" in most.signature
    assert "crowding" not in scores["R@1"].signature
    assert len(scores) == 15


def test_crowding_counts_all_pictures_and_groups_only_those_with_captions() -> None:
    # Two pictures without captions are twins of pictures 3 and 4, which nothing else is near to.
    angles = np.radians([0, 10, 20, 150, 200, 250, 275, 300, 320, 340, 150, 200])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    scores = measured(material(staircase(pictures=12), features))
    assert scores["Mean-rank-most-crowded"].corpus == 6.5  # ranks 6 and 7
    assert scores["R@1-most-crowded"].signature.endswith("crowding:cosine-to-nearest-1|captions:2")


def test_images_outside_a_group_have_no_value_and_do_not_spoil_its_resampling() -> None:
    angles = np.radians([0, 120, 200, 210, 220, 230, 240, 250, 285, 285])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    most = measured(material(staircase(), features))["Mean-rank-most-crowded"]
    assert most.each is not None
    assert np.isnan(most.each[:8]).all()
    assert most.each[8:].tolist() == [9.0, 10.0]
    weights = np.zeros((3, 10))
    weights[0] = 1
    weights[1, 9] = 10
    weights[2, 0] = 10
    assert most.pooled is not None
    assert most.pooled.formula(weights @ most.pooled.statistics).tolist() == [9.5, 10.0, 9.5]
