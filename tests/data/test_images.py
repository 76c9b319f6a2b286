"""Every kind of good picture comes out as a person sees it."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps

from tellapart.data.images import decode, read_picture

RED, BLUE, WHITE = (200, 30, 40), (20, 60, 220), (255, 255, 255)


def scene() -> Image.Image:
    """Red on the left, blue on the right, a white stripe at the bottom: no symmetry hides a wrong turn."""
    picture = Image.new("RGB", (32, 24), RED)
    picture.paste(BLUE, (16, 0, 32, 24))
    picture.paste(WHITE, (0, 20, 32, 24))
    return picture


def encode(picture: Image.Image, kind: str, options: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def pixel(picture: Image.Image, x: int, y: int) -> list[int]:
    assert picture.mode == "RGB"
    values: list[int] = np.asarray(picture)[y, x].tolist()
    return values


def assert_shows_scene(picture: Image.Image, *, tolerance: int) -> None:
    assert picture.size == (32, 24)
    for place, colour in {(4, 8): RED, (27, 8): BLUE, (4, 22): WHITE}.items():
        assert pixel(picture, *place) == pytest.approx(colour, abs=tolerance)


def png(picture: Image.Image) -> bytes:
    return encode(picture, "PNG")


def grey_scene(values: object, kind: type[np.generic]) -> Image.Image:
    return Image.fromarray(np.asarray(values, dtype=kind).reshape(1, -1))


def in_lab(picture: Image.Image) -> Image.Image:
    srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    changed = ImageCms.applyTransform(picture, ImageCms.buildTransform(srgb, lab, "RGB", "LAB"))
    assert changed is not None
    return changed


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "JPEG2000", "GIF", "WEBP", "AVIF", "JPEG"])
def test_each_format_shows_its_colours(kind: str) -> None:
    assert_shows_scene(decode(encode(scene(), kind), name="x"), tolerance=20)


@pytest.mark.parametrize(
    ("mode", "kind", "tolerance"),
    [
        ("RGBA", "PNG", 0),
        ("RGBA", "WEBP", 20),
        ("YCbCr", "TIFF", 3),
        ("CMYK", "TIFF", 1),
        ("CMYK", "JPEG", 20),
    ],
)
def test_each_mode_shows_its_colours(mode: str, kind: str, tolerance: int) -> None:
    assert_shows_scene(decode(encode(scene().convert(mode), kind), name="x"), tolerance=tolerance)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF"])
def test_a_palette_shows_its_colours(kind: str) -> None:
    assert_shows_scene(decode(encode(scene().quantize(), kind), name="x"), tolerance=0)


def test_lab_shows_its_colours() -> None:
    assert_shows_scene(decode(encode(in_lab(scene()), "TIFF"), name="x"), tolerance=3)


def test_cmyk_red_is_red() -> None:
    for kind in ("TIFF", "JPEG"):
        red, green, blue = pixel(
            decode(encode(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), kind), name="x"), 3, 3
        )
        assert red > 240
        assert max(green, blue) < 15


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000"])
def test_sixteen_bit_grey_is_scaled_not_clipped(kind: str) -> None:
    data = encode(grey_scene([0, 257, 32896, 65535], np.uint16), kind)
    assert [pixel(decode(data, name="x"), x, 0) for x in range(4)] == [[v] * 3 for v in (0, 1, 128, 255)]


def test_big_endian_sixteen_bit_grey_is_scaled() -> None:
    picture = Image.frombytes("I;16B", (2, 1), struct.pack(">2H", 32896, 65535))
    assert pixel(decode(encode(picture, "TIFF"), name="x"), 0, 0) == [128] * 3


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        ([0.0, 0.2, 1.0], np.float32, [0, 51, 255]),
        ([0.0, 0.2, 0.4], np.float32, [0, 51, 102]),
        ([-10.0, 0.0, 10.0], np.float32, [0, 128, 255]),
        ([float("nan"), 0.2, float("inf")], np.float32, [0, 51, 0]),
        ([7.0, 7.0], np.float32, [0, 0]),
        ([0, 32896, 65535], np.int32, [0, 128, 255]),
        ([-500, 0, 500], np.int32, [0, 128, 255]),
        ([0, 100_000, 200_000], np.int32, [0, 128, 255]),
    ],
)
def test_deep_greys_keep_their_full_range_or_are_stretched(
    values: list[float], kind: type[np.generic], shown: list[int]
) -> None:
    picture = decode(encode(grey_scene(values, kind), "TIFF"), name="x")
    assert np.asarray(picture)[0, :, 1].tolist() == shown


def test_grey_and_one_bit() -> None:
    assert pixel(decode(png(Image.new("L", (3, 3), 77)), name="x"), 1, 1) == [77] * 3
    black_and_white = Image.new("1", (2, 1))
    black_and_white.putpixel((1, 0), 1)
    picture = decode(png(black_and_white), name="x")
    assert [pixel(picture, 0, 0), pixel(picture, 1, 0)] == [[0] * 3, [255] * 3]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"])
def test_one_pixel_is_a_picture(kind: str) -> None:
    picture = decode(encode(Image.new("RGB", (1, 1), (9, 9, 9)), kind), name="x", at_least=224)
    assert picture.size == (1, 1)
    assert pixel(picture, 0, 0) == pytest.approx([9] * 3, abs=4)


@pytest.mark.parametrize(("mode", "colour"), [("RGBA", (200, 0, 0, 128)), ("LA", (0, 128))])
def test_half_transparent_is_laid_over_white(mode: str, colour: tuple[int, ...]) -> None:
    red, green, blue = pixel(decode(png(Image.new(mode, (4, 4), colour)), name="x"), 2, 2)
    assert (green, blue) == (127, 127)
    assert red == (227 if mode == "RGBA" else 127)


@pytest.mark.parametrize("mode", ["P", "L", "RGB", "1"])
def test_a_transparent_colour_turns_white(mode: str) -> None:
    picture = Image.new("RGB", (2, 1), (0, 0, 0))
    other = (255, 0, 0) if mode in {"P", "RGB"} else WHITE
    picture.putpixel((1, 0), other)
    picture = picture.quantize(2) if mode == "P" else picture.convert(mode)
    black = picture.getpixel((0, 0))
    data = encode(picture, "PNG", {"transparency": black})
    shown = decode(data, name="x")
    assert pixel(shown, 0, 0) == list(WHITE)
    assert pixel(shown, 1, 0) == list(other)


def test_palette_with_a_transparency_for_each_colour() -> None:
    picture = Image.new("P", (3, 1))
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    for x in range(3):
        picture.putpixel((x, 0), x)
    data = encode(picture, "PNG", {"transparency": bytes([255, 0, 128])})
    shown = decode(data, name="x")
    assert [pixel(shown, x, 0) for x in range(3)] == [[255, 0, 0], [255, 255, 255], [127, 127, 255]]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF", "AVIF"])
def test_an_animation_shows_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (32, 24), BLUE), Image.new("RGB", (32, 24), WHITE)]
    data = encode(scene(), kind, {"save_all": True, "append_images": frames})
    assert_shows_scene(decode(data, name="x"), tolerance=20)


def exif(orientation: int, *, order: str = "<", broken_field: bool = False) -> bytes:
    mark = b"Exif\0\0" + {"<": b"II*\0", ">": b"MM\0*"}[order]
    fields = struct.pack(f"{order}HHLL", 0x010F, 2, 400, 90_000) if broken_field else b""
    fields += struct.pack(f"{order}HHLHxx", 0x0112, 3, 1, orientation)
    return mark + struct.pack(f"{order}LH", 8, len(fields) // 12) + fields + b"\0\0\0\0"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(10))
def test_exif_orientation_is_applied(orientation: int, order: str) -> None:
    data = encode(scene(), "JPEG", {"exif": exif(orientation, order=order)})
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert np.array_equal(np.asarray(decode(data, name="x")), np.asarray(expected))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_a_camera_turned_clockwise(kind: str) -> None:
    shown = decode(encode(scene(), kind, {"exif": exif(6)}), name="x")
    assert shown.size == (24, 32)
    # Orientation 6: the left edge as stored is the top as seen, and the bottom as stored the left.
    assert pixel(shown, 15, 4) == pytest.approx(RED, abs=20)
    assert pixel(shown, 15, 27) == pytest.approx(BLUE, abs=20)
    assert pixel(shown, 1, 16) == pytest.approx(WHITE, abs=20)


@pytest.mark.parametrize(
    "data", [b"Exif\0\0", b"Exif\0\0junk", exif(6)[:14], exif(6)[:20], exif(6)[:6] + b"\xff" * 40]
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_broken_exif_does_not_stop_a_picture(kind: str, data: bytes) -> None:
    assert_shows_scene(decode(encode(scene(), kind, {"exif": data}), name="x"), tolerance=20)


def test_orientation_is_found_beside_a_broken_field() -> None:
    assert decode(encode(scene(), "JPEG", {"exif": exif(6, broken_field=True)}), name="x").size == (24, 32)


@pytest.mark.parametrize(
    ("at_least", "size"), [(0, (640, 400)), (50, (80, 50)), (51, (160, 100)), (201, (640, 400))]
)
def test_a_jpeg_is_reduced_no_further_than_asked(at_least: int, size: tuple[int, int]) -> None:
    picture = decode(encode(scene().resize((640, 400)), "JPEG"), name="x", at_least=at_least)
    assert picture.size == size
    assert pixel(picture, size[0] // 8, size[1] // 3) == pytest.approx(RED, abs=20)


@pytest.mark.parametrize("mode", ["LA", "RGBA", "I;16", "P"])
def test_a_huge_picture_takes_memory_for_few_copies(mode: str, tmp_path: Path) -> None:
    side = 5000
    Image.new(mode, (side, side)).save(tmp_path / "huge.png")
    script = (
        "import resource, sys; from pathlib import Path; from tellapart.data.images import read_picture;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "picture = read_picture(Path(sys.argv[1]), at_least=260);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, min(picture.size))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "huge.png"], capture_output=True, text=True, check=True
    )
    kibibytes, shorter = map(int, ended.stdout.split())
    assert shorter >= 260
    assert kibibytes * 1024 / side**2 < 14  # bytes a pixel; a band of Pillow's takes 4


def test_a_huge_picture_looks_the_same_when_shrunk(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (4800, 4800), (255, 0, 0, 255))
    picture.paste((0, 0, 255, 0), (2400, 0, 4800, 4800))
    picture.save(tmp_path / "huge.png")
    small = read_picture(tmp_path / "huge.png", at_least=200)
    assert small.width < 4800
    assert small.getpixel((small.width // 4, 5)) == (255, 0, 0)
    assert small.getpixel((small.width * 3 // 4, 5)) == (255, 255, 255)
