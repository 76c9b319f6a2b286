"""`tellapart compare`: two files of captions, or two printed results, told apart or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

IDS = [f"i{number}" for number in range(12)]
NOUNS = ["dog", "cat", "bus", "bird", "boat", "tree"]


def captions(path: Path, captions: Sequence[str], ids: Sequence[str] = IDS) -> Path:
    rows = [{"image_id": image_id, "caption": text} for image_id, text in zip(ids, captions, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def references(tmp_path: Path) -> Path:
    rows = [
        {
            "image_id": image_id,
            "captions": [f"a {NOUNS[number % 6]} on the grass", f"one {NOUNS[number % 6]}"],
        }
        for number, image_id in enumerate(IDS)
    ]
    path = tmp_path / "references.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def poor(tmp_path: Path) -> Path:
    return captions(tmp_path / "poor.jsonl", ["a thing on the table"] * 12)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return captions(tmp_path / "good.jsonl", [f"a {NOUNS[number % 6]} on the grass" for number in range(12)])


def compared(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def refused(outcome: Outcome, said: str) -> None:
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = [line for line in outcome.err.splitlines() if line.startswith(("error: ", "  hint: "))]
    assert said in problem
    assert hint.startswith("  hint: ")
    assert "Traceback" not in outcome.err


def test_a_better_system_is_better(tellapart: Tellapart, poor: Path, good: Path, references: Path) -> None:
    command = ("-r", references, "--metrics", "bleu,rouge,cider", "--draws", "500", "--json")
    found = compared(tellapart("compare", poor, good, *command))
    back = compared(tellapart("compare", good, poor, *command))
    assert (found["images"], found["draws"]) == (12, 500)
    for name, each in found["differences"].items():
        low, high = each["interval"]
        assert 0 < low <= each["difference"] <= high
        assert each["p"] < 0.01
        assert each["difference"] == each["b"] - each["a"]
        assert back["differences"][name]["interval"] == pytest.approx([-high, -low], abs=1e-12)
        assert back["differences"][name]["p"] == each["p"]


def test_a_file_does_not_differ_from_itself_in_another_order(
    tellapart: Tellapart, tmp_path: Path, good: Path, references: Path
) -> None:
    rows = good.read_text().splitlines()
    (tmp_path / "shuffled.jsonl").write_text("\n".join(rows[::-1]))
    command = ("-r", references, "--metrics", "bleu,rouge,cider,diversity", "--draws", "100", "--json")
    found = compared(tellapart("compare", good, tmp_path / "shuffled.jsonl", *command))
    for name, each in found["differences"].items():
        assert each["difference"] == pytest.approx(0, abs=1e-12)
        if each["interval"] is not None:
            assert each["interval"] == pytest.approx([0, 0], abs=1e-12), name
            assert each["p"] == 1


def test_a_table_for_people(tellapart: Tellapart, poor: Path, good: Path, references: Path) -> None:
    outcome = tellapart(
        "compare", poor, good, "-r", references, "--metrics", "cider,diversity", "--draws", "100"
    )
    assert outcome.code == 0
    header, *rows = outcome.out.splitlines()
    assert header.split() == ["measure", "A", "B", "B", "-", "A", "95", "%", "interval", "p"]
    assert [row.split()[0] for row in rows[:2]] == ["CIDEr-D", "CIDEr"]
    assert rows[0].split()[3].startswith("+")
    vocabulary = next(row.split() for row in rows if row.startswith("Vocabulary"))
    assert vocabulary == ["Vocabulary", "5", "10", "+5"]
    assert rows[-1] == "12 images, 100 draws; interval and p are those of B - A"
    assert all(len(row) <= 80 for row in rows)
    assert "Traceback" not in outcome.err


def test_other_images_are_refused(tellapart: Tellapart, tmp_path: Path, good: Path, references: Path) -> None:
    fewer = captions(tmp_path / "fewer.jsonl", ["a dog"] * 11)
    refused(
        tellapart("compare", good, fewer, "-r", references, "--metrics", "bleu"),
        "the two do not caption the same images: 'i11' is in A only",
    )


def test_unlike_numbers_of_candidates_are_refused(
    tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    def several(count: int) -> Path:
        path = tmp_path / f"{count}.jsonl"
        rows = [{"image_id": image_id, "candidates": NOUNS[:count]} for image_id in IDS]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    command = ("-r", references, "--draws", "100", "--metrics")
    refused(tellapart("compare", several(3), several(5), *command, "oracle"), " was measured of A only")
    refused(
        tellapart("compare", several(3), several(5), *command, "sets"), " of the two cannot be compared: "
    )
    assert tellapart("compare", several(3), several(3), *command, "oracle").code == 0


def printed(tellapart: Tellapart, path: Path, *arguments: str | Path) -> Path:
    outcome = tellapart("score", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    path.write_text(outcome.out)
    return path


def test_printed_results(
    tellapart: Tellapart, tmp_path: Path, poor: Path, good: Path, references: Path
) -> None:
    command = ("-r", references, "--metrics", "bleu,cider")
    a = printed(tellapart, tmp_path / "a.json", poor, *command)
    b = printed(tellapart, tmp_path / "b.json", good, *command)
    outcome = tellapart("compare", a, b, "--json")
    found = compared(outcome)
    assert found["differences"]["BLEU-4"]["difference"] > 0
    assert found["differences"]["BLEU-4"]["interval"] is None
    assert outcome.err.startswith("note: printed results have no values of single images")
    assert tellapart("compare", a, b).out.splitlines()[1].startswith("BLEU-1")

    other = printed(tellapart, tmp_path / "c.json", good, *command, "--df", good)
    refused(tellapart("compare", a, other), "CIDEr-D of the two cannot be compared: tokenizer:ptb|")
    fewer = printed(tellapart, tmp_path / "d.json", good, "-r", references, "--metrics", "bleu")
    refused(tellapart("compare", a, fewer), "CIDEr-D was measured of A only")
    refused(tellapart("compare", a, good, *command), "one of the two is what 'score --json' printed")


def test_notes_of_both_are_said_once(
    tellapart: Tellapart, tmp_path: Path, good: Path, references: Path
) -> None:
    empty = captions(tmp_path / "empty.jsonl", [""] * 12)
    command = ("-r", references, "--metrics", "rouge", "--draws", "100")
    for a, b in ((empty, good), (empty, empty)):
        outcome = tellapart("compare", a, b, *command)
        assert outcome.err.count("note: 12 of 12 images have a candidate without a word") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl", "good.jsonl"], "nowhere.jsonl does not exist"),
        (["good.jsonl", "good.jsonl", "--metrics", "bleu"], "BLEU needs references"),
        (["good.jsonl", "good.jsonl", "--metrics", "blue"], "no metric is called 'blue'"),
        (["good.jsonl", "good.jsonl", "--df", "nowhere"], "--df nowhere: there is no such file"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    arguments: list[str], said: str, tellapart: Tellapart, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good.parent)
    refused(tellapart("compare", *arguments), said)


def test_too_few_draws_are_wrong_usage(tellapart: Tellapart, good: Path, references: Path) -> None:
    assert tellapart("compare", good, good, "-r", references, "--draws", "5").code == 2
