"""Pictures of all formats with all that files carry beside their pixels, for the tests of metadata."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms, PngImagePlugin
from tests.outputs.exif_blocks import camera_block, tags_of, told_in

from tellapart.outputs.xmp import RDF

XMP = (
    f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about="" '
    'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"/></rdf:RDF></x:xmpmeta>'
).encode()
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def drawn(seed: int, mode: str = "RGB", size: tuple[int, int] = (33, 21)) -> Image.Image:
    """A picture of noise: no two of its pixels are alike, and each counts."""
    bands = len(mode) if mode in ("RGB", "RGBA") else 1
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], bands), np.uint8)
    return Image.fromarray(noise.squeeze(), mode)


def exif(orientation: int = 6) -> bytes:
    tags = Image.Exif()
    tags[0x0112], tags[0x010F], tags[0x010E] = orientation, "Maker", "OLYMPUS DIGITAL CAMERA"
    return tags.tobytes()


def _jpeg(progressive: bool, dressed: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        more = {"exif": exif(), "icc_profile": ICC, "xmp": XMP, "comment": b"hello"} if dressed else {}
        drawn(1).save(path, "JPEG", quality=90, progressive=progressive, **more)

    return write


def _grey_jpeg(path: Path) -> None:
    drawn(2, "L").save(path, "JPEG", exif=exif(), icc_profile=None)


def _camera(order: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        drawn(13).save(path, "JPEG", exif=b"Exif\0\0" + camera_block(order))

    return write


def _several(dressed: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        more = {"exif": exif()} if dressed else {}
        drawn(3).save(path, "MPO", save_all=True, append_images=[drawn(4), drawn(5)], **more)

    return write


def _png(mode: str, dressed: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        text = PngImagePlugin.PngInfo()
        more: dict[str, object] = {}
        if dressed:
            text.add_text("Title", "mine")
            text.add_itxt("XML:com.adobe.xmp", XMP.decode())
            more = {"exif": exif(), "icc_profile": ICC}
        drawn(6, mode).save(path, "PNG", pnginfo=text, **more)

    return write


def _packed_png(path: Path) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", XMP.decode(), lang="en", tkey="XMP", zip=True)
    drawn(7, "P").save(path, "PNG", pnginfo=text)


def _animated_png(path: Path) -> None:
    drawn(8).save(path, "PNG", save_all=True, append_images=[drawn(9)], duration=100)


def _webp(mode: str, *, lossless: bool, dressed: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        more = {"exif": exif(), "icc_profile": ICC, "xmp": XMP} if dressed else {}
        drawn(10, mode).save(path, "WEBP", lossless=lossless, **more)

    return write


def _animated_webp(path: Path) -> None:
    drawn(11).save(path, "WEBP", save_all=True, append_images=[drawn(12)], duration=100, lossless=True)


WRITERS: dict[str, Callable[[Path], None]] = {
    "plain.jpg": _jpeg(progressive=False, dressed=False),
    "dressed.jpg": _jpeg(progressive=False, dressed=True),
    "progressive.jpg": _jpeg(progressive=True, dressed=True),
    "grey.jpg": _grey_jpeg,
    "camera.jpg": _camera("<"),
    "other camera.jpg": _camera(">"),
    "several.mpo": _several(dressed=True),
    "several plain.mpo": _several(dressed=False),
    "plain.png": _png("RGB", dressed=False),
    "dressed.png": _png("RGBA", dressed=True),
    "packed.png": _packed_png,
    "animated.png": _animated_png,
    "lossy.webp": _webp("RGB", lossless=False, dressed=False),
    "lossless.webp": _webp("RGB", lossless=True, dressed=False),
    "clear.webp": _webp("RGBA", lossless=True, dressed=False),
    "clear lossy.webp": _webp("RGBA", lossless=False, dressed=False),
    "dressed.webp": _webp("RGB", lossless=False, dressed=True),
    "animated.webp": _animated_webp,
}


def frames(data: bytes) -> list[tuple[str, tuple[int, int], bytes]]:
    """All that is to be seen, pixel by pixel."""
    with Image.open(io.BytesIO(data)) as picture:
        found = []
        for number in range(getattr(picture, "n_frames", 1)):
            picture.seek(number)
            found.append((picture.mode, picture.size, picture.tobytes()))
        return found


def beside(data: bytes) -> dict[object, object]:
    """What Pillow finds in the file besides the pixels, but for XMP and the description in a JPEG's Exif."""
    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
        # Where the parts of a file stand may change.
        places = ("xmp", "XML:com.adobe.xmp", "mpoffset", "mp")
        told: dict[object, object] = {
            name: value for name, value in picture.info.items() if name not in places
        }
        if picture.format not in ("JPEG", "MPO"):
            return told | {"exif tags": dict(picture.getexif())}
        told.setdefault("dpi", (72, 72))  # what Pillow takes it for where there is Exif without it
        return told | {"exif": tags_of(_block(told))}


def exif_description(data: bytes) -> str | None:
    """The description in a JPEG's Exif as Pillow finds it."""
    with Image.open(io.BytesIO(data)) as picture:
        return told_in(_block(picture.info))


def _block(info: Mapping[Any, object]) -> bytes:
    segment = info.get("exif", b"")
    assert isinstance(segment, bytes)
    return segment.removeprefix(b"Exif\0\0")


def packet_of(data: bytes) -> bytes:
    """The XMP packet as Pillow finds it."""
    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
        packet = picture.info["xmp"]
        assert isinstance(packet, bytes)
        return packet
