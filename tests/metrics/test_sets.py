"""Diversity of an image's candidates: against published programs' values, live programs, and its laws."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider_scorer import CiderScorer, cook_refs, cook_test

from tellapart.errors import TellapartError
from tellapart.metrics import overlap
from tellapart.metrics.material import Material
from tellapart.metrics.parts import SetsConfig
from tellapart.metrics.score import Floats, Score
from tellapart.metrics.self_bleu import closest_other_lengths
from tellapart.metrics.sets import build_sets

Groups = Sequence[Sequence[str]]

WORDS = ["a", "dog", "cat", "runs", "red", "on"]
texts = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


def groups_of(width: int) -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(texts, min_size=width, max_size=width), min_size=1, max_size=5)


several = st.integers(2, 5).flatmap(groups_of)


def material_of(groups: Groups) -> Material:
    return Material(tuple(map(str, range(len(groups)))), tuple(map(tuple, groups)))


def of(material: Material, *, df: str = "candidates") -> dict[str, Score]:
    return {score.name: score for score in build_sets(SetsConfig(df=df))(material)}


def each(score: Score) -> Floats:
    assert score.each is not None
    return score.each


# --- published programs ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def truth(real_data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((real_data.parent / "metrics" / "diversity_1000x5.json").read_bytes())
    return found


@pytest.fixture(scope="module")
def photographs(real_data: Path) -> dict[int, list[str]]:
    """Five captions of each image of COCO val2017, in the order of their annotations."""
    with gzip.open(real_data / "text" / "coco_captions_val2017.json.gz") as file:
        annotations = json.load(file)["annotations"]
    found: dict[int, list[str]] = {}
    for annotation in sorted(annotations, key=lambda annotation: int(annotation["id"])):
        found.setdefault(annotation["image_id"], []).append(annotation["caption"])
    return found


@pytest.fixture(scope="module")
def thousand(truth: dict[str, Any], photographs: dict[int, list[str]]) -> dict[str, Score]:
    measured = set(truth["ids"])
    training = tuple(tuple(group) for image, group in photographs.items() if image not in measured)
    return of(replace(material_of(truth["captions"]), training=training))


def test_as_self_critical_has_it(truth: dict[str, Any], thousand: dict[str, Score]) -> None:
    expected = truth["expected"]["self_critical_eval_div_stats"]
    corpus = expected["overall"]
    for order in range(1, 5):
        assert thousand[f"mBLEU-{order}"].corpus == pytest.approx(corpus[f"mBLeu_{order}"], abs=1e-12)
    for order in (1, 2):
        assert thousand[f"Div-{order}"].corpus == pytest.approx(corpus[f"Div{order}"], abs=1e-12)
        np.testing.assert_allclose(
            each(thousand[f"Div-{order}"]), expected[f"per_image_Div{order}"], atol=1e-11
        )
    assert thousand["gDiv-2"].corpus == pytest.approx(corpus["gDiv2"], abs=1e-12)
    assert thousand["Vocabulary-all"].corpus == corpus["gDiv1"]
    np.testing.assert_allclose(each(thousand["mBLEU-2"]), expected["per_image_mBleu_2"], atol=1e-11)


def test_as_diversity_metrics_has_it(truth: dict[str, Any], thousand: dict[str, Score]) -> None:
    expected = truth["expected"]["DiversityMetrics_mBLEU"]
    for order, value in enumerate(expected["overall_per_order"], start=1):
        assert thousand[f"mBLEU-{order}-image"].corpus == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(each(thousand["mBLEU-4-image"]), expected["per_image_mBLEU4"], atol=1e-11)
    expected = truth["expected"]["DiversityMetrics_LSA"]
    assert thousand["LSA"].corpus == pytest.approx(expected["overall"], abs=1e-12)
    np.testing.assert_allclose(each(thousand["LSA"]), expected["per_image"], atol=1e-11)


@pytest.mark.parametrize(
    ("name", "key"),
    [("SelfCIDEr", "self_critical_self_cider_df"), ("SelfCIDEr-D", "DiversityMetrics_SelfCider_df")],
)
def test_self_cider(
    name: str,
    key: str,
    truth: dict[str, Any],
    photographs: dict[int, list[str]],
    thousand: dict[str, Score],
) -> None:
    # One image has two equal captions: the programs take the root of a rounding error there, we do not.
    own = truth["expected"][f"{key}_1000_own"]
    assert thousand[name].corpus == pytest.approx(own["overall"], abs=1e-10)
    np.testing.assert_allclose(each(thousand[name]), own["per_image"], atol=1e-8)
    everything = replace(material_of(truth["captions"]), training=tuple(map(tuple, photographs.values())))
    found = of(everything, df="train")[name]
    all_of_them = truth["expected"][f"{key}_5000_val2017"]
    assert found.corpus == pytest.approx(all_of_them["overall"], abs=1e-10)
    np.testing.assert_allclose(each(found), all_of_them["per_image"], atol=1e-8)
    assert "|df:train(5000," in found.signature
    assert "|df:candidates(1000)|" in thousand[name].signature


def test_as_lindh_counts(truth: dict[str, Any], thousand: dict[str, Score]) -> None:
    expected = truth["expected"]["lindh_all5_tokenized"]
    assert thousand["Distinct-all"].corpus == expected["fraction_distinct"]
    assert thousand["Novel-within"].corpus == pytest.approx(expected["fraction_novel"], abs=1e-12)
    assert thousand["Vocabulary-all"].corpus == expected["vocabulary"]
    within = [len(set(group)) / len(group) for group in truth["captions_tok"]]
    assert each(thousand["Distinct-within"]).tolist() == within


# --- live programs, and the definitions retold slowly ---------------------------------------------


@given(several)
def test_mutual_bleu_is_that_of_coco(groups: list[list[str]]) -> None:
    found = of(material_of(groups))
    single: list[Any] = []
    corpus: list[Any] = []
    for column in range(len(groups[0])):
        others = {image: [*group[:column], *group[column + 1 :]] for image, group in enumerate(groups)}
        own = {image: [group[column]] for image, group in enumerate(groups)}
        whole, parts = Bleu(4).compute_score(others, own, verbose=0)
        corpus.append(whole)
        single.append(parts)
    for order in range(4):
        name = f"mBLEU-{order + 1}"
        assert found[name].corpus == pytest.approx(np.mean(corpus, axis=0)[order], rel=1e-9)
        np.testing.assert_allclose(each(found[name]), np.mean(single, axis=0)[order], rtol=1e-9)
        assert found[f"{name}-image"].corpus == pytest.approx(np.mean(single, axis=(0, 2))[order], rel=1e-9)
        pooled = found[name].pooled
        assert pooled is not None
        again = pooled.formula(pooled.statistics.sum(axis=0, keepdims=True))
        assert again.tolist() == pytest.approx([found[name].corpus])


def diversity_of(spectrum: Any, width: int) -> float:
    """The ratio as it is printed; where all is zero it has no value, and ours is defined to be 0."""
    return 0.0 if max(spectrum) == 0 else -math.log(max(spectrum) / sum(spectrum)) / math.log(width)


def without_rounding(values: Any) -> Any:
    """What a root would blow up from 1e-16 to 1e-8."""
    return np.where(values > 1e-12, values, 0)


@given(several)
def test_the_kernel_of_self_cider_d_is_that_of_coco(groups: list[list[str]]) -> None:
    width = len(groups[0])
    scorer = CiderScorer()
    for group in groups:
        scorer += (None, group)
    scorer.compute_doc_freq()
    kernels = np.zeros((len(groups), width, width))
    for row in range(width):
        for column in range(row, width):
            scorer.ctest = [cook_test(group[row]) for group in groups]
            scorer.crefs = [cook_refs([group[column]]) for group in groups]
            kernels[:, row, column] = kernels[:, column, row] = scorer.compute_cider()
    found = each(of(material_of(groups))["SelfCIDEr-D"])
    for value, kernel in zip(found, kernels, strict=True):
        roots = np.sqrt(without_rounding(np.linalg.svd(kernel)[1]))
        assert value == pytest.approx(diversity_of(roots, width), abs=1e-7)


def ngrams(text: str, order: int) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(tuple(words[begin : begin + order]) for begin in range(len(words) - order + 1))


def cosine(one: Counter[tuple[str, ...]], other: Counter[tuple[str, ...]], rarity: Any) -> float:
    def product(left: Counter[tuple[str, ...]], right: Counter[tuple[str, ...]]) -> float:
        return math.fsum(left[gram] * right[gram] * rarity(gram) ** 2 for gram in left)

    below = math.sqrt(product(one, one) * product(other, other))
    return product(one, other) / below if below else 0.0


@settings(max_examples=40)
@given(several)
def test_self_cider_as_its_definition_says(groups: list[list[str]]) -> None:
    def rarity(gram: tuple[str, ...]) -> float:
        holding = sum(any(gram in ngrams(text, len(gram)) for text in group) for group in groups)
        return math.log(len(groups)) - math.log(max(1, holding))

    found = each(of(material_of(groups))["SelfCIDEr"])
    for value, group in zip(found, groups, strict=True):
        kernel = np.array(
            [
                [
                    sum(cosine(ngrams(one, order), ngrams(other, order), rarity) for order in range(1, 5)) / 4
                    for other in group
                ]
                for one in group
            ]
        )
        roots = np.sqrt(without_rounding(np.linalg.eigvalsh(kernel)))
        assert value == pytest.approx(diversity_of(roots, len(group)), abs=1e-7)


@given(several)
def test_the_rest_as_its_definition_says(groups: list[list[str]]) -> None:
    found = of(material_of(groups))
    for image, group in enumerate(groups):
        words = sum(len(text.split()) for text in group)
        for order in (1, 2):
            distinct = {gram for text in group for gram in ngrams(text, order)}
            assert each(found[f"Div-{order}"])[image] == pytest.approx(len(distinct) / (words + 1e-6))
        assert each(found["Distinct-within"])[image] == len(set(group)) / len(group)
        vocabulary = sorted({word for text in group for word in text.split(" ")})
        table = [[text.split(" ").count(word) for text in group] for word in vocabulary]
        singular = without_rounding(np.linalg.svd(np.array(table, dtype=float), compute_uv=False))
        assert each(found["LSA"])[image] == pytest.approx(diversity_of(singular, len(group)), abs=1e-7)


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1))
def test_the_closest_of_the_other_lengths(rows: list[list[int]]) -> None:
    expected = [
        [
            min((abs(other - own), other) for place, other in enumerate(row) if place != here)[1]
            for here, own in enumerate(row)
        ]
        for row in rows
    ]
    assert closest_other_lengths(np.array(rows)).tolist() == expected


# --- laws -----------------------------------------------------------------------------------------


def test_copies_of_one_text_have_no_diversity() -> None:
    found = of(material_of([["a red dog runs on a red cat"] * 4, ["two men sit at the bar"] * 4]))
    for name in ("SelfCIDEr", "SelfCIDEr-D", "LSA"):
        assert each(found[name]).tolist() == pytest.approx([0, 0], abs=1e-15)
    for order in range(1, 5):
        assert found[f"mBLEU-{order}"].corpus == pytest.approx(1, abs=1e-8)
        assert found[f"mBLEU-{order}-image"].corpus == pytest.approx(1, abs=1e-8)
    assert each(found["Distinct-within"]).tolist() == [0.25, 0.25]
    assert each(found["Div-1"]).tolist() == pytest.approx([6 / 32, 6 / 24], abs=1e-6)


def test_texts_without_a_common_word_are_as_diverse_as_can_be() -> None:
    found = of(
        material_of([["a red dog runs", "two men sit down"], ["one cat was here", "birds fly over there"]])
    )
    for name in ("SelfCIDEr", "SelfCIDEr-D", "LSA"):
        assert each(found[name]).tolist() == pytest.approx([1, 1])
    assert found["mBLEU-4"].corpus < 1e-6
    assert found["Distinct-within"].corpus == 1
    assert each(found["Div-1"]).tolist() == pytest.approx([1, 1], abs=1e-6)


@given(several, st.randoms(use_true_random=False))
def test_the_order_of_candidates_matters_to_self_cider_d_alone(groups: list[list[str]], random: Any) -> None:
    found = of(material_of(groups))
    order = random.sample(range(len(groups[0])), len(groups[0]))
    other = of(material_of([[group[place] for place in order] for group in groups]))
    for name in found.keys() - {"SelfCIDEr-D"}:
        assert other[name].corpus == pytest.approx(found[name].corpus, abs=1e-7), name


@given(several, st.randoms(use_true_random=False))
def test_images_may_come_in_any_order(groups: list[list[str]], random: Any) -> None:
    order = random.sample(range(len(groups)), len(groups))
    found, other = of(material_of(groups)), of(material_of([groups[image] for image in order]))
    for name, score in found.items():
        assert other[name].corpus == pytest.approx(score.corpus, abs=1e-7), name
        if score.each is not None:
            np.testing.assert_allclose(each(other[name]), score.each[order], atol=1e-7)


@given(several)
def test_every_value_is_a_share(groups: list[list[str]]) -> None:
    for name, score in of(material_of(groups)).items():
        if name != "Vocabulary-all":
            assert -1e-12 <= score.corpus <= 1 + 1e-12, name
            assert score.each is None or np.isfinite(score.each).all()


@settings(max_examples=30)
@given(several, st.integers(1, 40), st.integers(1, 40))
def test_blocks_change_nothing(groups: list[list[str]], pairs: int, cells: int) -> None:
    whole = of(material_of(groups))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "_PAIRS", pairs)
        patch.setattr(overlap, "_CELLS", cells)
        parted = of(material_of(groups))
    for name, score in whole.items():
        assert parted[name].corpus == pytest.approx(score.corpus, abs=1e-7), name


def test_progress_runs_to_its_end() -> None:
    seen: list[tuple[str, int, int]] = []
    material = material_of([["a dog", "a cat"]] * 3)
    of(replace(material, watch=lambda what, done, total: seen.append((what, done, total))))
    assert {what for what, _, _ in seen} == {"mBLEU", "SelfCIDEr", "LSA"}
    for what in ("mBLEU", "SelfCIDEr", "LSA"):
        steps = [(done, total) for name, done, total in seen if name == what]
        assert steps[-1] == (3, 3)
        assert all(one <= other for one, other in pairwise(steps))


# --- odd material ---------------------------------------------------------------------------------


def test_novel_texts_that_are_said_twice_count_twice() -> None:
    material = material_of([["a dog", "a dog", "A cat."], ["a cat", "a cat", "a cat"]])
    found = of(replace(material, training=(("a cat",), ("one more",))))
    assert each(found["Novel-within"]).tolist() == pytest.approx([2 / 3, 0])
    assert found["Novel-within"].signature == "tokenizer:ptb|candidates:3|train:2,e40d17bb"
    assert "Novel-within" not in of(material)


def test_empty_texts_have_values() -> None:
    found = of(material_of([["", ""], ["", "a dog"], ["a cat", "two dogs"]]))
    assert each(found["Div-1"]).tolist() == pytest.approx([0, 1, 1], abs=1e-6)
    assert each(found["LSA"])[0] == pytest.approx(0, abs=1e-15)
    assert each(found["LSA"])[1] > 0
    assert each(found["SelfCIDEr"])[0] == each(found["SelfCIDEr-D"])[0] == 0
    assert each(found["mBLEU-4-image"])[0] == 0
    (note,) = found["SelfCIDEr"].notes
    assert "0 for 1 of 3 images" in note


def test_one_image_alone_has_no_rare_words() -> None:
    found = of(material_of([["a red dog", "two cats"]]))
    assert found["SelfCIDEr"].corpus == found["SelfCIDEr-D"].corpus == 0
    assert found["SelfCIDEr"].notes == found["SelfCIDEr-D"].notes
    assert "0 for 1 of 1 images" in found["SelfCIDEr"].notes[0]


def test_one_very_long_text_among_short_ones() -> None:
    short = [["a dog runs", "a cat runs"]] * 50
    long = " ".join(f"w{number % 1999}" for number in range(5000))
    found = of(material_of([*short, [long, long + " end"]]))
    assert each(found["mBLEU-4-image"])[-1] > 0.99
    assert each(found["SelfCIDEr"])[-1] < 0.1
    np.testing.assert_allclose(each(found["SelfCIDEr"])[:-1], each(found["SelfCIDEr"])[0])


def test_frequencies_of_the_references() -> None:
    material = material_of([["a red dog", "a red cat"], ["a man", "a red man"]])
    with pytest.raises(TellapartError, match="needs references"):
        of(material, df="references")
    same = replace(material, references=material.candidates)
    assert of(same, df="references")["SelfCIDEr"].corpus == of(material)["SelfCIDEr"].corpus
    other = replace(material, references=(("a red dog",), ("nothing alike",)))
    found = of(other, df="references")["SelfCIDEr"]
    assert found.corpus != of(material)["SelfCIDEr"].corpus
    assert "|df:references(2)|" in found.signature


def test_candidates_must_be_several_and_as_many() -> None:
    with pytest.raises(TellapartError, match="several candidates"):
        of(material_of([["a dog"], ["a cat"]]))
    with pytest.raises(TellapartError, match="image '1' has 1 candidates and image '0' 2"):
        of(material_of([["a dog", "a cat"], ["a cat"]]))
