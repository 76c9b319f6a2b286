"""What the formats have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Container:
    """A picture's file around what tells its description.

    Attributes:
        packet: the XMP packet, if there is one.
        exif: the Exif block, b"" where there is none yet; None where no description is written into it.
        rest: the pieces of the file that stay the same whatever the packet and the description in Exif, so
            that a picture can be known again after it was described.
        build: the whole file with another packet and another Exif block.
    """

    packet: bytes | None
    exif: bytes | None
    rest: tuple[bytes, ...]
    build: Callable[[bytes, bytes | None], bytes]
