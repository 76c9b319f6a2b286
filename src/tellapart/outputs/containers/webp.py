"""WebP: the packet is a chunk after the picture, and a bit in the header of the extended format says so.

A file of the simple format, which is only the picture, becomes an extended one; its picture stays as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tellapart.outputs.containers.container import Container
from tellapart.outputs.refusal import Refused

_HEADER = 12  # RIFF, size, WEBP
_HAS_XMP, _HAS_ALPHA = 0x04, 0x10


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk with its padding; `content` is without."""

    kind: bytes
    whole: bytes
    content: bytes


def is_webp(data: bytes) -> bool:
    """Whether a file says that it is WebP."""
    return data[:4] == b"RIFF" and data[8:_HEADER] == b"WEBP"


def parse_webp(data: bytes) -> Container:
    """The parts of a WebP file, an animated one too."""
    end = 8 + int.from_bytes(data[4:8], "little")
    if end > len(data):
        raise Refused("it is damaged: it ends in the middle")
    chunks = list(_chunks(data[:end]))
    if not chunks:
        raise Refused("it is damaged: there is no picture in it")
    ours = [chunk for chunk in chunks if chunk.kind == b"XMP "]
    if len(ours) > 1:
        raise Refused("it has several XMP packets")
    header, others = (chunks[0], chunks[1:]) if chunks[0].kind == b"VP8X" else (_header(chunks[0]), chunks)
    others = [chunk for chunk in others if chunk.kind != b"XMP "]
    if len(header.content) < 10:
        raise Refused("it is damaged: its header is too short")
    # Its place is after the picture and Exif; chunks that nobody knows come last.
    known = (b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L", b"EXIF")
    place = max((number + 1 for number, chunk in enumerate(others) if chunk.kind in known), default=0)
    if ours:
        place = chunks.index(ours[0]) - (chunks[0].kind == b"VP8X")

    def build(packet: bytes, _exif: bytes | None) -> bytes:
        flagged = bytes([header.content[0] | _HAS_XMP]) + header.content[1:]
        pieces = [_chunk(b"VP8X", flagged), *(chunk.whole for chunk in others[:place])]
        pieces += [_chunk(b"XMP ", packet), *(chunk.whole for chunk in others[place:])]
        body = b"WEBP" + b"".join(pieces)
        return b"RIFF" + struct.pack("<I", len(body)) + body + data[end:]

    unflagged = bytes([header.content[0] & ~_HAS_XMP]) + header.content[1:]
    rest = (unflagged, *(chunk.whole for chunk in others), data[end:])
    return Container(ours[0].content if ours else None, None, rest, build)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    at = _HEADER
    while at < len(data):
        if at + 8 > len(data):
            raise Refused("it is damaged: it ends in the middle")
        kind, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length
        if end > len(data):
            raise Refused("it is damaged: it ends in the middle")
        padding = data[end : end + length % 2] or b"\0" * (length % 2)  # the last chunk may lack it
        yield _Chunk(kind, data[at:end] + padding, data[at + 8 : end])
        at = end + len(padding)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def _header(picture: _Chunk) -> _Chunk:
    """The header that a simple file lacks: how large its picture is and whether it can be seen through."""
    content = picture.content
    if picture.kind == b"VP8 " and content[3:6] == b"\x9d\x01\x2a" and len(content) >= 10:
        width, height = (value & 0x3FFF for value in struct.unpack_from("<HH", content, 6))
        flags = 0
    elif picture.kind == b"VP8L" and content[:1] == b"\x2f" and len(content) >= 5:
        (bits,) = struct.unpack_from("<I", content, 1)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        flags = _HAS_ALPHA if bits >> 28 & 1 else 0
    else:
        raise Refused("it is damaged: there is no picture in it")
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = bytes([flags, 0, 0, 0]) + size
    return _Chunk(b"VP8X", _chunk(b"VP8X", body), body)
