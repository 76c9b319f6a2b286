"""JPEG: the packet is a segment before the compressed picture (XMP specification part 3, 1.1.3)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tellapart.outputs.containers.container import Container
from tellapart.outputs.xmp import Refused

SIGNATURE = b"\xff\xd8\xff"

_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_EXTENDED = b"http://ns.adobe.com/xmp/extension/\0"
_EXIF, _MPF = b"Exif\0\0", b"MPF\0"
_APP0, _APP1, _APP2, _SCAN = 0xE0, 0xE1, 0xE2, 0xDA
_LONGEST = 0xFFFF - 2  # bytes in a segment
_ENTRIES = 0xB002  # of MPF: the list of the pictures in the file
_ENTRY = 16


@dataclass(frozen=True, slots=True)
class _Segment:
    """A marker with what follows it; the bytes are `data[start:end]`."""

    marker: int
    start: int
    end: int
    payload: bytes


def parse_jpeg(data: bytes) -> Container:
    """The parts of a JPEG file; everything from the scan on is one piece."""
    segments = list(_segments(data))
    ours = [segment for segment in segments if _is(segment, _APP1, _XMP)]
    if len(ours) > 1 or any(_is(segment, _APP1, _EXTENDED) for segment in segments):
        raise Refused("its XMP is spread over several segments (extended XMP)")
    index = next((segment for segment in segments if _is(segment, _APP2, _MPF)), None)
    if ours and index is not None and index.start < ours[0].start:
        raise Refused("its XMP stands after the list of the pictures in it, which would be wrong then")
    at, after = (ours[0].start, ours[0].end) if ours else (place := _place(segments), place)

    def build(packet: bytes) -> bytes:
        length = len(_XMP) + len(packet)
        if length > _LONGEST:
            raise Refused(f"its XMP would have {length} bytes, and a segment holds {_LONGEST}")
        segment = struct.pack(">BBH", 0xFF, _APP1, length + 2) + _XMP + packet
        longer = len(segment) - (after - at)
        tail = data[after:]
        if index is not None:
            listed = _with_longer_first(index.payload, longer)
            begin = index.end - len(index.payload) - after
            tail = tail[:begin] + listed + tail[begin + len(listed) :]
        return data[:at] + segment + tail

    # The list of pictures tells the length of the first: it changes with the packet.
    rest = tuple(data[segment.start : segment.end] for segment in segments if segment not in (*ours, index))
    packet = ours[0].payload.removeprefix(_XMP) if ours else None
    return Container(packet, (*rest, data[segments[-1].end :]), build)


def _segments(data: bytes) -> Iterator[_Segment]:
    """The segments before the scan; the last one is the scan's own header."""
    at = 2
    marker = None
    while marker != _SCAN:
        start = at
        if data[at : at + 1] != b"\xff":
            raise Refused("it is damaged: a JPEG marker is missing")
        while data[at : at + 1] == b"\xff":  # any number of these may stand before a marker
            at += 1
        length = data[at + 1 : at + 3]
        end = at + 1 + (int.from_bytes(length, "big") if len(length) == 2 else 0)
        if end < at + 3 or end > len(data):
            raise Refused("it is damaged: it ends before its picture begins")
        marker = data[at]
        yield _Segment(marker, start, end, data[at + 3 : end])
        at = end


def _is(segment: _Segment, marker: int, name: bytes) -> bool:
    return segment.marker == marker and segment.payload.startswith(name)


def _place(segments: list[_Segment]) -> int:
    """Where a new packet goes: behind JFIF and Exif, which want to be first, and before all else."""
    for segment in segments:
        if segment.marker != _APP0 and not _is(segment, _APP1, _EXIF):
            return segment.start
    return segments[-1].start


def _with_longer_first(payload: bytes, longer: int) -> bytes:
    """The list of pictures with another length of the first; their distances from the list stay."""
    header = payload[len(_MPF) :]
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(header[:4])
    try:
        if order is None:
            raise Refused("the list of the pictures in it is damaged")
        (at,) = struct.unpack_from(order + "I", header, 4)
        (count,) = struct.unpack_from(order + "H", header, at)
        for number in range(count):
            tag, _, size, place = struct.unpack_from(order + "HHII", header, at + 2 + 12 * number)
            if tag == _ENTRIES and size >= _ENTRY:
                (length,) = struct.unpack_from(order + "I", header, place + 4)
                changed = bytearray(header)
                struct.pack_into(order + "I", changed, place + 4, length + longer if length else 0)
                return _MPF + bytes(changed)
    except struct.error as error:
        raise Refused("the list of the pictures in it is damaged") from error
    return payload
