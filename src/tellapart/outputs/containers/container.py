"""What the formats have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Container:
    """A picture's file around its XMP packet.

    Attributes:
        packet: the packet, if there is one.
        rest: the pieces of the file that stay the same whatever the packet, so that a picture can be known
            again after it was described.
        build: the whole file with another packet.
    """

    packet: bytes | None
    rest: tuple[bytes, ...]
    build: Callable[[bytes], bytes]
