"""`tellapart caption` on pictures of every kind, and on files that are none."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


def drawn() -> Image.Image:
    """A picture of a few colours without symmetry."""
    pixels = np.zeros((18, 24, 3), np.uint8)
    pixels[:9, :6], pixels[9:, 6:], pixels[3:5, 10:20] = (255, 0, 51), (0, 102, 255), (255, 255, 204)
    return Image.fromarray(pixels)


def grey() -> Image.Image:
    return drawn().convert("L")


def see_through() -> Image.Image:
    """The left half can be seen through, whatever colour stands there."""
    picture = drawn().convert("RGBA")
    picture.paste((9, 200, 9, 0), (0, 0, 12, 18))
    return picture


def on_paper() -> Image.Image:
    """What a person sees of it."""
    picture = drawn()
    picture.paste((255, 255, 255), (0, 0, 12, 18))
    return picture


def inks() -> Image.Image:
    """The same colours as light that cyan, magenta and yellow take away."""
    layers = np.dstack([255 - np.asarray(drawn()), np.zeros((18, 24), np.uint8)])
    return Image.frombytes("CMYK", (24, 18), layers.tobytes())


def turned() -> bytes:
    """Stored lying on its side, with the note that it is to be turned right by a quarter."""
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    drawn().transpose(Image.Transpose.ROTATE_90).save(buffer, "PNG", exif=exif)
    return buffer.getvalue()


def animated() -> bytes:
    """Three frames, of which the first counts."""
    buffer = io.BytesIO()
    others = [Image.new("RGB", (24, 18), colour) for colour in ("white", "green")]
    drawn().save(buffer, "PNG", save_all=True, append_images=others)
    return buffer.getvalue()


def as_file(picture: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()


def deep() -> bytes:
    """16 bits a pixel."""
    return as_file(Image.fromarray(np.asarray(grey()).astype(np.uint16) * 257))


GOOD: Mapping[str, tuple[Callable[[], bytes], Callable[[], Image.Image]]] = {
    "16-bit.png": (deep, grey),
    "cmyk.tif": (lambda: as_file(inks(), "TIFF"), drawn),
    "palette.gif": (lambda: as_file(drawn().quantize(8), "GIF"), drawn),
    "greyscale.png": (lambda: as_file(grey()), grey),
    "alpha.png": (lambda: as_file(see_through()), on_paper),
    "animated.png": (animated, drawn),
    "turned.png": (turned, drawn),
    "one pixel.png": (
        lambda: as_file(Image.new("RGB", (1, 1), "red")),
        lambda: Image.new("RGB", (9, 9), "red"),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_pictures_of_every_kind_are_captioned_as_a_person_sees_them(
    name: str, tellapart: Tellapart, tiny_captioner: Path, tmp_path: Path
) -> None:
    stored, seen = GOOD[name]
    picture, plain, other = tmp_path / name, tmp_path / "plain.png", tmp_path / "other.png"
    picture.write_bytes(stored())
    seen().convert("RGB").save(plain)
    seen().convert("RGB").rotate(90, expand=True, fillcolor="green").point(lambda value: 255 - value).save(
        other
    )

    outcome = tellapart(
        "caption", "--apart", "off", picture, plain, other, "--json", "--captioner", tiny_captioner
    )

    assert (outcome.code, outcome.err) == (0, "")
    first, second, third = (json.loads(line)["candidates"] for line in outcome.out.splitlines())
    assert first == second
    assert first != third


def bomb(path: Path) -> None:
    """A PNG of a few bytes that says it has 2,500,000,000 pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    chunks = [header, b"IDAT" + zlib.compress(b"\0" * 1000), b"IEND"]
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
            for chunk in chunks
        )
    )


BAD: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "truncated.png": (lambda path: path.write_bytes(as_file(drawn())[:-40]), "is damaged or cut short"),
    "truncated.jpg": (
        lambda path: path.write_bytes(as_file(drawn(), "JPEG")[:500]),
        "is damaged or cut short",
    ),
    "nothing.png": (Path.touch, "is empty"),
    "words.jpg": (lambda path: path.write_text("these are words"), "is not a picture"),
    "bomb.png": (bomb, "has more than 178,956,970 pixels: 50000 x 50000"),
    "missing.png": (lambda path: None, "does not exist"),
    "missing folder/": (lambda path: None, "does not exist"),
    "empty folder": (Path.mkdir, "has no pictures in it"),
    "dangling.png": (lambda path: path.symlink_to("gone.png"), "is a link to a file that does not exist"),
    "pipe.png": (os.mkfifo, "is not a file"),
}


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "names", [*([name] for name in BAD), list(BAD)], ids=lambda names: "+".join(names)[:40]
)
def test_a_bad_file_costs_one_line_and_the_others_are_captioned(
    names: list[str], tellapart: Tellapart, tiny_captioner: Path, tmp_path: Path
) -> None:
    first, last = tmp_path / "first.png", tmp_path / "last.png"
    drawn().save(first)
    drawn().save(last)
    for name in names:
        BAD[name][0](tmp_path / name)
    before = content(tmp_path)

    bad = [tmp_path / name for name in names]
    outcome = tellapart("caption", "--apart", "off", first, *bad, last, "--captioner", tiny_captioner)

    assert outcome.code == 1
    assert [line.partition(": ")[0] for line in outcome.out.splitlines()] == [str(first), str(last)]
    said = outcome.err.splitlines()
    assert len(said) == 2 * len(names)
    for path, name, problem, hint in zip(bad, names, said[::2], said[1::2], strict=True):
        assert problem.startswith(f"error: {path} {BAD[name][1]}")
        assert hint.startswith("  hint: ")
        assert len(hint) > 20
    assert content(tmp_path) == before


def test_bad_files_do_not_get_on_the_page_and_no_caption_leaves_the_old_page(
    tellapart: Tellapart, tiny_captioner: Path, tmp_path: Path
) -> None:
    good, bad, page = tmp_path / "good.png", tmp_path / "bad.png", tmp_path / "page.html"
    drawn().save(good)
    bad.write_bytes(as_file(drawn())[:-40])

    some = tellapart("caption", "--apart", "off", bad, good, "--page", page, "--captioner", tiny_captioner)
    assert some.code == 1
    written = page.read_text(encoding="utf-8")
    assert (written.count("<img"), "bad.png" in written) == (1, False)

    none = tellapart(
        "caption", "--apart", "off", bad, tmp_path / "mising", "--page", page, "--captioner", tiny_captioner
    )
    assert (none.code, none.out) == (1, "")
    assert page.read_text(encoding="utf-8") == written


NOBODY = """
import contextlib, os, sys
from tellapart.cli import main
with contextlib.suppress(SystemExit):
    main()  # once with all rights, so that nothing is left to import when they are gone
print("--", flush=True)
print("--", file=sys.stderr, flush=True)
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
main()
"""


def test_what_may_not_be_read_is_said_and_the_others_are_captioned(
    tiny_captioner: Path, tmp_path: Path
) -> None:
    # Names are relative: a stranger may look into this folder, though not into those around it.
    folder = tmp_path / "photos"
    (folder / "closed").mkdir(parents=True)
    for name in ("closed/in.png", "first.png", "secret.png", "seen.png"):
        drawn().save(folder / name)
    shutil.copytree(tiny_captioner, tmp_path / "tiny")
    tmp_path.chmod(0o755)
    folder.chmod(0o755)
    (folder / "closed").chmod(0)
    (folder / "secret.png").chmod(0)

    command = [
        sys.executable,
        "-c",
        NOBODY,
        "caption",
        "--apart",
        "off",
        "photos",
        "--captioner",
        "tiny",
        "--no-cache",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (folder / "closed").chmod(0o755)

    assert done.returncode == 1, done.stderr
    out, err = (text.split("--\n")[1].splitlines() for text in (done.stdout, done.stderr))
    assert [line.partition(": ")[0] for line in out] == ["photos/first.png", "photos/seen.png"]
    assert err[::2] == [
        "error: photos/closed may not be read: permission denied",
        "error: photos/secret.png may not be read: permission denied",
    ]
    assert err[1::2] == ["  hint: change its permissions"] * 2


def test_a_telephones_heic_is_not_passed_over_in_silence(
    tellapart: Callable[..., Outcome], tiny_captioner: Path, scenes: Path, tmp_path: Path
) -> None:
    shutil.copy(next((scenes / "images").iterdir()), tmp_path / "good.png")
    (tmp_path / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + b"\0" * 100)
    outcome = tellapart("caption", "--apart", "off", tmp_path, "--captioner", tiny_captioner)
    assert outcome.code == 1
    assert len(outcome.out.splitlines()) == 1
    assert "IMG_1.HEIC" in outcome.err
    assert "convert it to JPEG" in outcome.err
