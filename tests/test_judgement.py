"""Measures against people: published agreement is found again, and tau is what its definition says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest

from tellapart.errors import TellapartError
from tellapart.judgement import Panel, correlate, read_panel, usual_tau
from tellapart.metrics.score import Floats
from tellapart.scoring import choose, score


def brute_force(x: Floats, y: Floats, variant: str) -> float:
    """Kendall's tau by looking at every pair (Kendall 1945; Stuart 1953)."""
    agree = ties_x = ties_y = 0
    for i, j in combinations(range(len(x)), 2):
        product = np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
        agree += int(product)
        ties_x += int(x[i] == x[j])
        ties_y += int(y[i] == y[j])
    pairs = len(x) * (len(x) - 1) / 2
    if variant == "b":
        return agree / math.sqrt((pairs - ties_x) * (pairs - ties_y))
    classes = min(len(set(x.tolist())), len(set(y.tolist())))
    return 2 * agree / (len(x) ** 2 * (classes - 1) / classes)


def agreement(panel: Panel, metrics: str, tau: str) -> dict[str, float]:
    found, _ = correlate(panel, choose(metrics), tau="b" if tau == "b" else "c")
    return {each.name: 100 * each.tau for each in found}


def test_experts_of_flickr8k(real_data: Path) -> None:
    judgements = real_data / "flickr8k" / "ExpertAnnotations.txt"
    assert usual_tau(judgements) == ("c", None)
    panel = read_panel(judgements, real_data / "flickr8k" / "captions.txt")
    assert (len(panel.judgements), panel.ratings, panel.own) == (5664, 3 * 5664, 158)
    found = agreement(panel, "bleu,cider", "c")
    assert found["BLEU-4"] == pytest.approx(30.8, abs=0.5)  # Hessel et al. 2021, Table 1
    assert found["CIDEr-D"] == pytest.approx(43.9, abs=0.5)


def test_the_crowd_of_flickr8k(real_data: Path) -> None:
    judgements = real_data / "flickr8k" / "CrowdFlowerAnnotations.txt"
    assert usual_tau(judgements) == ("b", 2)
    panel = read_panel(judgements, real_data / "flickr8k" / "captions.txt", without=2)
    assert (len(panel.judgements), panel.ratings, panel.own) == (47_830, 47_830, 0)
    assert {len(texts) for texts in panel.references} == {4}
    found = agreement(panel, "bleu,cider", "b")
    assert found["BLEU-4"] == pytest.approx(16.9, abs=0.5)  # Hessel et al. 2021, Table 2
    assert found["CIDEr-D"] == pytest.approx(24.6, abs=0.5)


@pytest.mark.parametrize(("name", "tau", "without"), [("Expert", "c", None), ("CrowdFlower", "b", 2)])
def test_tau_by_its_definition(
    real_data: Path, tmp_path: Path, name: str, tau: str, without: int | None
) -> None:
    with (real_data / "flickr8k" / f"{name}Annotations.txt").open(encoding="utf-8") as file:
        lines = list(islice(file, 60))
    (tmp_path / "some.txt").write_text("".join(lines), encoding="utf-8")
    panel = read_panel(tmp_path / "some.txt", real_data / "flickr8k" / "captions.txt", without=without)
    result = score([j.caption for j in panel.judgements], list(panel.references), metrics=["bleu", "cider"])
    ratings = [rating for j in panel.judgements for rating in j.ratings]
    row = [number for number, j in enumerate(panel.judgements) for _ in j.ratings]
    found = agreement(panel, "bleu,cider", tau)
    for measure in ("BLEU-1", "CIDEr-D"):
        each = result[measure].each
        assert each is not None
        assert found[measure] == pytest.approx(100 * brute_force(each[row], np.array(ratings), tau), abs=1e-9)


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.csv"
    rows = ["x.jpg,a dog runs", "x.jpg,a brown dog", "x.jpg,dog on grass"]
    rows += ["y.jpg,a cat sleeps", "y.jpg,two cats", "y.jpg,a cat on a bed"]
    path.write_text("\n".join(["image,caption", *rows, "z.jpg,alone"]) + "\n")
    return path


def test_a_caption_that_is_a_reference_is_left_out(tmp_path: Path, captions: Path) -> None:
    path = tmp_path / "judged.txt"
    path.write_text("x.jpg\tx.jpg#2\t4\t4\t4\nx.jpg\ty.jpg#0\t1\t1\t2\ny.jpg\tx.jpg#1\t1\t2\t1\n")
    panel = read_panel(path, captions)
    assert panel.own == 1
    assert [(j.image_id, j.caption, j.ratings) for j in panel.judgements] == [
        ("x", "a cat sleeps", (1, 1, 2)),
        ("y", "a brown dog", (1, 2, 1)),
    ]
    assert panel.references[0] == ("a dog runs", "a brown dog", "dog on grass")
    without = read_panel(path, captions, without=2)
    assert (without.own, len(without.judgements)) == (0, 3)
    assert without.references[0] == ("a dog runs", "a brown dog")


def test_judgements_of_ones_own(tmp_path: Path, captions: Path) -> None:
    path = tmp_path / "judged.jsonl"
    rows: list[dict[str, object]] = [
        {"image_id": "x", "caption": "a dog", "rating": 4},
        {"image_id": "x", "caption": "a cat", "ratings": [1, 2.5]},
        {"image_id": "y", "caption": "two cats", "rating": 5},
        {"image_id": "y", "caption": "a bed", "rating": 2},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    panel = read_panel(path, captions)
    assert (len(panel.judgements), panel.ratings, panel.own) == (3, 4, 1)
    assert usual_tau(path) == ("c", None)


def test_shares_are_told_from_ratings_by_the_whole_file(tmp_path: Path, captions: Path) -> None:
    path = tmp_path / "judged.txt"
    crowd = "x.jpg\ty.jpg#2\t0\t0\t3\ny.jpg\tx.jpg#2\t0.333333333333\t1\t2\n"
    path.write_text(crowd)
    assert usual_tau(path) == ("b", 2)
    assert [j.ratings for j in read_panel(path, captions, without=2).judgements] == [(0,), (0.333333333333,)]
    path.write_text(crowd + "y.jpg\tx.jpg#1\t3\t3\t2\n")  # a scale from 0: the first line was three ratings
    assert usual_tau(path) == ("c", None)
    assert [len(j.ratings) for j in read_panel(path, captions).judgements] == [3, 3, 3]


BAD: Mapping[str, tuple[str, str]] = {
    "no tabs": ("x.jpg y.jpg#0 1", "this is no judgement of a caption"),
    "no number": ("x.jpg\ty.jpg\t1", "this is no judgement of a caption"),
    "negative number": ("x.jpg\ty.jpg#-1\t1", "this is no judgement of a caption"),
    "no rating": ("x.jpg\ty.jpg#0", "a rating is missing or no number"),
    "rating NaN": ("x.jpg\ty.jpg#0\t1\tnan\t2", "a rating is missing or no number"),
    "rating in words": ("x.jpg\ty.jpg#0\tgood", "a rating is missing or no number"),
    "unknown caption": ("x.jpg\ty.jpg#3\t1", "caption 3 of image 'y' is not among the references"),
    "unknown writer": ("x.jpg\tw.jpg#0\t1", "caption 0 of image 'w' is not among the references"),
    "unknown image": ("w.jpg\tx.jpg#0\t1", "image 'w' is not in "),
    "not JSON": ('{"image_id": "x", ', "the line is not JSON"),
    "doubled key": ('{"image_id": "x", "image_id": "y"}', "the line is not JSON: the key 'image_id'"),
    "no image": ('{"caption": "a", "rating": 1}', "this is no judgement of a caption"),
    "caption null": ('{"image_id": "x", "caption": null, "rating": 1}', "this is no judgement of a caption"),
    "JSON NaN": ('{"image_id": "x", "caption": "a", "rating": NaN}', "a rating is missing or no number"),
    "true": ('{"image_id": "x", "caption": "a", "ratings": [1, true]}', "a rating is missing or no number"),
    "nothing": ('{"image_id": "x", "caption": "a", "ratings": []}', "a rating is missing or no number"),
    "null": ('{"image_id": "x", "caption": "a"}', "a rating is missing or no number"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_judgement_is_named(kind: str, tmp_path: Path, captions: Path) -> None:
    line, said = BAD[kind]
    path = tmp_path / "judged.txt"
    path.write_text(f"x.jpg\ty.jpg#1\t1\n\n{line}\n")
    with pytest.raises(TellapartError) as caught:
        read_panel(path, captions)
    assert caught.value.problem.startswith(f"{path}:3: {said}")
    assert caught.value.hint


def test_nothing_left_to_judge_by_is_an_error(tmp_path: Path, captions: Path) -> None:
    path = tmp_path / "judged.txt"
    path.write_text("z.jpg\ty.jpg#1\t1\n")
    with pytest.raises(TellapartError, match="image 'z' has no reference left"):
        read_panel(path, captions, without=0)
    path.write_text("\n")
    with pytest.raises(TellapartError, match="there is no judgement in it"):
        read_panel(path, captions)
    path.write_bytes(b"x.jpg\ty.jpg#1\t1\n\xff\n")
    with pytest.raises(TellapartError, match=r"judged\.txt:2: the line is not UTF-8"):
        read_panel(path, captions)


def test_ratings_that_are_all_the_same_have_no_tau_and_a_remark(tmp_path: Path, captions: Path) -> None:
    path = tmp_path / "judged.txt"
    path.write_text("x.jpg\ty.jpg#1\t3\ny.jpg\tx.jpg#1\t3\nx.jpg\ty.jpg#2\t3\n")
    found, remarks = correlate(read_panel(path, captions), choose("rouge,diversity"), tau="b")
    assert found[0].name == "ROUGE-L"
    assert math.isnan(found[0].tau)
    assert found[0].to_json()["tau"] is None
    assert "ROUGE-L has no tau: its values or the ratings are all the same" in remarks
    assert "Vocabulary was left out: it has no value of every single caption" in remarks


def test_an_interval_comes_from_draws_of_images(real_data: Path, tmp_path: Path) -> None:
    with (real_data / "flickr8k" / "ExpertAnnotations.txt").open(encoding="utf-8") as file:
        (tmp_path / "some.txt").write_text("".join(islice(file, 300)), encoding="utf-8")
    panel = read_panel(tmp_path / "some.txt", real_data / "flickr8k" / "captions.txt")
    (one, *_), _ = correlate(panel, choose("cider"), tau="c", draws=40)
    (again, *_), _ = correlate(panel, choose("cider"), tau="c", draws=40)
    (other, *_), _ = correlate(panel, choose("cider"), tau="c", draws=41)
    assert one == again
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.tau < one.high
    assert (one.low, one.high) != (other.low, other.high)
    assert one.signature.endswith("|tau:c")
