"""Damaged and unusual files: refused with a reason, and left as they are."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.exif_blocks import camera_block
from tests.outputs.faults import names_in
from tests.outputs.pictures import WRITERS, XMP, drawn, frames

from tellapart.errors import TellapartError
from tellapart.outputs import metadata
from tellapart.outputs.metadata import read_description, write_description
from tellapart.outputs.xmp import with_description

HEADER = b"http://ns.adobe.com/xap/1.0/\0"


def segment(payload: bytes, marker: int = 0xE1) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def chunk(content: bytes, *, flaw: int = 0) -> bytes:
    body = b"iTXt" + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body) ^ flaw)


def jpeg(*parts: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:2] + b"".join(parts) + data[2:]


def png(*parts: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:33] + b"".join(parts) + data[33:]


TEXT = b"XML:com.adobe.xmp\0"
LONG = XMP.replace(b'Rating="4"', b'Rating="' + b"4" * 65_000 + b'"')
REFUSED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "two packets": ("plain.jpg", jpeg(segment(HEADER + XMP), segment(HEADER + XMP)), "several segments"),
    "extended": (
        "plain.jpg",
        jpeg(segment(HEADER + XMP), segment(b"http://ns.adobe.com/xmp/extension/\0" + b"x" * 50)),
        "extended XMP",
    ),
    "too long": ("plain.jpg", jpeg(segment(HEADER + LONG)), "a segment holds 65533"),
    "damaged packet": ("plain.jpg", jpeg(segment(HEADER + XMP[:-9])), "is damaged"),
    "utf-16": ("plain.jpg", jpeg(segment(HEADER + XMP.decode().encode("utf-16"))), "not UTF-8"),
    "after the list": (
        "several.mpo",
        lambda data: data.replace(b"\xff\xdb", segment(HEADER + XMP) + b"\xff\xdb", 1),
        "stands after the list",
    ),
    "damaged Exif": (
        "plain.jpg",
        jpeg(segment(b"Exif\0\0" + camera_block()[:200])),
        "another description in it cannot be replaced: its Exif is damaged",
    ),
    "long Exif": (
        "plain.jpg",
        jpeg(segment(b"Exif\0\0" + camera_block(note=bytes(64_600)))),
        "another description in it cannot be replaced: its Exif would have",
    ),
    "Exif after the list": (
        "several plain.mpo",
        lambda data: data.replace(b"\xff\xdb", segment(b"Exif\0\0" + camera_block()) + b"\xff\xdb", 1),
        "stands after the list",
    ),
    "damaged list": (
        "several.mpo",
        lambda data: data.replace(b"MPF\0II*\0", b"MPF\0XX*\0").replace(b"MPF\0MM\0*", b"MPF\0XX\0*"),
        "list of the pictures in it is damaged",
    ),
    "no scan": ("plain.jpg", lambda data: data[:100], "is damaged"),
    "no marker": ("plain.jpg", lambda data: data[:20] + b"\0\0" + data[20:], "is damaged"),
    "two chunks": ("plain.png", png(*[chunk(TEXT + bytes(4) + XMP)] * 2), "several XMP packets"),
    "checksum": ("plain.png", png(chunk(TEXT + bytes(4) + XMP, flaw=1)), "checksum"),
    "no text": ("plain.png", png(chunk(TEXT + bytes(2))), "is damaged"),
    "badly packed": ("plain.png", png(chunk(TEXT + b"\1\0\0\0" + XMP)), "is damaged"),
    "cut packing": (
        "plain.png",
        png(chunk(TEXT + b"\1\0\0\0" + zlib.compress(XMP)[:-9])),
        "is damaged or too long",
    ),
    "packed bomb": (
        "plain.png",
        png(chunk(TEXT + b"\1\0\0\0" + zlib.compress(bytes(1 << 26)))),
        "is damaged or too long",
    ),
    "cut png": ("plain.png", lambda data: data[:-3], "ends in the middle"),
    "cut webp": ("lossy.webp", lambda data: data[:-3], "ends in the middle"),
    "no webp": ("lossy.webp", lambda data: data[:4] + b"\4\0\0\0" + data[8:], "no picture"),
    "other webp": ("lossy.webp", lambda data: data.replace(b"\x9d\x01\x2a", b"\0\0\0", 1), "no picture"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_damaged_or_unusual_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    source, damage, said = REFUSED[name]
    path = tmp_path / "picture"
    WRITERS[source](path)
    whole = path.read_bytes()
    data = damage(whole)
    assert data != whole
    path.write_bytes(data)
    with pytest.raises(TellapartError, match=said) as caught:
        write_description(path, "a dog")
    assert "stays as it is" in caught.value.problem
    assert path.read_bytes() == data
    assert names_in(tmp_path) == ["picture"]


def test_a_long_caption_is_refused_where_a_segment_cannot_hold_it(tmp_path: Path) -> None:
    drawn(0).save(tmp_path / "a.jpg")
    before = (tmp_path / "a.jpg").read_bytes()
    with pytest.raises(TellapartError, match="a segment holds"):
        write_description(tmp_path / "a.jpg", "x" * 70_000)
    assert (tmp_path / "a.jpg").read_bytes() == before
    drawn(0).save(tmp_path / "a.png")
    assert write_description(tmp_path / "a.png", "x" * 70_000)


def test_unusual_but_sound_files_are_described(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for source, change in (
        ("plain.jpg", lambda data: data[:2] + b"\xff\xff" + data[2:]),  # fill bytes before a marker
        ("plain.jpg", lambda data: data + b"a film that a telephone has put here"),
        ("plain.jpg", jpeg(segment(HEADER + XMP + bytes(30)))),
        ("plain.png", lambda data: data + b"more"),
        ("lossless.webp", lambda data: data + b"more"),
        ("packed.png", lambda data: data.replace(b"IEND", b"IEND")),
    ):
        WRITERS[source](path)
        pixels = frames(path.read_bytes())
        path.write_bytes(change(path.read_bytes()))
        end = path.read_bytes()[-4:]
        assert write_description(path, "a dog")
        assert read_description(path) == "a dog"
        assert frames(path.read_bytes()) == pixels
        assert path.read_bytes()[-4:] == end


@given(data=st.data())
def test_no_damage_ends_in_a_traceback_or_another_picture(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.unlink(missing_ok=True)
    WRITERS[data.draw(st.sampled_from(sorted(WRITERS)))](path)
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, min(len(content), 700) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    path.unlink()
    path.write_bytes(content)
    try:
        changed = write_description(path, "a dog")
    except TellapartError:
        assert path.read_bytes() == content
    else:
        assert read_description(path) == "a dog"
        tail = min(40, len(content) // 2)
        assert not changed or b"a dog" in path.read_bytes()
        assert tail == 0 or path.read_bytes()[-tail:] == content[-tail:] or content.startswith(b"RIFF")


def test_a_picture_that_is_saved_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    drawn(0).save(path)

    def save_meanwhile(packet: bytes | None, caption: str) -> bytes:
        drawn(1, size=(50, 50)).save(path)
        return with_description(packet, caption)

    monkeypatch.setattr(metadata, "with_description", save_meanwhile)
    with pytest.raises(TellapartError, match="changed by another program"):
        write_description(path, "a dog")
    assert frames(path.read_bytes()) == [("RGB", (50, 50), drawn(1, size=(50, 50)).tobytes())]
    assert names_in(tmp_path) == ["a.png"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="does not exist"):
        write_description(tmp_path / "none.jpg", "a dog")
    with pytest.raises(TellapartError, match="is not a file"):
        write_description(tmp_path, "a dog")
