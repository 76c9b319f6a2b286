"""Descriptions in pictures' files: Pillow reads them back, and nothing else in the file is another."""

from __future__ import annotations

import os
import random
import stat
import struct
import time
import zlib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from tests.outputs.faults import LIMIT, killed, names_in, outcome, program, read_only, small_disk
from tests.outputs.pictures import WRITERS, XMP, beside, drawn, exif_description, frames, packet_of

from tellapart.errors import TellapartError
from tellapart.outputs.metadata import digest_without_description, read_description, write_description
from tellapart.outputs.xmp import DC, RDF

CAPTION = "a <brown> dog & a ž 猫"
ADDED = (b"http://ns.adobe.com/xap/1.0/\0", b"Exif\0\0")


@pytest.fixture(params=WRITERS)
def picture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    WRITERS[str(request.param)](path)
    return path


def described(data: bytes) -> str | None:
    """What another parser finds in the packet that Pillow finds."""
    root = ET.fromstring(packet_of(data).decode())
    return root.findtext(f".//{{{DC}}}description/{{{RDF}}}Alt/{{{RDF}}}li")


def check(path: Path) -> None:
    """Describe a picture twice; nothing else may change."""
    before = path.read_bytes()
    digest = digest_without_description(before)
    for caption in (CAPTION, "a much longer caption " * 20, "short"):
        assert write_description(path, caption)
        after = path.read_bytes()
        assert described(after) == read_description(path) == " ".join(caption.split())
        if after.startswith(b"\xff\xd8"):
            assert exif_description(after) == " ".join(caption.split())
        assert frames(after) == frames(before)
        assert beside(after) == beside(before)
        assert digest_without_description(after) == digest
        assert not write_description(path, caption)


def test_a_description_comes_back_and_the_picture_stays(picture: Path) -> None:
    check(picture)
    if "dressed" in picture.name or "packed" in picture.name:
        assert b'xmp:Rating="4"' in packet_of(picture.read_bytes())
    assert names_in(picture.parent) == [picture.name]


def test_real_photographs(tmp_path: Path) -> None:
    folders = [pytest.importorskip(name).__file__ for name in ("skimage.data", "sklearn.datasets")]
    found = [
        path
        for folder in folders
        for path in sorted(Path(folder).parent.rglob("*"))
        if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp") and path.stat().st_size < 500_000
    ]
    assert len(found) >= 3
    for number, path in enumerate(found[:8]):
        copy = tmp_path / f"{number}{path.suffix}"
        copy.write_bytes(path.read_bytes())
        check(copy)


def test_the_photographs_of_flickr8k(real_data: Path, tmp_path: Path) -> None:
    found = sorted((real_data / "flickr8k").rglob("*.jpg"))[:10]
    assert found
    for path in found:
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        check(copy)


@pytest.mark.parametrize("name", ["plain.jpg", "plain.png", "animated.png"])
def test_without_what_was_put_in_the_file_is_as_before(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    before = path.read_bytes()
    write_description(path, CAPTION)
    after = path.read_bytes()
    added = len(after) - len(before)
    at = next(place for place in range(len(before)) if before[place] != after[place])
    assert any(after[:start] + after[start + added :] == before for start in range(at - 12, at + 1))


def segments(data: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    at = 2
    while not found or found[-1][0] != 0xDA:
        (length,) = struct.unpack_from(">H", data, at + 2)
        found.append((data[at + 1], data[at + 4 : at + 2 + length]))
        at += 2 + length
    return [*found, (0, data[at:])]


@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith(("jpg", "mpo"))])
def test_segments_of_a_jpeg_stay_in_place_and_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    before = segments(path.read_bytes())
    write_description(path, CAPTION)
    after = segments(path.read_bytes())
    kept = [part for part in before if not part[1].startswith((*ADDED, b"MPF\0"))]
    assert [part for part in after if not part[1].startswith((*ADDED, b"MPF\0"))] == kept
    markers = [marker for marker, _ in after]
    packet, block = (
        next(number for number, part in enumerate(after) if part[1].startswith(start)) for start in ADDED
    )
    assert markers[:block] == [0xE0] * block
    assert packet > block
    assert 0xE2 not in markers[:packet]


@pytest.mark.parametrize("name", ["several.mpo", "several plain.mpo"])
def test_the_list_of_several_pictures_tells_the_length_of_the_first(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[path.name](path)
    for caption in (CAPTION, "short"):
        write_description(path, caption)
        data = path.read_bytes()
        with Image.open(path) as several:
            first, second, _ = several.mpinfo[0xB002]  # type: ignore[attr-defined]
        start = second["DataOffset"] + data.index(b"MPF\0") + len(b"MPF\0")
        assert data[start : start + 2] == b"\xff\xd8"
        assert data[first["Size"] - 2 : first["Size"]] == b"\xff\xd9"
        assert first["Size"] == start


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        assert data[at + 8 + length : at + 12 + length] == struct.pack(">I", zlib.crc32(kind + content))
        found.append((kind, content))
        at += 12 + length
    return found


@pytest.mark.parametrize("name", ["plain.png", "dressed.png", "packed.png", "animated.png"])
def test_chunks_of_a_png_stay_in_place_and_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    before = chunks(path.read_bytes())
    write_description(path, CAPTION)
    after = chunks(path.read_bytes())
    ours = [part for part in after if part[1].startswith(b"XML:com.adobe.xmp\0\0\0\0\0<")]
    assert len(ours) == 1
    theirs = [part for part in before if not part[1].startswith(b"XML:com.adobe.xmp")]
    assert [part for part in after if part != ours[0]] == theirs


def pieces(data: bytes) -> list[tuple[bytes, bytes]]:
    assert struct.unpack_from("<I", data, 4)[0] == len(data) - 8
    found, at = [], 12
    while at < len(data):
        kind, length = struct.unpack_from("<4sI", data, at)
        found.append((kind, data[at + 8 : at + 8 + length]))
        at += 8 + length + length % 2
    assert at == len(data)
    return found


@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith("webp")])
def test_chunks_of_a_webp_stay_in_place_and_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    before = pieces(path.read_bytes())
    write_description(path, "odd" if len(XMP) % 2 else "even")
    after = pieces(path.read_bytes())
    assert [part for part in after if part[0] not in (b"VP8X", b"XMP ")] == [
        part for part in before if part[0] not in (b"VP8X", b"XMP ")
    ]
    kind, header = after[0]
    assert kind == b"VP8X"
    assert header[0] & 0x04
    assert bool(header[0] & 0x10) == name.startswith("clear")
    with Image.open(path) as opened:
        size = [int.from_bytes(header[place : place + 3], "little") + 1 for place in (4, 7)]
        assert tuple(size) == opened.size


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF"])
def test_other_formats_are_refused_with_a_hint(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.jpg"  # what a file is called is no matter
    drawn(0).save(path, kind)
    before = path.read_bytes()
    with pytest.raises(TellapartError, match="no description is written") as caught:
        write_description(path, CAPTION)
    assert ".txt" in caught.value.hint
    assert path.read_bytes() == before
    assert digest_without_description(before)


def test_permissions_owner_and_time_of_the_file_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a.jpg", tmp_path / "link.jpg"
    drawn(0).save(path)
    path.chmod(0o640)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    link.symlink_to("a.jpg")
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    assert write_description(link, CAPTION)
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert after.st_mtime_ns == before.st_mtime_ns
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert link.is_symlink()
    assert read_description(link) == CAPTION


def test_write_protected_files_and_folders_and_full_disks_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    path = folder / "a.jpg"
    drawn(0).save(path)
    before = path.read_bytes()
    with read_only(folder), pytest.raises(TellapartError, match="cannot be written"):
        write_description(path, CAPTION)
    path.chmod(0o444)
    with pytest.raises(TellapartError, match="write-protected"):
        write_description(path, CAPTION)
    with small_disk(tmp_path / "disk", kilobytes=16) as disk:
        (disk / "a.jpg").write_bytes(before)
        with (disk / "ballast").open("wb") as ballast, pytest.raises(OSError, match="No space"):
            ballast.write(bytes(1 << 20))
        with pytest.raises(TellapartError, match="No space left"):
            write_description(disk / "a.jpg", "x" * 2000)
        assert (disk / "a.jpg").read_bytes() == before
        assert names_in(disk) == ["a.jpg", "ballast"]
    assert path.read_bytes() == before
    assert names_in(folder) == ["a.jpg"]


DESCRIBE_AGAIN_AND_AGAIN = """
import sys
from itertools import count
from pathlib import Path
from tellapart.outputs.metadata import write_description
print("ready", flush=True)
for number in count(int(sys.argv[2])):
    write_description(Path(sys.argv[1]), f"caption {number}")
"""


def test_a_killed_writer_leaves_a_whole_picture(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = tmp_path / "a.jpg"
    drawn(0, size=(400, 400)).save(path)
    pixels = frames(path.read_bytes())
    for turn in range(6):
        writer = program(DESCRIBE_AGAIN_AND_AGAIN, path, turn * 10_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0.01, 0.1))
        killed(writer)
        assert frames(path.read_bytes()) == pixels
    assert str(read_description(path)).startswith("caption ")


def test_a_disk_that_fills_while_a_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    drawn(0).save(path)
    before = path.read_bytes()
    script = """
import sys
from pathlib import Path
from tellapart.errors import TellapartError
from tellapart.outputs.metadata import write_description
path = Path(sys.argv[1])
limit(path.stat().st_size)
try:
    write_description(path, "a dog")
except TellapartError as error:
    print(error)
"""
    assert "free some disk space" in outcome(program(LIMIT + script, path))
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["a.jpg"]
