"""`tellapart caption` gives what was asked for, in order, as it comes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tellapart.captioning import load
from tellapart.corpus import as_vision
from tellapart.decoding.search import greedy
from tellapart.vision.features import stack
from tellapart.vision.looking import Seen, look

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Caption = Callable[..., Outcome]


@pytest.fixture
def caption(tellapart: Caption, tiny_captioner: Path) -> Caption:
    """Run the verb with the tiny captioner."""

    def run(*arguments: str | Path) -> Outcome:
        return tellapart("caption", "--apart", "off", "--captioner", tiny_captioner, *arguments)

    return run


def lines(outcome: Outcome) -> list[str]:
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.removesuffix("\n").split("\n")


def records(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(outcome)]


def some(scenes: Path, count: int = 12) -> list[Path]:
    return sorted((scenes / "images").iterdir())[:count]


def test_files_as_named_and_folders_in_order(caption: Caption, scenes: Path, tmp_path: Path) -> None:
    pictures = ["a/1.png", "a/deep/0.png", "b/2.png", "c.png"]
    for name, source in zip(pictures, some(scenes), strict=False):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / name)
    (tmp_path / "a" / "notes.txt").write_text("no picture")
    shutil.copy(tmp_path / "c.png", tmp_path / ".hidden.png")

    said = lines(caption(tmp_path / "b" / "2.png", tmp_path))

    expected = [tmp_path / name for name in ("b/2.png", *pictures)]
    assert [line.partition(": ")[0] for line in said] == [str(path) for path in expected]
    assert said[0] == said[3]
    assert all(line.partition(": ")[2] for line in said)


def test_json_is_one_prediction_a_line(caption: Caption, scenes: Path, tiny_captioner: Path) -> None:
    paths = some(scenes)
    found = records(caption(*paths, "--json", "--candidates", "3"))
    assert [record["image"] for record in found] == [str(path) for path in paths]
    for path, record in zip(paths, found, strict=True):
        assert list(record) == ["image", "image_id", "caption", "candidates", "model"]
        assert record["image_id"] == path.with_suffix("").as_posix()
        assert record["model"] == str(tiny_captioner)
        captions = [candidate["caption"] for candidate in record["candidates"]]
        scores = [candidate["logprob"] for candidate in record["candidates"]]
        assert record["caption"] == captions[0] != ""
        assert len(set(captions)) == 3
        assert scores == sorted(scores, reverse=True)
        assert scores[0] < 0


def test_plain_lines_say_the_same_as_json(caption: Caption, scenes: Path) -> None:
    paths = some(scenes, 9)
    expected: list[str] = []
    for record in records(caption(*paths, "--json", "--candidates", "2")):
        best, other = (candidate["caption"] for candidate in record["candidates"])
        expected += [f"{record['image']}: {best}", f"    {other}"]
    assert lines(caption(*paths, "--candidates", "2")) == expected


def test_a_beam_of_one_is_greedy(caption: Caption, scenes: Path, tiny_captioner: Path) -> None:
    paths = some(scenes)
    describer = load(tiny_captioner, cached=False)
    seen = look(paths, describer.encoder, parts=["pooled"], cache=None)
    vision = as_vision(stack([result.features for result in seen if isinstance(result, Seen)]))
    decoded = greedy(describer.saved.captioner, vision, max_words=describer.saved.settings.max_words)
    text = describer.saved.captioner.text

    found = records(caption(*paths, "--json", "--beam", "1"))

    assert [record["caption"] for record in found] == [
        text.decode(tokens[0]) for tokens in decoded.tokens.tolist()
    ]
    scores = [record["candidates"][0]["logprob"] for record in found]
    assert scores == pytest.approx(decoded.log_probabilities.flatten().tolist(), abs=1e-4)
    assert found != records(caption(*paths, "--json", "--beam", "3"))


def test_every_caption_begins_with_the_prefix(caption: Caption, scenes: Path) -> None:
    found = records(caption(*some(scenes), "--json", "--prefix", "The RED, circle!", "--candidates", "4"))
    captions = [candidate["caption"] for record in found for candidate in record["candidates"]]
    assert len(captions) == 48
    assert all(caption.split()[:3] == ["the", "red", "circle"] for caption in captions)


def test_a_prefix_that_cannot_be_is_refused_by_name(caption: Caption, scenes: Path) -> None:
    unknown = caption(*some(scenes), "--prefix", "a zebra on the left")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.split("\n")[0] == "error: prefix: the captioner does not know the word 'zebra'"
    long = caption(*some(scenes), "--prefix", "a red circle", "--max-words", "2")
    assert (long.code, long.out) == (1, "")
    assert long.err.split("\n")[0] == "error: the prefix has 3 words, a caption at most 2"
    assert all(outcome.err.split("\n")[1].startswith("  hint: ") for outcome in (unknown, long))


def test_no_caption_is_longer_than_asked(caption: Caption, scenes: Path) -> None:
    def longest(*options: str) -> int:
        return max(len(record["caption"].split()) for record in records(caption(*some(scenes), *options)))

    assert longest("--json") == 8
    assert longest("--json", "--max-words", "2") == 2
    assert longest("--json", "--max-words", "3", "--prefix", "a red circle") == 3


NAMES = ["with space.png", "größe 写真 👩‍🚀.png", "two\nlines\x1b[1m.png", "<b>&.png", "100%[red].png"]


@pytest.mark.parametrize("name", [*NAMES, os.fsdecode(b"not utf-8 \xff.png")])
def test_any_name_will_do(name: str, caption: Caption, scenes: Path, tmp_path: Path) -> None:
    picture = Path(shutil.copy(some(scenes)[0], tmp_path / name))
    (record,) = records(caption(picture, "--json"))
    assert record["image"] == str(picture)
    (line,) = lines(caption(tmp_path))
    assert line.endswith(f": {record['caption']}")
    assert "\x1b" not in line


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_named_on_one_line(name: str, caption: Caption, tmp_path: Path) -> None:
    outcome = caption(tmp_path / name)
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 2
    assert "png does not exist" in outcome.err


def test_names_that_are_no_text_stand_on_the_page_too(caption: Caption, scenes: Path, tmp_path: Path) -> None:
    picture = shutil.copy(some(scenes)[0], tmp_path / os.fsdecode(b"not utf-8 \xff.png"))
    page = tmp_path / "page.html"
    assert caption(picture, "--page", page).code == 0
    assert "not utf-8 \\udcff.png" in page.read_text(encoding="utf-8")


def test_a_page_is_written_beside_the_captions(caption: Caption, scenes: Path, tmp_path: Path) -> None:
    page = tmp_path / "new folder" / "page.html"
    outcome = caption(*some(scenes, 5), "--page", page)
    assert (outcome.code, outcome.err) == (0, f"page: {page}\n")
    assert outcome.out == caption(*some(scenes, 5)).out
    content = page.read_text(encoding="utf-8")
    assert content.count("<img") == 5
    assert all(line.partition(": ")[2] in content for line in outcome.out.splitlines())


def test_a_page_never_takes_the_place_of_a_picture(caption: Caption, scenes: Path, tmp_path: Path) -> None:
    first, second = (Path(shutil.copy(path, tmp_path)) for path in some(scenes, 2))
    before = first.read_bytes()
    outcome = caption("--page", first, second)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: --page {first}: ")
    assert ".html" in outcome.err
    assert first.read_bytes() == before


def test_a_captioner_may_be_named_by_its_run_or_by_a_dot(
    tellapart: Caption, tiny_captioner: Path, scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = some(scenes)[0]
    plain = tellapart("caption", "--apart", "off", picture, "--captioner", tiny_captioner).out
    shutil.copytree(tiny_captioner, tmp_path / "run" / "captioner")
    assert lines(tellapart("caption", "--apart", "off", picture, "--captioner", tmp_path / "run")) == [
        plain.rstrip()
    ]
    monkeypatch.chdir(tiny_captioner)
    assert lines(tellapart("caption", "--apart", "off", picture, "--captioner", ".")) == [plain.rstrip()]


def test_what_was_seen_is_remembered_unless_told_not_to(
    caption: Caption, scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path))
    paths = some(scenes)
    without = caption(*paths, "--json", "--no-cache")
    assert list(tmp_path.iterdir()) == []
    first, second = caption(*paths, "--json"), caption(*paths, "--json")
    assert without == first == second
    assert (tmp_path / "features").is_dir()


def test_no_paths_and_impossible_numbers_are_wrong_usage(caption: Caption, scenes: Path) -> None:
    picture = some(scenes)[0]
    for arguments in ([], [picture, "--beam", "0"], [picture, "--candidates", "none"], [picture, "--jsno"]):
        outcome = caption(*arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert "Traceback" not in outcome.err


def test_ids_are_paths_inside_the_folder_that_is_captioned(
    caption: Caption, scenes: Path, tmp_path: Path
) -> None:
    picture = next((scenes / "images").iterdir())
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(picture, tmp_path / folder / "1.png")
    assert [line["image_id"] for line in records(caption(tmp_path, "--json"))] == ["a/1", "b/1"]
    both = caption(tmp_path / "a" / "1.png", tmp_path / "b" / "1.png", "--json")
    assert len({line["image_id"] for line in records(both)}) == 2
