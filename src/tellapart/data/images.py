"""Pictures: decoding them as a person sees them.

Each file format is opened by its own class of Pillow, chosen by the first bytes of the file, rather than by
`Image.open`: that one warns about large pictures through the `warnings` module, which no thread can silence
for itself alone, and it tries formats that run other programs or have no pixels.
"""

from __future__ import annotations

import re
import struct
import threading
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)
from PIL.ExifTags import Base

from tellapart.arrays import Num, UInt8
from tellapart.data.picture_files import one_line, read_bytes
from tellapart.errors import TellapartError

MAX_PIXELS = 2 * 89_478_485
"""A picture with more pixels than this is refused before they are decoded: Pillow's own hard limit."""


class _Jpeg(JpegImagePlugin.JpegImageFile):
    # A JPEG made of several pictures (MPO) is opened as its first one.

    def _read_dpi_from_exif(self) -> None:
        """Nothing: Pillow would read all of EXIF for the print size, and warn where EXIF is broken."""


_FORMATS: tuple[tuple[re.Pattern[bytes], type[ImageFile.ImageFile]], ...] = tuple(
    (re.compile(first_bytes, re.DOTALL), opener)
    for first_bytes, opener in (
        (rb"\xff\xd8\xff", _Jpeg),
        (rb"\x89PNG\r\n\x1a\n", PngImagePlugin.PngImageFile),
        (rb"GIF8[79]a", GifImagePlugin.GifImageFile),
        (rb"RIFF....WEBP", WebPImagePlugin.WebPImageFile),
        (rb"(II|MM)(\*\0|\0\*|\+\0|\0\+)", TiffImagePlugin.TiffImageFile),
        (rb"....ftyp(avi[fs]|mif1|msf1)", AvifImagePlugin.AvifImageFile),
        (rb"\xff\x4f\xff\x51|\0\0\0\x0cjP  \r\n\x87\n", Jpeg2KImagePlugin.Jpeg2KImageFile),
        (rb"BM", BmpImagePlugin.BmpImageFile),
        (rb"P[1-6fy]\s", PpmImagePlugin.PpmImageFile),
    )
)

_TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

LARGE = 20_000_000
"""Pixels beyond which a picture is decoded alone and shrunk at once: a few copies of it fill the memory."""

_SHRINKABLE = frozenset({"L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "I", "F"})
_ONE_LARGE_AT_A_TIME = threading.Lock()

_FETCH_AGAIN = "copy or download the file again, or leave it out"


def read_picture(path: Path, *, at_least: int = 0) -> Image.Image:
    """The picture in a file, as `decode` gives it."""
    return decode(read_bytes(path), name=str(path), at_least=at_least)


def decode(data: bytes, *, name: str, at_least: int = 0) -> Image.Image:
    """The picture in a file's bytes, in RGB, upright, its first frame, transparency laid over white.

    A damaged or truncated file is an error, never half a picture. Safe to call from several threads at once.

    Args:
        data: the whole file.
        name: what messages call it.
        at_least: where positive, a JPEG may be decoded at a half, a quarter or an eighth of its size, as
            long as its shorter side keeps this many pixels; much faster on large photographs.
    """
    opener = _opener(data, name)
    try:
        picture = opener(BytesIO(data))
        _refuse_too_large(picture, name)
        if at_least > 0:
            picture.draft(None, (at_least, at_least))
        with _ONE_LARGE_AT_A_TIME if picture.width * picture.height > LARGE else nullcontext():
            picture.load()
            rgb = _to_rgb(_shrunk(picture, at_least))
        return _upright(rgb, _orientation(picture.info.get("exif", b"")))
    except TellapartError:
        raise
    except Image.DecompressionBombError as error:
        raise _too_large(name) from error
    except Exception as error:  # Pillow raises nearly every kind of exception on damaged files
        raise TellapartError(
            f"{name} is damaged or cut short: {one_line(error)}", hint=_FETCH_AGAIN
        ) from error


def _opener(data: bytes, name: str) -> type[ImageFile.ImageFile]:
    if not data:
        raise TellapartError(f"{name} is empty", hint=_FETCH_AGAIN)
    for first_bytes, opener in _FORMATS:
        if first_bytes.match(data):
            return opener
    raise TellapartError(
        f"{name} is not a picture of a known format",
        hint="convert it to JPEG or PNG; also read: GIF, WebP, TIFF, AVIF, JPEG 2000, BMP, PPM",
    )


def _refuse_too_large(picture: Image.Image, name: str) -> None:
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large(name, f": {picture.width} x {picture.height}")


def _too_large(name: str, size: str = "") -> TellapartError:
    return TellapartError(
        f"{name} has more than {MAX_PIXELS:,} pixels{size}",
        hint="make it smaller, or check whether it is genuine",
    )


def _orientation(exif: bytes) -> int:
    """How the camera was held, from 1 (upright) to 8; 1 as well where EXIF is missing or broken.

    Read here and not by Pillow, which warns about every other broken field. TIFF keeps its orientation
    outside EXIF, and there Pillow itself turns the picture.
    """
    fields = exif.removeprefix(b"Exif\0\0")
    order = ">" if fields.startswith(b"MM") else "<"
    try:
        (start,) = struct.unpack_from(f"{order}L", fields, 4)
        (count,) = struct.unpack_from(f"{order}H", fields, start)
        for index in range(count):
            tag, value = struct.unpack_from(f"{order}H6xH", fields, start + 2 + 12 * index)
            if tag == Base.Orientation:
                return int(value)
    except struct.error:
        return 1
    return 1


def _upright(picture: Image.Image, orientation: int) -> Image.Image:
    turn = _TO_UPRIGHT.get(orientation)
    return picture if turn is None else picture.transpose(turn)


def _shrunk(picture: Image.Image, at_least: int) -> Image.Image:
    """A large picture at a whole fraction of its size, its shorter side no less than asked for."""
    factor = min(picture.size) // at_least if at_least > 0 else 1
    if factor < 2 or picture.width * picture.height <= LARGE or picture.mode not in _SHRINKABLE:
        return picture
    return picture.reduce(factor)


def _to_rgb(picture: Image.Image) -> Image.Image:
    # Pillow itself would clip these modes at 255 instead of scaling them.
    if picture.mode.startswith("I") or picture.mode == "F":
        return Image.fromarray(_eight_bits(np.asarray(picture))).convert("RGB")
    if not picture.has_transparency_data:
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    over = picture.convert("RGBA")
    white = Image.new("RGBA", over.size, "white")
    return Image.alpha_composite(white, over).convert("RGB")


def _eight_bits(values: Num[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    """Deep greys in 256 steps.

    The full range of 16 bits, or of fractions from 0 to 1, is kept; values beyond it are stretched from the
    least to the greatest, since nothing says what is black and what is white.
    """
    grey = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    full = 1.0 if np.issubdtype(values.dtype, np.floating) else 65535.0
    low, high = float(grey.min()), float(grey.max())
    if low >= 0.0 and high <= full:
        low, high = 0.0, full
    grey -= low
    grey *= 255.0 / ((high - low) or 1.0)
    return np.rint(grey, out=grey).astype(np.uint8)
