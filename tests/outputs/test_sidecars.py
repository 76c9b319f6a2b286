"""Captions in .txt files: what each mode makes of what is there, and that doing it again changes nothing."""

from __future__ import annotations

import os
import random
import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.faults import killed, names_in, outcome, program, read_only, small_disk

from tellapart.data.readers import read_folder
from tellapart.errors import TellapartError
from tellapart.outputs.sidecars import MODES, Mode, Sidecars, sidecar_lines, with_trigger

words = st.text("ab ,", min_size=1, max_size=6).map(lambda text: " ".join(text.split()).strip(" ,"))
phrases = words.filter(bool)
modes = st.sampled_from(MODES)


@pytest.mark.parametrize(
    ("before", "mode", "after"),
    [
        ([], "skip", ["new"]),
        (["old"], "skip", ["old"]),
        (["old"], "overwrite", ["new"]),
        (["old"], "append", ["old, new"]),
        (["old"], "prepend", ["new, old"]),
        (["one", "two"], "append", ["one", "two", "new"]),
        (["one", "two"], "prepend", ["new", "one", "two"]),
        (["old, new"], "append", ["old, new"]),
        (["old, new"], "prepend", ["new, old, new"]),
        (["renew"], "append", ["renew, new"]),
    ],
)
def test_what_each_mode_makes_of_what_is_there(before: list[str], mode: Mode, after: list[str]) -> None:
    assert sidecar_lines(before, "new", mode) == after


@pytest.mark.parametrize(
    ("before", "mode", "after"),
    [
        ([], "overwrite", ["ohwx, new"]),
        (["old"], "skip", ["old"]),
        (["old"], "append", ["ohwx, old, new"]),
        (["old"], "prepend", ["ohwx, new, old"]),
        (["ohwx, old"], "prepend", ["ohwx, new, old"]),
        (["ohwx man"], "append", ["ohwx man, new"]),
        (["ohwx"], "prepend", ["ohwx, new"]),
        (["one", "two"], "append", ["ohwx, one", "ohwx, two", "ohwx, new"]),
    ],
)
def test_the_trigger_stands_before_every_line_that_is_written(
    before: list[str], mode: Mode, after: list[str]
) -> None:
    assert sidecar_lines(before, "new", mode, trigger="ohwx,") == after


@pytest.mark.parametrize(
    ("before", "mode", "after"),
    [
        (["old, was"], "append", ["old, new"]),
        (["was, old"], "prepend", ["new, old"]),
        (["was"], "append", ["new"]),
        (["one", "two", "was"], "append", ["one", "two", "new"]),
        (["was"], "skip", ["new"]),
        (["was, old"], "skip", ["was, old"]),
        (["old, was, more"], "append", ["old, was, more, new"]),
    ],
)
def test_a_caption_takes_the_place_of_the_one_that_it_follows(
    before: list[str], mode: Mode, after: list[str]
) -> None:
    assert sidecar_lines(before, "new", mode, earlier=["earlier still", "was"]) == after


@given(st.lists(phrases, max_size=3), phrases, modes, st.one_of(st.just(""), phrases))
def test_doing_it_again_changes_nothing(lines: list[str], caption: str, mode: Mode, trigger: str) -> None:
    once = sidecar_lines(lines, caption, mode, trigger=trigger)
    assert sidecar_lines(once, caption, mode, trigger=trigger) == once
    assert all(once)


@pytest.mark.parametrize("mode", MODES)
def test_doing_it_again_changes_nothing_where_captions_begin_with_the_trigger(mode: Mode) -> None:
    texts = ("a", "b", "a, a", "a a", "a, b", "b, a", "a, a, a")
    for trigger in ("a", "a, a", "a a"):
        for count in range(3):
            for *lines, caption in product(texts, repeat=count + 1):
                once = sidecar_lines(lines, caption, mode, trigger=trigger)
                assert sidecar_lines(once, caption, mode, trigger=trigger) == once


@given(phrases, phrases)
def test_a_trigger_is_put_before_a_caption_once(caption: str, trigger: str) -> None:
    once = with_trigger(caption, trigger)
    assert once.startswith(trigger)
    assert once.endswith(caption)
    assert with_trigger(once, trigger) == once
    assert with_trigger(caption, "") == caption


@given(st.text("xy ", min_size=1).filter(str.strip), *[st.text("ab", min_size=1)] * 2, st.booleans())
def test_captions_that_follow_one_another_leave_only_the_last(
    old: str, first: str, second: str, last: bool
) -> None:
    mode: Mode = "append" if last else "prepend"
    text = sidecar_lines([old], first, mode)
    assert sidecar_lines(text, second, mode, earlier=[first]) == sidecar_lines([old], second, mode)


def touch(*pictures: Path) -> Path:
    for picture in pictures:
        picture.touch()
    return pictures[0]


@pytest.mark.parametrize(
    "name", ["a b.jpg", "žluť 猫.JPG", "two\nlines.png", "a.tar.jpg", "x" * 250 + ".jpg"]
)
def test_captions_stand_beside_their_pictures_and_are_read_back(tmp_path: Path, name: str) -> None:
    picture = touch(tmp_path / name)
    assert Sidecars("skip").write(picture, "a dog\non  grass")
    assert names_in(tmp_path) == sorted([name, Path(name).stem + ".txt"])
    (example,) = read_folder(tmp_path).examples
    assert example.captions == ("a dog on grass",)


def test_a_name_that_is_no_text_is_no_matter(tmp_path: Path) -> None:
    picture = touch(tmp_path / "caf\udce9.jpg")
    assert Sidecars("skip").write(picture, "coffee")
    assert (tmp_path / "caf\udce9.txt").read_text() == "coffee\n"


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_says_it_already_is_not_written(tmp_path: Path, mode: Mode) -> None:
    picture = touch(tmp_path / "a.jpg")
    sidecars = Sidecars(mode, trigger="ohwx")
    assert sidecars.write(picture, "a dog")
    before = (tmp_path / "a.txt").stat()
    assert not sidecars.write(picture, "a dog")
    assert (tmp_path / "a.txt").stat() == before


@pytest.mark.parametrize(
    "data", [b"", b" \n\r\n", b"\xef\xbb\xbf"], ids=["nothing", "blank", "byte-order mark"]
)
def test_an_empty_file_counts_as_none(tmp_path: Path, data: bytes) -> None:
    picture = touch(tmp_path / "a.jpg")
    (tmp_path / "a.txt").write_bytes(data)
    assert Sidecars("skip").write(picture, "a dog")
    assert (tmp_path / "a.txt").read_text() == "a dog\n"


def test_windows_files_are_taken_as_they_are(tmp_path: Path) -> None:
    picture = touch(tmp_path / "a.jpg")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfred, dog\r\n")
    Sidecars("append").write(picture, "a dog")
    assert (tmp_path / "a.txt").read_bytes() == b"red, dog, a dog\n"


@pytest.mark.parametrize("mode", ["skip", "append", "prepend"])
@pytest.mark.parametrize(
    "data", [text.encode(name) for text, name in (("a", "utf-16"), ("a", "utf-16-le"), ("é", "latin-1"))]
)
def test_other_encodings_are_an_error_and_stay(tmp_path: Path, mode: Mode, data: bytes) -> None:
    picture = touch(tmp_path / "a.jpg")
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(TellapartError, match="not UTF-8 text"):
        Sidecars(mode).write(picture, "a dog")
    assert (tmp_path / "a.txt").read_bytes() == data
    assert Sidecars("overwrite").write(picture, "a dog")


def test_a_folder_or_a_protected_file_in_the_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "b.txt").write_text("old\n")
    (tmp_path / "b.txt").chmod(0o444)
    cases: list[tuple[str, Mode]] = [("a", "skip"), ("a", "overwrite"), ("b", "append"), ("b", "overwrite")]
    for name, mode in cases:
        with pytest.raises(TellapartError, match="stays as it is"):
            Sidecars(mode).write(touch(tmp_path / f"{name}.jpg"), "a dog")
    assert (tmp_path / "b.txt").read_text() == "old\n"
    assert names_in(tmp_path) == ["a.jpg", "a.txt", "b.jpg", "b.txt"]


def test_pictures_that_would_share_a_file_get_none(tmp_path: Path) -> None:
    pictures = [tmp_path / name for name in ("a.jpg", "a.PNG", "b.jpg", "a.data")]
    touch(*pictures)
    (tmp_path / "a.txt").write_text("whose?\n")
    sidecars = Sidecars("overwrite")
    for picture, other in ((pictures[0], "a.PNG"), (pictures[1], "a.jpg"), (pictures[3], "a.PNG and a.jpg")):
        with pytest.raises(TellapartError, match="would share") as caught:
            sidecars.write(picture, "a dog")
        assert all(name in caught.value.problem for name in other.split(" and "))
    assert sidecars.write(pictures[2], "a cat")
    assert (tmp_path / "a.txt").read_text() == "whose?\n"


def test_a_picture_that_is_called_txt_is_not_replaced_by_its_caption(tmp_path: Path) -> None:
    picture = tmp_path / "photo.TXT"
    picture.write_bytes(b"pixels")
    with pytest.raises(TellapartError, match="no name left"):
        Sidecars("overwrite").write(picture, "a dog")
    assert picture.read_bytes() == b"pixels"


def test_a_folder_that_has_gone_is_not_made_again(tmp_path: Path) -> None:
    picture = tmp_path / "gone" / "a.jpg"
    picture.parent.mkdir()
    touch(picture)
    sidecars = Sidecars("skip")
    sidecars.write(picture, "a dog")
    for path in picture.parent.iterdir():
        path.unlink()
    picture.parent.rmdir()
    with pytest.raises(TellapartError, match="is gone"):
        sidecars.write(picture, "a dog")
    assert names_in(tmp_path) == []


def test_read_only_folders_and_full_disks_are_said_in_the_pictures_place(tmp_path: Path) -> None:
    picture = touch(tmp_path / "a.jpg")
    with read_only(tmp_path), pytest.raises(TellapartError, match=r"a\.txt cannot be written"):
        Sidecars("skip").write(picture, "a dog")
    with small_disk(tmp_path / "disk", kilobytes=16) as disk:
        touch(disk / "a.jpg")
        (disk / "a.txt").write_text("old\n")
        with (disk / "ballast").open("wb") as ballast, pytest.raises(OSError, match="No space"):
            ballast.write(bytes(1 << 20))
        with pytest.raises(TellapartError, match="No space left"):
            Sidecars("append").write(disk / "a.jpg", "a dog")
        assert (disk / "a.txt").read_text() == "old\n"
        assert names_in(disk) == ["a.jpg", "a.txt", "ballast"]


APPEND_TO_ALL = """
import sys
from itertools import product
from pathlib import Path
from tellapart.outputs.sidecars import Sidecars
sidecars = Sidecars("append", trigger="ohwx")
print("ready", flush=True)
for picture in sorted(Path(sys.argv[1]).glob("*.jpg")):
    sidecars.write(picture, f"picture {picture.stem}")
"""


def test_captions_are_appended_once_however_often_the_writer_is_killed(tmp_path: Path) -> None:
    chance = random.Random(0)
    for number in range(300):
        touch(tmp_path / f"{number}.jpg")
        (tmp_path / f"{number}.txt").write_text("old")
    for _ in range(8):
        writer = program(APPEND_TO_ALL, tmp_path)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.1))
        killed(writer)
        texts = {path: path.read_text() for path in tmp_path.glob("*.txt")}
        assert set(texts.values()) <= {"old", *(f"ohwx, old, picture {n}\n" for n in range(300))}
    assert any(text != "old" for text in texts.values()), "all were killed before they wrote"
    for left in tmp_path.glob(".*.part"):  # of those killed; the next one sweeps them away, once they are old
        os.utime(left, (0, 0))
    outcome(program(APPEND_TO_ALL, tmp_path))
    for number in range(300):
        assert (tmp_path / f"{number}.txt").read_text() == f"ohwx, old, picture {number}\n"
    assert len(names_in(tmp_path)) == 600
