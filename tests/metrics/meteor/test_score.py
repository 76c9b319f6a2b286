"""METEOR's statistics and scores: what other people's programs say, and what must hold for any captions."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.metrics.meteor import score
from tellapart.metrics.meteor.resources import ResourceFiles, Resources, load_resources
from tellapart.metrics.meteor.score import addends, corpus_score, meteor, segment_scores

slow_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def one_score(candidate: str, references: list[str], resources: Resources) -> float:
    return float(segment_scores(meteor([candidate], [references], resources).each)[0])


def test_500_human_captions_score_as_the_jar_says(loo_500: Any, resources: Resources) -> None:
    found = meteor(loo_500["candidates_tok"], loo_500["references_tok"], resources)
    expected = loo_500["expected"]
    lines = np.array([line.split() for line in expected["METEOR_stats_full"]], dtype=np.float64)
    np.testing.assert_array_equal(found.each, lines)
    np.testing.assert_allclose(
        segment_scores(found.each), expected["per_image"]["METEOR"], rtol=0, atol=6e-13
    )
    corpus = corpus_score(addends(found.each).sum(axis=0))
    assert float(corpus) == pytest.approx(expected["corpus"]["METEOR"], abs=1e-15)


@pytest.mark.parametrize(("name", "modules"), [("exact", 1), ("exact_stem", 2), ("exact_stem_synonym", 3)])
def test_fewer_modules_score_as_the_jar_says(
    name: str, modules: int, loo_500: Any, resources: Resources
) -> None:
    found = meteor(loo_500["candidates_tok"], loo_500["references_tok"], resources, modules=modules)
    expected = loo_500["expected"]["METEOR_modules"][name]
    np.testing.assert_allclose(segment_scores(found.each), expected["per_image"], rtol=0, atol=6e-13)
    corpus = corpus_score(addends(found.each).sum(axis=0))
    assert float(corpus) == pytest.approx(expected["corpus"], abs=1e-15)


def test_no_captions_are_no_statistics(resources: Resources) -> None:
    assert meteor([], [], resources).each.shape == (0, 23)


@pytest.mark.parametrize(
    ("candidate", "references"), [("", ["a dog"]), ("", [""]), ("a dog", [""]), ("zebra", ["table"])]
)
def test_nothing_in_common_scores_nothing(
    candidate: str, references: list[str], resources: Resources
) -> None:
    assert one_score(candidate, references, resources) == 0.0


def test_equal_texts_score_one_and_add_no_chunk(resources: Resources) -> None:
    found = meteor(["a dog runs"], [["a cat", "a dog runs"]], resources)
    assert segment_scores(found.each).tolist() == [1.0]
    assert found.each[0, 20] == 1
    assert addends(found.each)[0, 20] == 0


def test_each_module_finds_its_own(tiny_files: ResourceFiles) -> None:
    resources = load_resources(tiny_files)
    found = meteor(
        ["the hound", "mice", "she rides", "runs"],
        [["the dog"], ["mouse"], ["she is riding"], ["running"]],
        resources,
    )
    # exact, stem, synonym, paraphrase; of each: content of candidate and reference, function words of both
    assert found.each[0, 4:20].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    assert found.each[1, 4:20].tolist() == [0] * 8 + [1, 1, 0, 0] + [0] * 4
    assert found.each[2, 4:20].tolist() == [1, 1, 0, 0] + [0] * 8 + [1, 1, 0, 1]
    assert found.each[3, 4:20].tolist() == [0] * 4 + [1, 1, 0, 0] + [0] * 8


def test_the_first_of_equally_good_references_counts(resources: Resources) -> None:
    found = meteor(["dog", "dog"], [["a dog dog", "dog a dog"], ["dog a dog", "a dog dog"]], resources).each
    assert found[0].tolist() == found[1].tolist()
    apart = meteor(["red dog"], [["zebra", "table lamp on a shelf"]], resources).each
    assert apart[0, 1] == 1


def test_signs_of_the_jars_protocol_are_no_words(resources: Resources) -> None:
    plain = meteor(["a dog"], [["the dog runs"]], resources).each
    signs = meteor(["a ||| dog"], [["the dog ||| runs"]], resources).each
    lines = meteor(["a\r\ndog"], [["the dog\nruns"]], resources).each
    assert plain.tolist() == signs.tolist() == lines.tolist()


def test_unlike_numbers_of_captions_and_references_are_refused(resources: Resources) -> None:
    with pytest.raises(TellapartError, match="2 candidates, but references for 1"):
        meteor(["a", "b"], [["a"]], resources)
    with pytest.raises(TellapartError, match="candidate 1 has no references, as 1 more"):
        meteor(["a", "b", "c"], [["a"], [], []], resources)


@slow_fixtures
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_images_do_not_influence_one_another(
    seed: int, data: st.DataObject, writer: Any, resources: Resources
) -> None:
    chance = random.Random(seed)
    images = [writer.image(chance) for _ in range(6)]
    order = data.draw(st.permutations(range(6)))
    together = meteor([image[0] for image in images], [image[1] for image in images], resources).each
    apart = [meteor([images[place][0]], [images[place][1]], resources).each[0] for place in order]
    np.testing.assert_array_equal(together[list(order)], apart)


@slow_fixtures
@given(seed=st.integers(0, 1 << 32))
def test_statistics_add_up(seed: int, writer: Any, resources: Resources) -> None:
    chance = random.Random(seed)
    candidate, references = writer.image(chance)
    (row,) = meteor([candidate], [references], resources).each
    matches = row[4:20].reshape(4, 2, 2)  # module, content or function, side
    assert matches.sum(axis=(0, 1)).tolist() == row[21:].tolist()
    assert (row[21:] <= row[:2]).all()
    assert (matches[:, 1].sum(axis=0) <= row[2:4]).all()
    assert (row[20] == 0) == (row[21] == 0)
    assert row[20] <= min(row[21], row[22])
    assert 0.0 <= segment_scores(row) <= 1.0
    # One more reference can only help, and does not where it is one of those that are there.
    more = meteor([candidate], [[*references, writer.image(chance)[0]]], resources).each[0]
    assert segment_scores(more) >= segment_scores(row)
    again = meteor([candidate], [[*references, references[0]]], resources).each[0]
    assert again.tolist() == row.tolist()


def test_captions_are_aligned_in_batches_of_any_size(
    loo_500: Any, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates, references = loo_500["candidates_tok"][:50], loo_500["references_tok"][:50]
    whole = meteor(candidates, references, resources).each
    monkeypatch.setattr(score, "TOGETHER", 7)
    np.testing.assert_array_equal(meteor(candidates, references, resources).each, whole)


def test_the_formula_takes_arrays_of_any_shape(loo_500: Any, resources: Resources) -> None:
    each = meteor(loo_500["candidates_tok"][:60], loo_500["references_tok"][:60], resources).each
    np.testing.assert_array_equal(
        segment_scores(each.reshape(3, 20, 23)), segment_scores(each).reshape(3, 20)
    )
    weights = np.random.default_rng(0).integers(0, 3, (8, 60))
    resampled = corpus_score(weights @ addends(each))
    rows = np.repeat(np.arange(60), weights[5])
    assert resampled[5] == pytest.approx(float(corpus_score(addends(each[rows]).sum(axis=0))), abs=1e-15)


def test_time_grows_as_the_number_of_captions(loo_500: Any, resources: Resources) -> None:
    def seconds(times: int) -> float:
        begun = time.process_time()
        meteor(loo_500["candidates_tok"] * times, loo_500["references_tok"] * times, resources)
        return time.process_time() - begun

    seconds(1)
    assert seconds(12) < 2.5 * 4 * min(seconds(3) for _ in range(3))


def test_long_captions_take_no_longer_than_they_must(loo_500: Any, resources: Resources) -> None:
    words = " ".join(loo_500["candidates_tok"]).split()[:5_000]
    assert len(words) == 5_000
    shifted = " ".join(words[100:] + words[:100])
    begun = time.process_time()
    found = meteor([" ".join(words), "a dog"], [[shifted], [shifted]], resources).each
    assert time.process_time() - begun < 60
    assert found[0, 21] > 4_900
    assert found[1, 21] == 2
