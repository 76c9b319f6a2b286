"""Every kind of bad picture is refused with one clear line; pictures in folders are found in order."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from tellapart.data.images import MAX_PIXELS, decode, read_picture
from tellapart.data.picture_files import find_pictures, read_bytes
from tellapart.errors import TellapartError

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "AVIF", "JPEG2000")


@cache
def encoded(kind: str) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, kind)
    return buffer.getvalue()


def refusal(data: bytes) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        decode(data, name="dog.jpg")
    assert caught.value.problem.startswith("dog.jpg ")
    assert "\n" not in caught.value.problem + caught.value.hint
    assert caught.value.hint
    return caught.value


def test_what_is_said_of_empty_foreign_and_damaged_files() -> None:
    assert refusal(b"").problem == "dog.jpg is empty"
    assert "is not a picture" in refusal(b"%PDF-1.7 hello").problem
    assert "is not a picture" in refusal(b"\0\0\0\x18ftypheic").problem
    assert "is not a picture" in refusal(b"words about BM and GIF89a").problem
    assert "is damaged or cut short" in refusal(encoded("JPEG")[:300]).problem


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.5, 0.9, 0.98])
def test_a_truncated_picture_is_refused(kind: str, fraction: float) -> None:
    data = encoded(kind)
    refusal(data[: int(len(data) * fraction)])


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=0, max_value=40))
def test_never_half_a_picture_near_the_end(kind: str, cut: int) -> None:
    data = encoded(kind)
    try:
        shown = decode(data[: len(data) - cut], name="x")
    except TellapartError:
        return
    assert np.array_equal(np.asarray(shown), np.asarray(decode(data, name="x")))


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(FORMATS), start=st.integers(0, 60), data=st.binary(max_size=300))
def test_random_bytes_raise_nothing_else(kind: str, start: int, data: bytes) -> None:
    for junk in (data, encoded(kind)[:start] + data):
        try:
            assert decode(junk, name="x").mode == "RGB"
        except TellapartError as error:
            assert error.problem.startswith("x ")  # noqa: PT017 - either outcome is right


@settings(max_examples=150, deadline=None)
@given(flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 255)), min_size=1, max_size=4))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_flipped_bytes_raise_nothing_else(kind: str, flips: list[tuple[float, int]]) -> None:
    data = bytearray(encoded(kind))
    for place, change in flips:
        data[int(place * len(data))] ^= change
    try:
        assert decode(bytes(data), name="x").mode == "RGB"
    except TellapartError as error:
        assert error.problem.startswith("x ")  # noqa: PT017 - either outcome is right


def png_that_claims(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0)
    rest = encoded("PNG")[33:]
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">L", 13) + header + struct.pack(">L", zlib.crc32(header)) + rest
    )


@pytest.mark.parametrize("width", [50_000, MAX_PIXELS // 10_000 + 1])
def test_a_bomb_is_refused_before_it_is_decoded(width: int) -> None:
    problem = refusal(png_that_claims(width, 50_000 if width == 50_000 else 10_000)).problem
    assert f"{MAX_PIXELS:,} pixels" in problem
    assert f"{width} x" in problem


def test_a_bomb_that_pillow_itself_refuses_reads_the_same() -> None:
    data = bytearray(encoded("WEBP"))
    data[26:30] = struct.pack("<HH", 16383, 16383)  # width and height of a lossy WebP
    assert "more than" in refusal(bytes(data)).problem


def test_a_picture_below_the_limit_gets_as_far_as_its_pixels() -> None:
    assert "damaged or cut short" in refusal(png_that_claims(MAX_PIXELS // 10_000, 10_000)).problem


def test_large_pictures_and_broken_exif_do_not_warn_in_any_of_four_threads() -> None:
    buffer = io.BytesIO()
    Image.new("L", (9_500, 9_500), 70).save(buffer, "JPEG", exif=b"Exif\0\0junk")
    before = warnings.filters[:]

    def shade(_: int) -> list[int]:
        picture = decode(buffer.getvalue(), name="x", at_least=224)
        values: list[int] = np.asarray(picture)[5, 5].tolist()
        return values

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(shade, range(8))) == [[70] * 3] * 8
    assert warnings.filters == before
    assert not ImageFile.LOAD_TRUNCATED_IMAGES
    assert Image.MAX_IMAGE_PIXELS == MAX_PIXELS // 2


def test_threads_agree_with_one_another_on_every_format() -> None:
    alone = {kind: decode(encoded(kind), name=kind).tobytes() for kind in FORMATS}
    with ThreadPoolExecutor(4) as threads:
        shown = threads.map(lambda kind: (kind, decode(encoded(kind), name=kind).tobytes()), FORMATS * 20)
        assert all(alone[kind] == data for kind, data in shown)


def test_a_file_is_read_and_its_name_leads_its_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded("PNG"))
    assert read_bytes(tmp_path / "a.png") == encoded("PNG")
    assert read_picture(tmp_path / "a.png").size == (40, 30)
    (tmp_path / "b.png").write_bytes(encoded("PNG")[:500])
    with pytest.raises(TellapartError, match=r"b\.png is damaged"):
        read_picture(tmp_path / "b.png")


def test_reading_a_large_jpeg_may_be_reduced(tmp_path: Path) -> None:
    Image.new("RGB", (800, 400)).save(tmp_path / "a.jpg")
    assert read_picture(tmp_path / "a.jpg", at_least=100).size == (200, 100)


def test_what_is_said_of_paths_that_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "link.jpg").symlink_to(tmp_path / "gone.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    said = {}
    for path in [
        tmp_path,
        *(tmp_path / name for name in ("no.jpg", "link.jpg", "pipe.jpg", "n" * 300, "a\0b")),
    ]:
        with pytest.raises(TellapartError) as caught:
            read_bytes(path)
        assert caught.value.problem.startswith(str(path))
        said[path.name] = caught.value.problem.removeprefix(str(path))
    assert said[tmp_path.name] == " is a folder, not a picture"
    assert said["no.jpg"] == " does not exist"
    assert said["link.jpg"] == " is a link to a file that does not exist"
    assert said["pipe.jpg"] == " is not a file"
    assert "cannot be read" in said["n" * 300]
    assert "cannot be read" in said["a\0b"]


LOCKED_OUT = """
import os
from pathlib import Path
from tellapart.data.images import read_picture
from tellapart.data.picture_files import find_pictures
from tellapart.errors import TellapartError
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
try:
    read_picture(Path("locked.png"))
except TellapartError as error:
    print(error.problem)
for found in find_pictures([Path("."), Path("locked")]):
    print(found.problem if isinstance(found, TellapartError) else found)
"""


def test_permission_denied_is_said_and_the_search_goes_on(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir()
    for name in ("locked.png", "locked/in.png", "open.png"):
        (tmp_path / name).write_bytes(encoded("PNG"))
    locked = [tmp_path / "locked.png", tmp_path / "locked"]
    for path in locked:
        path.chmod(0)
    tmp_path.chmod(0o755)
    run = subprocess.run([sys.executable, "-c", LOCKED_OUT], cwd=tmp_path, capture_output=True, text=True)
    for path in locked:
        path.chmod(0o700)
    denied = "may not be read: permission denied"
    expected = [f"locked.png {denied}", f"locked {denied}", "locked.png", "open.png", f"locked {denied}"]
    assert (run.stdout.splitlines(), run.stderr) == (expected, "")


def plant(folder: Path, names: str) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


def found_in(folder: Path, *paths: Path) -> list[str]:
    return [
        f"! {found.problem.removeprefix(str(folder))}"
        if isinstance(found, TellapartError)
        else str(found.relative_to(folder))
        for found in find_pictures(paths)
    ]


def test_folders_are_searched_in_order_and_files_are_taken_as_named(tmp_path: Path) -> None:
    plant(
        tmp_path, "b/z.JPG b/a.png b/c/x.webp b.jpeg a.txt notes .hidden.png .git/y.png a/k.tiff a/readme.md"
    )
    shown = ["a/k.tiff", "b/a.png", "b/c/x.webp", "b/z.JPG", "b.jpeg"]
    assert found_in(tmp_path, tmp_path) == shown
    assert found_in(tmp_path, tmp_path / "notes", tmp_path / "b", tmp_path / ".git") == [
        "notes", "b/a.png", "b/c/x.webp", "b/z.JPG", ".git/y.png",
    ]  # fmt: skip


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path: Path) -> None:
    plant(tmp_path, "in/a.png out/b.png out/c.png")
    (tmp_path / "in" / "b.png").symlink_to(tmp_path / "out" / "b.png")
    (tmp_path / "in" / "broken.png").symlink_to(tmp_path / "gone.png")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "folder.png").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "self.png").symlink_to(tmp_path / "in" / "self.png")
    (tmp_path / "named").symlink_to(tmp_path / "out")
    assert found_in(tmp_path, tmp_path / "in") == ["in/a.png", "in/b.png", "in/broken.png", "in/self.png"]
    assert found_in(tmp_path, tmp_path / "named") == ["named/b.png", "named/c.png"]


def test_what_is_missing_or_empty_is_said_in_its_place(tmp_path: Path) -> None:
    plant(tmp_path, "a.png full/b.png empty/notes.txt empty/deeper/notes.txt")
    paths = [tmp_path / name for name in ("no.png", "empty", "a.png", "full")]
    assert found_in(tmp_path, *paths) == [
        "! /no.png does not exist", "! /empty has no pictures in it", "a.png", "full/b.png",
    ]  # fmt: skip


def test_pictures_are_found_while_one_reads_them(tmp_path: Path) -> None:
    plant(tmp_path, "a/1.png b/2.png")
    found = find_pictures([tmp_path])
    assert next(found) == tmp_path / "a" / "1.png"
    plant(tmp_path, "b/3.png")
    assert list(found) == [tmp_path / "b" / "2.png", tmp_path / "b" / "3.png"]
