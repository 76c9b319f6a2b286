"""Photographs that may be shown to anybody: those that come with GCompris, out of its resource files.

    apt-get download gcompris-qt-data && dpkg-deb -x gcompris-qt-data_*.deb gcompris
    python -m benchmarks.free_photographs gcompris/usr/share/gcompris-qt/rcc animals/

Writes the animals of "erase", "explore_farm_animals" and "explore_world_animals" as JPEG files.
Authors and licences stand in the package's own copyright file.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

ACTIVITIES = ("erase", "explore_farm_animals", "explore_world_animals")
BEGINNING, KIND = b"RIFF", b"WEBP"  # of a WebP file; the length of what follows stands between them
LEAST = 12_000  # bytes: what is smaller is a button or an icon
SIDE = 640


def pictures_in(data: bytes) -> Iterator[bytes]:
    """The WebP files in a resource file of Qt, which holds them as they are."""
    place = data.find(BEGINNING)
    while place >= 0:
        length = int.from_bytes(data[place + 4 : place + 8], "little")
        if data[place + 8 : place + 12] == KIND and length > LEAST:
            yield data[place : place + 8 + length]
        place = data.find(BEGINNING, place + 1)


def main() -> None:
    """Write them all, each once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("resources", type=Path, help="the folder of .rcc files")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for activity in ACTIVITIES:
        found = dict.fromkeys(pictures_in((arguments.resources / f"{activity}.rcc").read_bytes()))
        for number, data in enumerate(found):
            picture = Image.open(io.BytesIO(data)).convert("RGB")
            picture.thumbnail((SIDE, SIDE))
            picture.save(arguments.out / f"{activity}-{number:02}.jpg", quality=92)


if __name__ == "__main__":
    main()
