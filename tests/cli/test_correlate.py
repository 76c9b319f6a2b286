"""`tellapart correlate`: tau of measures with people, in a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from scipy.stats import kendalltau
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.retrievers.loading import load_retriever

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "captions.txt"
    rows = ["x.jpg,a dog runs", "x.jpg,a brown dog", "x.jpg,dog on grass"]
    rows += ["y.jpg,a cat sleeps", "y.jpg,two cats", "y.jpg,a cat on grass"]
    path.write_text("\n".join(["image,caption", *rows]) + "\n")
    return path


@pytest.fixture
def experts(tmp_path: Path) -> Path:
    path = tmp_path / "experts.txt"
    rows = [
        "x.jpg\ty.jpg#2\t3\t3\t2",
        "x.jpg\ty.jpg#1\t1\t1\t1",
        "y.jpg\tx.jpg#2\t2\t3\t2",
        "y.jpg\ty.jpg#0\t4\t4\t4",
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_json(tellapart: Tellapart, experts: Path, references: Path) -> None:
    outcome = tellapart("correlate", experts, "-r", references, "--metrics", "rouge,cider", "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert (found["variant"], found["pairs"], found["ratings"], found["left_out"]) == ("c", 3, 9, 1)
    assert list(found["tau"]) == ["ROUGE-L", "CIDEr-D", "CIDEr"]
    assert found["tau"]["ROUGE-L"]["tau"] > 0
    assert found["tau"]["ROUGE-L"]["interval"] is None
    assert "note: 1 judged captions were references of their image: left out" in outcome.err


def test_a_table_for_people(tellapart: Tellapart, experts: Path, references: Path) -> None:
    command = ("correlate", experts, "-r", references, "--metrics", "rouge")
    outcome = tellapart(*command, "--tau", "b")
    header, row, last = outcome.out.splitlines()
    assert header.split() == ["measure", "tau-b", "x", "100"]
    assert row.split()[0] == "ROUGE-L"
    assert last == "3 pairs, 9 ratings"
    assert "95 % interval" in tellapart(*command, "--draws", "3").out


def test_the_crowd_is_treated_as_the_literature_does(
    tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    path = tmp_path / "crowd.txt"
    path.write_text(
        "x.jpg\tx.jpg#2\t1\t3\t0\nx.jpg\ty.jpg#2\t0\t0\t3\ny.jpg\ty.jpg#2\t0.666666666667\t2\t1\n"
    )
    command = ("correlate", path, "-r", references, "--metrics", "bleu", "--json")
    found = json.loads(tellapart(*command).out)
    assert (found["variant"], found["pairs"], found["ratings"], found["left_out"]) == ("b", 3, 3, 0)
    assert "references:2" in found["tau"]["BLEU-1"]["signature"]
    kept = json.loads(tellapart(*command, "--without", "0").out)
    assert (kept["pairs"], kept["left_out"]) == (1, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x.jpg\ty.jpg#7\t1", "experts.txt:5: caption 7 of image 'y' is not among the references"),
        ("x.jpg\ty.jpg#1\tnan", "experts.txt:5: a rating is missing or no number"),
        ("w.jpg\ty.jpg#1\t1", "experts.txt:5: image 'w' is not in "),
    ],
)
def test_bad_judgements_are_an_error_with_file_and_line(
    line: str, said: str, tellapart: Tellapart, experts: Path, references: Path
) -> None:
    experts.write_text(experts.read_text() + line)
    outcome = tellapart("correlate", experts, "-r", references, "--metrics", "bleu")
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert said in problem
    assert hint.startswith("  hint: ")


def test_what_is_not_there_or_not_said(tellapart: Tellapart, experts: Path, references: Path) -> None:
    gone = tellapart("correlate", experts.with_name("nowhere"), "-r", references, "--metrics", "bleu")
    assert (gone.code, "nowhere does not exist" in gone.err) == (1, True)
    assert tellapart("correlate", experts, "--metrics", "bleu").code == 2  # no references
    assert "no metric is called" in tellapart("correlate", experts, "-r", references, "--metrics", "x").err


def test_a_retriever_among_the_measures(
    tellapart: Tellapart, experts: Path, references: Path, tmp_path: Path
) -> None:
    judge = write_tiny_dual(tmp_path / "tiny", ["a dog on grass", "a cat runs"] * 3)
    for name, colour in (("x.jpg", "red"), ("y.jpg", "blue")):
        Image.new("RGB", (64, 64), colour).save(tmp_path / name)
    command = ("correlate", experts, "-r", references, "--metrics", "rouge", "--by", judge)
    outcome = tellapart(*command, "--images", tmp_path, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert list(found["tau"]) == ["ROUGE-L", str(judge)]
    assert found["tau"][str(judge)]["signature"].startswith("retriever:dual@")

    retriever = load_retriever(judge)
    places = retriever.embed_images([tmp_path / "x.jpg", tmp_path / "y.jpg"])
    cosines = retriever.embed_texts(["a cat on grass", "two cats", "dog on grass"]) @ places.T
    values = np.repeat([cosines[0, 0], cosines[1, 0], cosines[2, 1]], 3)
    expected = kendalltau(values, [3, 3, 2, 1, 1, 1, 2, 3, 2], variant="c").statistic
    assert found["tau"][str(judge)]["tau"] == pytest.approx(expected)

    without = tellapart(*command)
    assert (without.code, without.err.splitlines()[0]) == (1, "error: --by needs the pictures")
    (tmp_path / "y.jpg").unlink()
    missing = tellapart(*command, "--images", tmp_path)
    assert missing.code == 1
    assert "there is no picture of image 'y'" in missing.err
