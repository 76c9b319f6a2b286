"""Best and average candidate: against published values, against full runs of each measure, and its laws."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.metrics import oracle as module
from tellapart.metrics.bleu import bleu
from tellapart.metrics.cider import cider
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.oracle import build_oracle
from tellapart.metrics.parts import METRICS, CiderConfig, MeteorConfig, OracleConfig
from tellapart.metrics.rouge import rouge
from tellapart.metrics.score import Floats, Score, mean_score
from tellapart.registry import Part

WORDS = ["a", "dog", "cat", "runs", "red", "on"]
text = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
spoken = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)

NAMES = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "CIDEr"]


@st.composite
def materials(draw: st.DrawFn) -> Material:
    """A few images with as many candidates each, and one to three references."""
    width = draw(st.integers(2, 4))
    images = draw(st.integers(1, 4))
    return Material(
        tuple(f"image {number}" for number in range(images)),
        tuple(tuple(draw(st.lists(text, min_size=width, max_size=width))) for _ in range(images)),
        tuple(tuple(draw(st.lists(spoken, min_size=1, max_size=3))) for _ in range(images)),
    )


def of(
    material: Material, *, metrics: tuple[str, ...] = ("bleu", "rouge", "cider"), sizes: tuple[int, ...] = ()
) -> dict[str, Score]:
    return {score.name: score for score in build_oracle(OracleConfig(metrics=metrics, sizes=sizes))(material)}


def each(score: Score) -> Floats:
    assert score.each is not None
    return score.each


def column(material: Material, number: int) -> Material:
    return replace(material, candidates=tuple((texts[number],) for texts in material.candidates))


@pytest.fixture(scope="module")
def truth(real_data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((real_data.parent / "metrics" / "diversity_1000x5.json").read_bytes())
    return found


def thousand(truth: dict[str, Any]) -> Material:
    return Material(
        tuple(map(str, truth["ids"])),
        tuple(tuple(group[:3]) for group in truth["captions"]),
        tuple(tuple(group[3:]) for group in truth["captions"]),
    )


def test_best_of_three_as_published_programs_have_it(truth: dict[str, Any]) -> None:
    expected = truth["oracle_3cands_2refs"]["expected"]
    found = of(thousand(truth))
    keys = {f"BLEU-{order}": f"Bleu_{order}" for order in range(1, 5)} | {
        "ROUGE-L": "ROUGE_L",
        "CIDEr-D": "CIDEr",
    }
    for name, key in keys.items():
        assert found[f"oracle {name}@3"].corpus == pytest.approx(expected[f"oracle_{key}"], abs=1e-9)
        assert found[f"average {name}@3"].corpus == pytest.approx(expected[f"avg_{key}"], abs=1e-9)


def test_best_of_three_by_meteor(truth: dict[str, Any]) -> None:
    expected = truth["oracle_3cands_2refs"]["expected"]
    found = of(thousand(truth), metrics=("meteor",), sizes=(3,))
    assert found["oracle METEOR@3"].corpus == pytest.approx(expected["oracle_METEOR"], abs=1e-6)
    assert found["average METEOR@3"].corpus == pytest.approx(expected["avg_METEOR"], abs=1e-6)


@given(materials())
def test_a_candidate_is_worth_what_a_run_of_its_own_gives(material: Material) -> None:
    found = of(material, sizes=(1, material.width))
    runs = [
        [*bleu(part), *rouge(part), *cider(part, CiderConfig())]
        for part in (column(material, number) for number in range(material.width))
    ]
    assert [score.name for score in runs[0]] == NAMES
    for row, name in enumerate(NAMES):
        values = np.stack([each(run[row]) for run in runs], axis=1)
        size = material.width
        np.testing.assert_allclose(each(found[f"oracle {name}@{size}"]), values.max(axis=1), atol=1e-12)
        np.testing.assert_allclose(each(found[f"average {name}@{size}"]), values.mean(axis=1), atol=1e-12)
        assert found[f"oracle {name}@{size}"].corpus == pytest.approx(values.max(axis=1).mean(), abs=1e-12)
        np.testing.assert_allclose(each(found[f"oracle {name}@1"]), values[:, 0], atol=1e-12)


@settings(max_examples=30)
@given(materials())
def test_all_ways_to_score_candidates_agree(material: Material) -> None:
    at_once = of(material)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", {})
        by_columns = of(material)
        patch.setattr(module, "_ONE_BY_ONE", ("bleu", "rouge"))
        one_by_one = of(material, metrics=("bleu", "rouge"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TEXTS", 3)
        in_blocks = of(material)
    assert list(by_columns) == list(in_blocks) == list(at_once)
    for other in (by_columns, one_by_one, in_blocks):
        for name, score in other.items():
            assert score.signature == at_once[name].signature
            np.testing.assert_allclose(each(score), each(at_once[name]), atol=1e-12)


@given(materials())
def test_more_candidates_are_never_worse(material: Material) -> None:
    sizes = tuple(range(1, material.width + 1))
    found = of(material, sizes=sizes)
    for name in NAMES:
        curve = [each(found[f"oracle {name}@{size}"]) for size in sizes]
        assert all((less <= more).all() for less, more in pairwise(curve))
        for size in sizes:
            best, mean = found[f"oracle {name}@{size}"], found[f"average {name}@{size}"]
            assert (each(mean) <= each(best) + 1e-12).all()


@given(materials())
def test_the_average_of_copies_is_the_single_value(material: Material) -> None:
    copies = replace(material, candidates=tuple((texts[0],) * 3 for texts in material.candidates))
    found = of(copies)
    for name in NAMES:
        np.testing.assert_allclose(each(found[f"average {name}@3"]), each(found[f"oracle {name}@1"]))
        np.testing.assert_allclose(each(found[f"oracle {name}@3"]), each(found[f"oracle {name}@1"]))


def test_sizes() -> None:
    texts = tuple(f"a dog {number}" for number in range(12))
    material = Material(("x", "y"), (texts, texts), (("a dog 7",), ("a cat",)))
    found = of(material, metrics=("rouge",))
    assert [name for name in found if name.startswith("oracle")] == [
        f"oracle ROUGE-L@{size}" for size in (1, 2, 5, 10, 12)
    ]
    assert list(of(material, metrics=("rouge",), sizes=(3, 2, 3))) == [
        "oracle ROUGE-L@2",
        "average ROUGE-L@2",
        "oracle ROUGE-L@3",
        "average ROUGE-L@3",
    ]
    assert each(found["oracle ROUGE-L@10"])[0] == pytest.approx(1)
    assert each(found["oracle ROUGE-L@5"])[0] < 1
    assert found["oracle ROUGE-L@5"].signature == (
        "tokenizer:ptb|references:1|beta:1.2|level:image|candidates:5|choice:best"
    )
    assert found["average ROUGE-L@5"].signature.endswith("|candidates:5|choice:mean")


def test_what_the_measure_notes_is_said_of_the_oracle_too() -> None:
    alone = Material(("x",), (("a dog", "a cat"),), (("a dog",),))
    found = of(alone, metrics=("cider",))
    assert found["oracle CIDEr-D@2"].corpus == 0
    assert "one image alone" in found["oracle CIDEr-D@2"].notes[0]


def test_frequencies_are_those_of_all_images() -> None:
    material = Material(
        ("x", "y", "z"),
        (("a red dog", "a dog"), ("a cat", "one cat"), ("two men", "a man")),
        (("a red dog",), ("a cat sits",), ("two men",)),
    )
    found = of(material, metrics=("cider",))
    assert each(found["oracle CIDEr-D@2"]).tolist() == pytest.approx(
        np.maximum(
            each(cider(column(material, 0), CiderConfig())[0]),
            each(cider(column(material, 1), CiderConfig())[0]),
        ).tolist()
    )
    assert "|df:references(3)|" in found["oracle CIDEr-D@2"].signature


def test_frequencies_of_the_training_captions() -> None:
    material = Material(
        ("x",), (("a red dog", "a dog"),), (("a red dog",),), training=(("a red dog",), ("a cat",), ("one",))
    )
    found = {
        score.name: score
        for score in build_oracle(OracleConfig(metrics=("cider",), settings=(CiderConfig(df="train"),)))(
            material
        )
    }
    expected = cider(column(material, 0), CiderConfig(df="train"))[0]
    assert found["oracle CIDEr-D@2"].corpus == pytest.approx(expected.corpus)
    assert expected.corpus > 0
    assert found["oracle CIDEr-D@2"].signature == f"{expected.signature}|level:image|candidates:2|choice:best"
    assert not found["oracle CIDEr-D@2"].notes


class Odd:
    """A measure with no value for some texts, as SPICE has none where there is no tuple to count."""

    def builder(self) -> Any:
        return self

    def config(self) -> None:
        return None

    def __call__(self, config: None) -> Metric:
        return lambda material: [
            mean_score("Odd", [float(text) for text in material.captions], "odd", notes=("odd indeed",))
        ]


def test_candidates_without_a_value_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS._all, "odd", cast("Part", Odd()))
    material = Material(("x", "y", "z"), (("nan", "2", "4"), ("nan", "nan", "nan"), ("1", "nan", "7")))
    found = of(material, metrics=("odd",), sizes=(1, 2, 3))
    np.testing.assert_equal(each(found["oracle Odd@2"]), [2, np.nan, 1])
    np.testing.assert_equal(each(found["average Odd@3"]), [3, np.nan, 4])
    assert found["oracle Odd@3"].corpus == 5.5
    assert found["average Odd@3"].corpus == 3.5
    assert found["oracle Odd@1"].corpus == 1
    assert found["oracle Odd@1"].notes == (
        "odd indeed",
        "Odd: 2 of 3 images have no candidate with a value; left out",
    )


def test_progress_runs_to_its_end() -> None:
    seen: list[tuple[str, int, int]] = []
    material = Material(("x", "y"), (("a dog", "a cat"),) * 2, (("a dog",), ("a man",)))
    of(replace(material, watch=lambda what, done, total: seen.append((what, done, total))))
    for what in ("oracle BLEU", "oracle ROUGE-L", "oracle CIDEr"):
        assert [step for step in seen if step[0] == what][-1] == (what, 2, 2)


def test_what_cannot_be_asked() -> None:
    one = Material(("x",), (("a dog",),), (("a dog",),))
    with pytest.raises(TellapartError, match="several candidates"):
        of(one)
    pair = Material(("x",), (("a dog", "a cat"),), (("a dog",),))
    with pytest.raises(TellapartError, match=r"among 3 candidates: every image has 2"):
        of(pair, sizes=(1, 3))
    with pytest.raises(TellapartError, match=r"among 0 candidates"):
        of(pair, sizes=(0,))
    with pytest.raises(TellapartError, match=r"cannot choose by 'diversity'"):
        of(pair, metrics=("diversity",))
    with pytest.raises(TellapartError, match=r"cannot choose by 'oracle'"):
        of(pair, metrics=("bleu", "oracle"))
    with pytest.raises(TellapartError, match="no metric is called 'blue'"):
        of(pair, metrics=("blue",))
    with pytest.raises(TellapartError, match="BLEU needs references"):
        of(replace(pair, references=None))
    with pytest.raises(TellapartError, match="image 'y' has 1 candidates"):
        of(Material(("x", "y"), (("a dog", "a cat"), ("a dog",)), (("a dog",), ("a dog",))))


def test_spice_is_refused_where_it_would_take_hours() -> None:
    images = 1000
    many = Material(
        tuple(map(str, range(images))), (("a dog",) * 20,) * images, (("a dog", "a cat"),) * images
    )
    with pytest.raises(TellapartError, match="22,000 texts for 20 candidates of 1,000 images") as refused:
        of(many, metrics=("bleu", "spice"))
    assert "sizes" in refused.value.hint


def test_measures_of_the_oracle_have_their_own_settings(tmp_path: Path) -> None:
    material = Material(("1",), (("a dog", "a cat"),), (("a dog",),))
    settings = (MeteorConfig(resources=str(tmp_path)),)
    with pytest.raises(TellapartError, match=r"no METEOR resources there|not there, or not whole"):
        build_oracle(OracleConfig(metrics=("meteor",), settings=settings))(material)
