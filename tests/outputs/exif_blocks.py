"""Exif blocks as cameras and other programs write them, by a writer of the tests' own."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from PIL import ExifTags, Image

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED = 1, 2, 3, 4, 5, 7
SIZES = {BYTE: 1, ASCII: 1, SHORT: 2, LONG: 4, RATIONAL: 8, UNDEFINED: 1}
DESCRIPTION, MAKE, ORIENTATION, RESOLUTION = 0x010E, 0x010F, 0x0112, 0x011A
EXIF, GPS = 0x8769, 0x8825
CAMERA = "OLYMPUS DIGITAL CAMERA"


@dataclass(frozen=True)
class Tag:
    """An entry of a directory with its value, wherever that stands."""

    number: int
    kind: int
    value: bytes


def directory(order: str, at: int, tags: Sequence[Tag], following: int = 0, gap: int = 0) -> bytes:
    """A directory that stands at a place, with its values behind it."""
    values_at = at + 2 + 12 * len(tags) + 4 + gap
    entries, values = b"", b""
    for tag in tags:
        entries += struct.pack(order + "HHI", tag.number, tag.kind, len(tag.value) // SIZES[tag.kind])
        if len(tag.value) <= 4:
            entries += tag.value.ljust(4, b"\0")
        else:
            entries += struct.pack(order + "I", values_at + len(values))
            values += tag.value + bytes(len(tag.value) % 2)
    entries = struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", following)
    return entries + bytes(gap) + values


def header(order: str, first: int) -> bytes:
    return {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", first)


def camera_block(order: str = "<", told: str | None = CAMERA, note: bytes = b"maker\0\1\2\3" * 40) -> bytes:
    """What a camera writes: all kinds of tags, its own notes, a place on Earth, a small picture."""
    small = _small_picture()
    told_tags = [] if told is None else [Tag(DESCRIPTION, ASCII, told.encode() + b"\0")]
    sharpness = [_numbers(order, RESOLUTION, RATIONAL, 300, 1), _numbers(order, 0x011B, RATIONAL, 300, 1)]

    def first(exif_at: int, gps_at: int, second_at: int) -> bytes:
        tags = [
            *told_tags,
            Tag(MAKE, ASCII, b"OLYMPUS IMAGING CORP.\0"),
            _numbers(order, ORIENTATION, SHORT, 6),
            *sharpness,
            _numbers(order, 0x0128, SHORT, 2),
            _numbers(order, 0x0213, SHORT, 1),
            _numbers(order, EXIF, LONG, exif_at),
            _numbers(order, GPS, LONG, gps_at),
        ]
        return directory(order, 8, tags, second_at)

    def second(small_at: int) -> bytes:
        tags = [
            _numbers(order, 0x0103, SHORT, 6),
            *sharpness,
            _numbers(order, 0x0128, SHORT, 2),
            _numbers(order, 0x0201, LONG, small_at),
            _numbers(order, 0x0202, LONG, len(small)),
        ]
        return directory(order, second_at, tags)

    exif_at = 8 + len(first(0, 0, 0))
    exif = directory(order, exif_at, _details(order, note))
    gps_at = exif_at + len(exif)
    gps = directory(order, gps_at, _place(order))
    second_at = gps_at + len(gps)
    parts = (first(exif_at, gps_at, second_at), exif, gps, second(second_at + len(second(0))))
    return header(order, 8) + b"".join(parts) + small


def _details(order: str, note: bytes) -> list[Tag]:
    return [
        Tag(0x9000, UNDEFINED, b"0230"),
        Tag(0x9003, ASCII, b"2009:08:07 06:05:04\0"),
        Tag(0x9101, UNDEFINED, b"\1\2\3\0"),
        Tag(0x927C, UNDEFINED, note),
        Tag(0x9286, UNDEFINED, b"ASCII\0\0\0a comment"),
        Tag(0xA000, UNDEFINED, b"0100"),
        _numbers(order, 0xA001, SHORT, 1),
        _numbers(order, 0xA002, SHORT, 33),
        _numbers(order, 0xA003, SHORT, 21),
    ]


def _place(order: str) -> list[Tag]:
    return [
        Tag(0, BYTE, b"\2\3\0\0"),
        Tag(1, ASCII, b"N\0"),
        _numbers(order, 2, RATIONAL, 50, 1, 5, 1, 12, 1),
        Tag(3, ASCII, b"E\0"),
        _numbers(order, 4, RATIONAL, 14, 1, 25, 1, 3, 1),
    ]


def _numbers(order: str, number: int, kind: int, *values: int) -> Tag:
    return Tag(number, kind, struct.pack(f"{order}{len(values)}{'H' if kind == SHORT else 'I'}", *values))


def _small_picture() -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((16, 16)).save(file, "JPEG")
    return file.getvalue()


@dataclass(frozen=True)
class Drawn:
    """A block drawn by chance.

    Attributes:
        block: all of it.
        order: of its bytes.
        start: where its first directory stands.
        stays: how many of its bytes have to stay as they are.
    """

    block: bytes
    order: str
    start: int
    stays: int


@st.composite
def blocks(draw: st.DrawFn) -> Drawn:
    """Sound blocks of all shapes, with the first directory in front, in the middle or at the end."""
    order = draw(st.sampled_from("<>"))
    numbers = st.integers(0, 0xFFFF).filter(lambda number: number != DESCRIPTION)
    tags = []
    for kind in draw(st.lists(st.sampled_from(sorted(SIZES)), max_size=6)):
        length = SIZES[kind] * draw(st.integers(1, 9))
        tags.append(Tag(draw(numbers), kind, draw(st.binary(min_size=length, max_size=length))))
    told = draw(st.none() | st.binary(max_size=12))
    if told is not None:
        tags.append(Tag(DESCRIPTION, ASCII, told + b"\0"))
    if draw(st.booleans()):
        tags.sort(key=lambda tag: tag.number)
    before, behind = draw(st.binary(max_size=21)), draw(st.binary(max_size=9))
    start, gap = 8 + len(before), draw(st.integers(0, 3))
    end = start + len(directory(order, start, tags, gap=gap)) + len(behind)
    following = draw(st.sampled_from([0, *(place for place in range(8, end - 1) if place != start)]))
    body = directory(order, start, tags, following, gap)
    # A directory with nothing but the description behind it may be written over.
    is_last = end - start - 2 - 12 * len(tags) - 4 <= len(told or b"") + 2
    return Drawn(header(order, start) + before + body + behind, order, start, start if is_last else end)


def tags_of(block: bytes) -> dict[object, object]:
    """All that Pillow finds in a block but for the description, with the small picture."""
    found = Image.Exif()
    found.load(b"Exif\0\0" + block)
    told: dict[object, object] = {tag: value for tag, value in found.items() if tag != DESCRIPTION}
    for part in (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo, ExifTags.IFD.IFD1):
        told[part] = dict(found.get_ifd(part))
    second = found.get_ifd(ExifTags.IFD.IFD1)
    if second:
        told["small"] = block[second[0x0201] : second[0x0201] + second[0x0202]]
    return told


def told_in(block: bytes) -> str | None:
    """The description that Pillow finds in a block: it takes the bytes of texts for Latin-1."""
    found = Image.Exif()
    found.load(b"Exif\0\0" + block)
    text = found.get(DESCRIPTION)
    return None if text is None else str(text).encode("latin-1").decode()
