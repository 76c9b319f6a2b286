"""`tellapart score`: every format in, one document out; bad input is an error or a note, never a number."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import tellapart as library

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

CANDIDATES = {"1": "a dog runs on grass", "2": "two cats sleep, side by side", "3": 'a "red" bus'}
REFERENCES = {
    "1": ["a dog is running on the grass", "a dog runs"],
    "2": ["two cats sleep on a bed", "cats"],
    "3": ["a bus", "the red bus waits"],
}
NGRAMS = ("--metrics", "bleu,rouge,cider")


def lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture
def references(tmp_path: Path) -> Path:
    rows = [{"image_id": image_id, "captions": texts} for image_id, texts in REFERENCES.items()]
    return write(tmp_path / "references.jsonl", lines(*rows))


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    rows = [{"image_id": image_id, "caption": text} for image_id, text in CANDIDATES.items()]
    return write(tmp_path / "candidates.jsonl", lines(*rows))


def scored(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def refused(outcome: Outcome, *said: str) -> None:
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert problem.startswith("error: ")
    assert hint.startswith("  hint: ")
    for each in said:
        assert each in problem
    assert "Traceback" not in outcome.err


def as_coco_results(tmp_path: Path) -> Path:
    rows = [{"image_id": int(key), "caption": text} for key, text in CANDIDATES.items()]
    return write(tmp_path / "results.json", json.dumps(rows))


def as_gzip(tmp_path: Path) -> Path:
    return write(tmp_path / "results.json.gz", gzip.compress(as_coco_results(tmp_path).read_bytes()))


def as_gzip_without_the_ending(tmp_path: Path) -> Path:
    return write(tmp_path / "results", gzip.compress(as_coco_results(tmp_path).read_bytes()))


def as_candidates(tmp_path: Path) -> Path:
    rows = [{"image_id": key, "candidates": [text, "x"]} for key, text in CANDIDATES.items()]
    return write(tmp_path / "several.jsonl", "\ufeff" + lines(*rows).replace("\n", "\r\n\r\n"))


def as_table(tmp_path: Path) -> Path:
    rows = ['"{}","{}"'.format(key, text.replace('"', '""')) for key, text in CANDIDATES.items()]
    return write(tmp_path / "table.csv", "\n".join(["image_id,caption", *rows]))


def as_folder(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    for key, text in CANDIDATES.items():
        write(tmp_path / "texts" / f"{key}.txt", text)
    return tmp_path / "texts"


def in_another_order(tmp_path: Path) -> Path:
    rows = [{"image_id": key, "caption": CANDIDATES[key]} for key in ("3", "1", "2")]
    return write(tmp_path / "shuffled.jsonl", lines(*rows))


@pytest.mark.parametrize(
    "form",
    [
        as_coco_results,
        as_gzip,
        as_gzip_without_the_ending,
        as_candidates,
        as_table,
        as_folder,
        in_another_order,
    ],
)
def test_every_format_of_candidates(
    form: Callable[[Path], Path], tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    each = tmp_path / "each.jsonl"
    outcome = tellapart(
        "score", form(tmp_path), "--references", references, *NGRAMS, "--json", "--each", each
    )
    assert outcome.err == ""
    expected = library.score(CANDIDATES, REFERENCES, metrics=["bleu", "rouge", "cider"])
    found = scored(outcome)
    assert found["images"] == 3
    assert found["signatures"] == expected.signatures
    assert found["scores"] == pytest.approx(expected.scores, abs=1e-12)
    rows = {row["image_id"]: row for row in map(json.loads, each.read_text().splitlines())}
    for row in expected.rows():
        assert rows[row["image_id"]] == pytest.approx(row, abs=1e-12)
    assert len(rows) == 3


def test_every_format_of_references(tellapart: Tellapart, tmp_path: Path, candidates: Path) -> None:
    coco = {
        "images": [{"id": int(key), "file_name": f"{key}.jpg"} for key in REFERENCES],
        "annotations": [
            {"image_id": int(key), "id": 1, "caption": text}
            for key, texts in REFERENCES.items()
            for text in texts
        ],
    }
    karpathy = {
        "images": [
            {"filename": f"{key}.jpg", "split": "test", "sentences": [{"raw": text} for text in texts]}
            for key, texts in reversed(REFERENCES.items())
        ]
    }
    expected = library.score(CANDIDATES, REFERENCES, metrics=["bleu", "rouge", "cider"]).scores
    for content in (coco, karpathy):
        path = write(tmp_path / "references.json", json.dumps(content))
        found = scored(tellapart("score", candidates, "-r", path, *NGRAMS, "--json"))
        assert found["scores"] == pytest.approx(expected, abs=1e-12)


def test_json_is_at_full_precision(tellapart: Tellapart, references: Path, candidates: Path) -> None:
    found = scored(tellapart("score", candidates, "-r", references, *NGRAMS, "--json"))
    assert list(found) == ["scores", "signatures", "images", "references"]
    assert list(found["scores"]) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "CIDEr"]
    result = library.score(CANDIDATES, REFERENCES, metrics=["bleu", "rouge", "cider"])
    assert {name: repr(value) for name, value in found["scores"].items()} == {
        name: repr(value) for name, value in result.scores.items()
    }


def test_a_table_for_people(tellapart: Tellapart, references: Path, candidates: Path) -> None:
    outcome = tellapart("score", candidates, "-r", references, *NGRAMS)
    assert (outcome.code, outcome.err) == (0, "")
    rows = outcome.out.splitlines()
    assert rows[0].split() == ["measure", "value", "signature"]
    value = library.score(CANDIDATES, REFERENCES, metrics=["bleu"])["BLEU-1"].corpus
    assert rows[1].split()[:2] == ["BLEU-1", f"{value:.4f}"]
    assert rows[2].split()[2] == '"'
    assert rows[-1] == "3 images"
    assert all(len(row) <= 80 for row in rows)
    for detail in ("tokenizer:ptb", "df:references(3)", "sigma:6"):
        assert detail in outcome.out.split()


def test_a_table_where_the_screen_knows_no_signs(references: Path, candidates: Path) -> None:
    arguments = ["compare", candidates, candidates, "-r", references, "--metrics", "bleu", "--draws", "100"]
    done = subprocess.run(
        [sys.executable, "-m", "tellapart", *map(str, arguments)],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert b"BLEU-4" in done.stdout


def test_training_captions_are_read(
    tellapart: Tellapart, tmp_path: Path, references: Path, candidates: Path
) -> None:
    train = write(tmp_path / "train.jsonl", lines({"image_id": 9, "captions": ["A dog runs on grass.", "b"]}))
    command = ("score", candidates, "-r", references, "--train", train, "--json")
    found = scored(tellapart(*command, "--metrics", "diversity"))
    assert found["scores"]["Novel"] == pytest.approx(2 / 3)
    found = scored(tellapart(*command, "--metrics", "cider", "--df", "train"))
    assert "df:train(1," in found["signatures"]["CIDEr-D"]
    from_file = scored(
        tellapart("score", candidates, "-r", references, "--metrics", "cider", "--df", train, "--json")
    )
    assert from_file["scores"] == found["scores"]


def test_retrieval_from_a_matrix(tellapart: Tellapart, tmp_path: Path, candidates: Path) -> None:
    np.save(tmp_path / "scores.npy", np.eye(3))
    command = (
        "score",
        candidates,
        "--metrics",
        "retrieval",
        "--similarity",
        tmp_path / "scores.npy",
        "--json",
    )
    found = scored(tellapart(*command))
    assert (found["scores"]["R@1"], found["scores"]["Mean-rank"]) == (1, 1)
    assert scored(tellapart(*command, "--ranks-from", "0"))["scores"]["Mean-rank"] == 0
    np.save(tmp_path / "scores.npy", np.array([[1, 0, 0], [0, np.nan, 0], [0, 0, 1]]))
    refused(tellapart(*command), f"{tmp_path / 'scores.npy'}: row 1 (image '2'), column 1 is nan")
    np.save(tmp_path / "scores.npy", np.eye(2))
    refused(tellapart(*command), "the matrix has 2 rows, and there are 3 candidates")
    write(tmp_path / "scores.npy", "1 2 3")
    refused(tellapart(*command), "scores.npy: this is no matrix")


def test_pictures_have_to_be_there(tellapart: Tellapart, tmp_path: Path, candidates: Path) -> None:
    (tmp_path / "images").mkdir()
    Image.new("RGB", (2, 2)).save(tmp_path / "images" / "1.jpg")
    refused(
        tellapart("score", candidates, "--images", tmp_path / "images", "--metrics", "diversity"),
        f"{candidates}:2: there is no picture of image '2' in {tmp_path / 'images'}",
    )
    refused(
        tellapart("score", candidates, "--images", candidates, "--metrics", "diversity"), "is not a folder"
    )


ROW = {"image_id": "1", "caption": "a dog"}
BAD: Mapping[str, tuple[str | bytes, str]] = {
    "missing id": (lines(ROW, {"caption": "a cat"}), ":2: there is no image id"),
    "doubled id": (lines(ROW, ROW), ":2: image '1' stands there twice, first at {path}:1"),
    "doubled id of two types": (lines(ROW, {**ROW, "image_id": 1}), ":2: image '1' stands there twice"),
    "doubled key": ('{"image_id": "1", "caption": "a", "caption": "b"}', ":1: the line is not JSON: the key"),
    "unknown image": (lines(ROW, {**ROW, "image_id": "x"}), ":2: image 'x' is not in "),
    "NaN": ('{"image_id": "1", "caption": NaN}', ":1: a caption of image '1' is nan, which is no text"),
    "null": ('{"image_id": "1", "caption": null}', ":1: image '1' has no caption"),
    "no candidates": ('{"image_id": "1", "candidates": []}', ":1: image '1' has no caption"),
    "not JSON": (lines(ROW) + "{", ":2: the line is not JSON"),
    "not UTF-8": (
        lines(ROW).encode() + b'{"image_id": "2", "caption": "caf\xe9"}',
        ":2: the line is not UTF-8",
    ),
    "cut gzip": (gzip.compress(lines(ROW).encode() * 99)[:-9], " is a damaged gzip file"),
    "empty": ("", ": there is no caption in it"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_candidates_are_an_error_with_file_and_line(
    kind: str, tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    content, said = BAD[kind]
    path = write(tmp_path / "bad.jsonl", content)
    refused(tellapart("score", path, "-r", references, *NGRAMS), str(path) + said.format(path=path))


BAD_REFERENCES: Mapping[str, tuple[str, str]] = {
    "none of an image": (
        lines(
            *({"image_id": key, "captions": texts if key != "2" else []} for key, texts in REFERENCES.items())
        ),
        ":2: image '2' has no references",
    ),
    "doubled id": (lines(ROW, ROW), ":2: image '1' stands there twice"),
    "NaN": ('{"image_id": "1", "captions": ["a", NaN]}', ":1: a caption of image '1' is nan"),
    "listed without annotation": (
        '{"images": [{"id": 1},\n{"id": 2}, {"id": 3}], "annotations": [{"image_id": 1, "caption": "a"}]}',
        ":2 images[1]: image '2' has no references",
    ),
}


@pytest.mark.parametrize("kind", BAD_REFERENCES)
def test_bad_references_are_an_error_with_file_and_line(
    kind: str, tellapart: Tellapart, tmp_path: Path, candidates: Path
) -> None:
    content, said = BAD_REFERENCES[kind]
    path = write(tmp_path / "bad.json", content)
    refused(tellapart("score", candidates, "-r", path, *NGRAMS), str(path) + said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["candidates.jsonl", "-r", "nowhere.json"], "nowhere.json does not exist"),
        (["candidates.jsonl", "-r", "folder"], "folder: there is no caption in it"),
        (["candidates.jsonl", "--train", "nowhere.json"], "nowhere.json does not exist"),
        (["candidates.jsonl", "--metrics", "bleu"], "BLEU needs references"),
        (["candidates.jsonl", "--metrics", "cidre"], "no metric is called 'cidre'"),
        (["candidates.jsonl", "--metrics", ""], "no measure is named"),
        (["candidates.jsonl", "--df", "nowhere"], "--df nowhere: there is no such file"),
        (["candidates.jsonl", "--df", "train"], "--df train needs the training captions"),
        (["candidates.jsonl", "--sizes", "1,x"], "--sizes '1,x' are no numbers"),
        (["candidates.jsonl", "--spice-jars", "nowhere"], "--spice-jars nowhere is not a folder"),
        (["candidates.jsonl", "--each", "folder"], "--each folder is a folder"),
        (["candidates.jsonl", "--similarity", "folder"], "folder: this is no matrix"),
        (["candidates.jsonl", "--similarity", "nowhere.npy"], "nowhere.npy does not exist"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str],
    said: str,
    tellapart: Tellapart,
    tmp_path: Path,
    candidates: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    refused(tellapart("score", *arguments), said)


def test_empty_and_strange_captions_have_values_and_notes(
    tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    texts = {"1": "", "2": "\U0001f600", "3": "a \u202ered\u202c \x07bus\u2028 \r and " + "word " * 5000}
    path = write(
        tmp_path / "odd.jsonl", lines(*({"image_id": key, "caption": text} for key, text in texts.items()))
    )
    each = tmp_path / "each.jsonl"
    outcome = tellapart("score", path, "-r", references, *NGRAMS, "--json", "--each", each)
    found = scored(outcome)
    assert all(isinstance(value, float) for value in found["scores"].values())
    note = "2 of 3 images have a candidate without a word (first: '1'); it counts as an empty text"
    assert found["notes"] == [note]
    assert outcome.err == f"note: {note}\n"
    rows = [json.loads(line) for line in each.read_text().splitlines()]
    assert [row["ROUGE-L"] for row in rows[:2]] == [0, 0]
    assert rows[2]["BLEU-1"] > 0


def test_an_empty_reference_is_kept(tellapart: Tellapart, tmp_path: Path) -> None:
    # pycocoevalcap gives an empty caption with an empty reference a ROUGE-L of 1.
    path = write(tmp_path / "c.jsonl", lines({"image_id": 1, "caption": ""}, {"image_id": 2, "caption": "a"}))
    content = {"annotations": [{"image_id": i, "caption": text} for i, text in ((1, "x"), (1, ""), (2, "a"))]}
    references = write(tmp_path / "r.json", json.dumps(content))
    outcome = tellapart("score", path, "-r", references, "--metrics", "rouge", "--json")
    assert scored(outcome)["scores"]["ROUGE-L"] == 1
    assert "note: 1 of 2 images have a reference without a word (first: '1')" in outcome.err


def test_left_over_references_and_measures_are_remarked_on_once(
    tellapart: Tellapart, tmp_path: Path, references: Path
) -> None:
    path = write(tmp_path / "one.jsonl", lines(ROW))
    outcome = tellapart("score", path, "-r", references, *NGRAMS)
    notes = outcome.err.splitlines()
    assert notes[0] == "note: no candidate for 2 of the 3 images in references.jsonl (first: '2'): left out"
    assert len(notes) == len(set(notes))
    assert sum("CIDEr" in note for note in notes) == 1  # why it is 0 on one image

    outcome = tellapart("score", path, "--json")
    found = scored(outcome)
    assert "BLEU needs references" in found["skipped"]["bleu"]
    assert outcome.err.count("note: bleu was left out: BLEU needs references") == 1


def test_the_values_of_each_image_replace_a_file_but_no_link(
    tellapart: Tellapart, tmp_path: Path, references: Path, candidates: Path
) -> None:
    each = write(tmp_path / "each.jsonl", "what stood there before")
    link = tmp_path / "link"
    link.symlink_to(each)
    for target in (each, link):
        assert tellapart("score", candidates, "-r", references, *NGRAMS, "--each", target).code == 0
        assert len(each.read_text().splitlines()) == 3
    assert link.is_symlink()
    names = ["candidates.jsonl", "each.jsonl", "link", "references.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_values_of_each_image_may_go_into_a_pipe(
    tellapart: Tellapart, tmp_path: Path, references: Path, candidates: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_text)
        assert tellapart("score", candidates, "-r", references, *NGRAMS, "--each", pipe).code == 0
        assert len(reading.result(timeout=60).splitlines()) == 3
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk here is always full")
def test_a_full_disk_costs_the_file_and_not_the_result(
    tellapart: Tellapart, tmp_path: Path, references: Path, candidates: Path
) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # the device itself stays out of reach, should it ever be replaced
    outcome = tellapart("score", candidates, "-r", references, *NGRAMS, "--json", "--each", full)
    assert outcome.code == 1
    assert json.loads(outcome.out)["images"] == 3
    problem, hint = outcome.err.splitlines()
    assert "No space left on device" in problem
    assert hint.startswith("  hint: ")


def test_a_target_that_cannot_be_written_is_named(
    tellapart: Tellapart, references: Path, candidates: Path
) -> None:
    outcome = tellapart("score", candidates, "-r", references, *NGRAMS, "--each", candidates / "each.jsonl")
    assert outcome.code == 1
    assert str(candidates) in outcome.err
    assert "hint: " in outcome.err
    assert "Traceback" not in outcome.err
