"""`tellapart caption` and files: beside pictures, inside them, COCO results, a journal; whatever happens."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from tests.cli.apart import COUNT, Caption, draw_photos, records, refusal, remarks, write_retriever
from tests.collection.gallery import draw, lines
from tests.outputs.faults import LIMIT, names_in, read_only

from tellapart.outputs.metadata import read_description

if TYPE_CHECKING:
    from tests.conftest import Outcome


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_retriever(tmp_path_factory.mktemp("retrievers") / "tiny")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos")


@pytest.fixture
def caption(tellapart: Caption, tiny_captioner: Path, retriever: Path) -> Caption:
    """Run the verb with the tiny captioner and the tiny retriever, and no great effort."""

    def run(*arguments: str | Path) -> Outcome:
        flags = ("--captioner", tiny_captioner, "--retriever", retriever, "--effort", "0")
        return tellapart("caption", *flags, *arguments)

    return run


def said(outcome: Outcome) -> dict[str, str]:
    """Captions on the screen, by the names of their pictures."""
    assert outcome.code == 0, outcome.err
    pairs = (line.split(": ", 1) for line in outcome.out.splitlines())
    return {Path(image).stem: text for image, text in pairs}


def sidecars(photos: Path) -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(photos.rglob("*.txt"))}


WITH_OLD = {
    "skip": "what was there",
    "overwrite": "trg, {}\n",
    "append": "trg, what was there, {}\n",
    "prepend": "trg, {}, what was there\n",
}


@pytest.mark.parametrize("mode", WITH_OLD)
@pytest.mark.parametrize("journal", [True, False])
def test_files_beside_pictures(
    mode: str, journal: bool, caption: Caption, photos: Path, tmp_path: Path
) -> None:
    plain = said(caption(photos))
    (photos / "03.txt").write_text("what was there")
    out = ["--out", tmp_path / "captions.jsonl"] if journal else []

    first = caption(photos, "--sidecar", mode, "--trigger", "trg", *out)

    shown = said(first)
    assert shown == {name: f"trg, {text}" for name, text in plain.items() if mode != "skip" or name != "03"}
    expected = {name: f"trg, {text}\n" for name, text in plain.items()}
    expected["03"] = WITH_OLD[mode].format(plain["03"])
    assert sidecars(photos) == expected
    stamps = {path: path.stat().st_mtime_ns for path in photos.iterdir()}
    again = said(caption(photos, "--sidecar", mode, "--trigger", "trg", *out))
    assert again == ({} if mode == "skip" and not journal else shown)
    assert {path: path.stat().st_mtime_ns for path in photos.iterdir()} == stamps
    if journal:
        noted = {line["image_id"]: line["caption"] for line in lines(tmp_path / "captions.jsonl")}
        assert noted == {name: plain[name] for name in shown}, "the trigger is no part of a caption"


@pytest.mark.parametrize("mode", ["skip", "overwrite", "append", "prepend"])
def test_a_caption_that_is_replaced_is_replaced_beside_its_picture_too(
    mode: str, caption: Caption, photos: Path, tmp_path: Path
) -> None:
    flags = ["--sidecar", mode, "--out", tmp_path / "captions.jsonl"]
    if mode in ("append", "prepend"):
        (photos / "03.txt").write_text("mine\n")
    said(caption(photos, *flags))
    draw(photos / "03.png", 33)

    now = said(caption(photos, *flags))

    texts = sidecars(photos)
    other = {"append": f"mine, {now['03']}\n", "prepend": f"{now['03']}, mine\n"}.get(mode, f"{now['03']}\n")
    assert texts == {name: f"{text}\n" for name, text in now.items()} | {"03": other}


def test_pictures_that_have_a_file_are_still_told_from(
    caption: Caption, photos: Path, tmp_path: Path
) -> None:
    def rivals(*flags: str) -> dict[str, list[str]]:
        out = tmp_path / f"captions{len(flags)}.jsonl"
        caption(photos, "--out", out, *flags)
        return {line["image_id"]: [one["image_id"] for one in line["neighbours"]] for line in lines(out)}

    whole = rivals()
    for number in range(5):
        (photos / f"{number:02}.txt").write_text("done by hand")
    rest = rivals("--sidecar", "skip")
    assert rest == {name: some for name, some in whole.items() if name >= "05"}
    assert any(name < "05" for some in rest.values() for name in some)


def test_a_folder_that_may_not_be_written_to_costs_no_caption(
    caption: Caption, photos: Path, tmp_path: Path
) -> None:
    whole = said(caption(photos))
    out = tmp_path / "captions.jsonl"
    with read_only(photos):
        outcome = caption(photos, "--sidecar", "overwrite", "--out", out, "--describe")
    assert outcome.code == 1
    assert len(outcome.out.splitlines()) == COUNT
    assert {line["image_id"]: line["caption"] for line in lines(out)} == whole
    assert outcome.err.count(".txt cannot be written") == COUNT
    assert outcome.err.count(".png cannot be written") == COUNT
    assert "Traceback" not in outcome.err
    assert sidecars(photos) == {}

    assert caption(photos, "--sidecar", "overwrite", "--out", out).code == 0
    assert sidecars(photos) == {name: f"{text}\n" for name, text in whole.items()}


def test_two_pictures_that_would_share_a_file_are_named_and_the_rest_is_written(
    caption: Caption, photos: Path
) -> None:
    shutil.copy(photos / "05.png", photos / "00.bmp")
    outcome = caption(photos, "--sidecar", "overwrite")
    assert outcome.code == 1
    assert outcome.err.count("would share 00.txt") == 2
    assert set(sidecars(photos)) == {f"{number:02}" for number in range(1, COUNT)}


def test_coco_results(caption: Caption, photos: Path, tmp_path: Path) -> None:
    (photos / "03.png").rename(photos / "COCO_val2014_000000391895.png")
    coco = tmp_path / "new" / "results.json"
    outcome = caption(photos, "--coco", coco, "--trigger", "trg")
    rows = json.loads(coco.read_text(encoding="utf-8"))
    assert [row["caption"] for row in rows] == list(said(outcome).values())
    assert 391895 in [row["image_id"] for row in rows]
    assert f"COCO results: {coco}" in remarks(outcome)


def test_coco_results_never_take_the_place_of_a_picture(caption: Caption, photos: Path) -> None:
    before = (photos / "00.png").read_bytes()
    assert "--coco" in refusal(caption(photos, "--coco", photos / "00.png"))
    assert (photos / "00.png").read_bytes() == before


def test_coco_results_that_cannot_be_written_keep_no_description_from_the_pictures(
    caption: Caption, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "results.json").mkdir()
    outcome = caption(photos, "--coco", tmp_path / "results.json", "--describe")
    assert outcome.code == 1
    assert "results.json is not a file" in outcome.err
    assert all(read_description(path) for path in photos.glob("*.png"))


def test_captions_in_the_pictures_own_files(caption: Caption, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "captions.jsonl"
    pixels = {path: np.asarray(Image.open(path)).tobytes() for path in photos.iterdir()}
    first = caption(photos, "--describe", "--out", out, "--trigger", "trg")
    shown = said(first)

    assert {path.stem: read_description(path) for path in sorted(photos.iterdir())} == shown
    assert {path: np.asarray(Image.open(path)).tobytes() for path in photos.iterdir()} == pixels
    stamps = {path: (path.stat().st_ino, path.read_bytes()) for path in photos.iterdir()}
    journal = out.read_bytes()
    again = caption(photos, "--describe", "--out", out, "--trigger", "trg")
    assert again.out == first.out
    assert f"note: {COUNT} of {COUNT} captions were kept: nothing has changed around them" in remarks(again)
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in photos.iterdir()} == stamps
    assert out.read_bytes() == journal


def test_by_default_nothing_is_written_at_all(caption: Caption, photos: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in photos.iterdir()}
    said(caption(photos))
    assert {path: path.read_bytes() for path in photos.iterdir()} == before
    assert names_in(tmp_path) == ["photos"]


@pytest.mark.parametrize("name", ["photos/00.png", "photos", "notes.jsonl"])
def test_a_journal_takes_the_place_of_nothing(
    name: str, caption: Caption, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.jsonl").write_text('{"image": "a", "caption": "mine"}\n')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    outcome = caption(photos, "--out", tmp_path / name)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.count("error: ") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def command(photos: Path, out: Path, tiny_captioner: Path, retriever: Path) -> list[str]:
    flags = ["--captioner", tiny_captioner, "--retriever", retriever, "--out", out, "--effort", "0"]
    return ["caption", *map(str, [photos, *flags, "--sidecar", "append", "--no-cache"])]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def whole_lines(journal: Path) -> dict[str, dict[str, object]]:
    """The lines of a journal that may end within one, by the pictures' names; none has two."""
    data = journal.read_bytes() if journal.exists() else b""
    found = [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
    assert len({line["image_id"] for line in found}) == len(found), "a picture was captioned twice"
    return {line["image_id"]: line for line in found}


def test_killed_at_any_moment_it_goes_on_and_loses_nothing(
    caption: Caption, tiny_captioner: Path, retriever: Path, tmp_path: Path
) -> None:
    chance = random.Random(3)
    photos, out = draw_photos(tmp_path / "photos", 200), tmp_path / "captions.jsonl"
    (photos / "07.txt").write_text("mine")
    arguments = command(photos, out, tiny_captioner, retriever)
    notes = tmp_path / ".captions.jsonl.candidates"
    whole = {record["image_id"]: record["caption"] for record in records(caption(photos, "--json"))}
    kept: dict[str, dict[str, object]] = {}
    # Once while it looks, then twice while it captions.
    for watched, most in ((notes, 150_000), (out, 150_000), (out, 150_000)):
        moment = size(watched) + chance.randint(1, most)
        process = subprocess.Popen(
            [sys.executable, "-m", "tellapart", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while process.poll() is None and size(watched) < moment:
            time.sleep(0.001)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was not killed in time"
        done = whole_lines(out)
        assert {name: done[name] for name in kept} == kept, "a line that was written is lost"
        kept = done
    assert 0 < len(kept) < len(whole)

    outcome = caption(*arguments[1:])

    assert outcome.code == 0, outcome.err
    now = whole_lines(out)
    assert list(now) == list(whole)
    assert {name: line["caption"] for name, line in now.items()} == whole
    assert {name: now[name] for name in kept} == kept
    expected = {name: f"{text}\n" for name, text in whole.items()} | {"07": f"mine, {whole['07']}\n"}
    assert sidecars(photos) == expected
    assert not notes.exists()


def test_a_disk_that_fills_up_is_said_in_a_line_and_the_run_goes_on_later(
    caption: Caption, photos: Path, tiny_captioner: Path, retriever: Path, tmp_path: Path
) -> None:
    whole = said(caption(photos))
    out = tmp_path / "captions.jsonl"
    arguments = command(photos, out, tiny_captioner, retriever)
    script = LIMIT + "limit(14_000)\nfrom tellapart.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "captions.jsonl cannot be written: File too large" in done.stderr
    assert "free some disk space" in done.stderr
    assert "Traceback" not in done.stderr
    written = [line["image_id"] for line in lines(out)]
    assert 0 < len(written) < COUNT
    assert len(done.stdout.splitlines()) == len(written) == len(sidecars(photos))

    outcome = caption(*arguments[1:])

    assert said(outcome) == whole
    assert f"note: {len(written)} of {COUNT} captions were kept: nothing has changed around them" in remarks(
        outcome
    )
