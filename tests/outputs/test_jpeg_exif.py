"""Descriptions in the Exif of JPEG files: where they go, and where they are left out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.outputs.exif_blocks import camera_block, tags_of
from tests.outputs.pictures import WRITERS, drawn, exif_description, frames

from tellapart.outputs.containers.jpeg import parse_jpeg
from tellapart.outputs.metadata import digest_without_description, read_description, write_description
from tellapart.outputs.xmp import with_description

JFIF = 20  # bytes of the first marker and the segment that Pillow writes after it


def segment(payload: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, 0xE1, len(payload) + 2) + payload


def with_segments(path: Path, *payloads: bytes) -> bytes:
    """A JPEG file with segments behind the first one."""
    drawn(0).save(path, "JPEG")
    data = path.read_bytes()
    data = data[:JFIF] + b"".join(map(segment, payloads)) + data[JFIF:]
    path.write_bytes(data)
    return data


KEPT = {
    "damaged": (b"Exif\0\0" + camera_block(told=None)[:100],),
    "no block": (b"Exif\0\0nothing of the kind",),
    "other name": (b"Exif\0\xff" + camera_block(told=None),),
    "too long": (b"Exif\0\0" + camera_block(told=None, note=bytes(64_600)),),
    "several": (b"Exif\0\0" + camera_block(), b"Exif\0\0" + camera_block(">")),
}


@pytest.mark.parametrize("name", KEPT)
def test_exif_that_cannot_be_changed_stays_where_it_tells_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jpg"
    before = with_segments(path, *KEPT[name])
    exif = b"".join(map(segment, KEPT[name]))
    for caption in ("a dog", "a cat"):
        assert write_description(path, caption)
        data = path.read_bytes()
        assert read_description(path) == caption
        assert data[JFIF : JFIF + len(exif)] == exif
        assert data.count(b"Exif\0") == before.count(b"Exif\0")
        assert digest_without_description(data) == digest_without_description(before)
        assert not write_description(path, caption)


def test_a_long_block_is_described_while_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    block = camera_block(note=bytes(64_000))
    with_segments(path, b"Exif\0\0" + block)
    for caption in ("a dog", "a cat on the grass", "a bird"):
        assert write_description(path, caption)
        assert exif_description(path.read_bytes()) == read_description(path) == caption
        exif = parse_jpeg(path.read_bytes()).exif
        assert exif is not None
        assert tags_of(exif) == tags_of(block)
        assert len(exif) < len(block) + 200


def test_what_was_described_in_xmp_alone_gets_the_same_in_exif(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    packet = with_description(None, "a dog")
    with_segments(path, b"Exif\0\0" + camera_block(), b"http://ns.adobe.com/xap/1.0/\0" + packet)
    assert write_description(path, "a dog")
    assert exif_description(path.read_bytes()) == "a dog"
    assert parse_jpeg(path.read_bytes()).packet == packet
    assert not write_description(path, "a dog")


def test_what_another_program_wrote_into_exif_alone_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "camera.jpg"
    WRITERS[path.name](path)
    assert write_description(path, "a dog")
    path.write_bytes(path.read_bytes().replace(b"a dog\0", b"a god\0"))
    assert (exif_description(path.read_bytes()), read_description(path)) == ("a god", "a dog")
    assert write_description(path, "a dog")
    assert exif_description(path.read_bytes()) == "a dog"


def test_a_new_block_is_first_where_there_is_no_jfif(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    drawn(0).save(path, "JPEG")
    data = path.read_bytes()
    pixels = frames(data)
    path.write_bytes(data[:2] + data[JFIF:])
    assert write_description(path, "a dog")
    after = path.read_bytes()
    assert after[:12] == b"\xff\xd8\xff\xe1" + after[4:6] + b"Exif\0\0"
    assert exif_description(after) == "a dog"
    assert frames(after) == pixels


def test_another_change_of_exif_is_another_picture(tmp_path: Path) -> None:
    path = tmp_path / "camera.jpg"
    WRITERS[path.name](path)
    write_description(path, "a dog")
    data = path.read_bytes()
    digest = digest_without_description(data)
    for old, new in ((b"IMAGING", b"IMAGINE"), (b"2009:08", b"2009:09"), (b"maker", b"muker")):
        assert digest_without_description(data.replace(old, new)) != digest
    assert digest_without_description(data.replace(b"a dog", b"a cat")) == digest
