"""PNG: the packet is a chunk of international text (XMP specification part 3, 1.1.5)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tellapart.outputs.containers.container import Container
from tellapart.outputs.refusal import Refused

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_KEYWORD = b"XML:com.adobe.xmp\0"
_PLAIN = b"\0\0\0\0"  # not packed, by no method; no language, no translated keyword
_LONGEST = 1 << 24  # bytes of a packet that was packed


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk whose bytes are `data[start:end]`."""

    kind: bytes
    start: int
    end: int
    content: bytes


def parse_png(data: bytes) -> Container:
    """The parts of a PNG file, an animated one too."""
    chunks = list(_chunks(data))
    ours = [chunk for chunk in chunks if chunk.kind == b"iTXt" and chunk.content.startswith(_KEYWORD)]
    if len(ours) > 1:
        raise Refused("it has several XMP packets")
    # Right after the header: many programs read no further than to the picture.
    at, after = (ours[0].start, ours[0].end) if ours else (chunks[0].end, chunks[0].end)

    def build(packet: bytes, _exif: bytes | None) -> bytes:
        return data[:at] + _chunk(_KEYWORD + _PLAIN + packet) + data[after:]

    packet = _packet(data, ours[0]) if ours else None
    return Container(packet, None, (data[:at], data[after:]), build)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """All chunks up to the one that ends the picture."""
    at = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        if at + 12 > len(data):
            raise Refused("it is damaged: it ends in the middle")
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data):
            raise Refused("it is damaged: it ends in the middle")
        yield _Chunk(kind, at, end, data[at + 8 : end - 4])
        at = end


def _chunk(content: bytes) -> bytes:
    body = b"iTXt" + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def _packet(data: bytes, chunk: _Chunk) -> bytes:
    if struct.unpack_from(">I", data, chunk.end - 4)[0] != zlib.crc32(chunk.kind + chunk.content):
        raise Refused("its XMP packet is damaged: the checksum is wrong")
    flags, rest = chunk.content[len(_KEYWORD) :][:2], chunk.content[len(_KEYWORD) + 2 :]
    pieces = rest.split(b"\0", 2)  # language, translated keyword, text
    if len(flags) < 2 or len(pieces) < 3:
        raise Refused("its XMP packet is damaged")
    if not flags[0]:
        return pieces[2]
    unpacking = zlib.decompressobj()
    try:
        packet = unpacking.decompress(pieces[2], _LONGEST)
    except zlib.error as error:
        raise Refused("its XMP packet is damaged") from error
    if not unpacking.eof:
        raise Refused("its XMP packet is damaged or too long")
    return packet
