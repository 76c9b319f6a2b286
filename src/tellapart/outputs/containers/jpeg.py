"""JPEG: Exif and the packet (XMP specification part 3, 1.1.3) are segments before the compressed picture."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tellapart.outputs.containers.container import Container
from tellapart.outputs.exif import bare
from tellapart.outputs.refusal import Refused

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


@dataclass(frozen=True, slots=True)
class _Change:
    """Bytes that take the place of `data[start:end]`."""

    start: int
    end: int
    instead: bytes

    @property
    def longer(self) -> int:
        """How many bytes the file grows by it."""
        return len(self.instead) - (self.end - self.start)


def parse_jpeg(data: bytes) -> Container:
    """The parts of a JPEG file; everything from the scan on is one piece."""
    segments = list(_segments(data))
    packets = [segment for segment in segments if _is(segment, _APP1, _XMP)]
    if len(packets) > 1 or any(_is(segment, _APP1, _EXTENDED) for segment in segments):
        raise Refused("its XMP is spread over several segments (extended XMP)")
    old_packet = packets[0].payload.removeprefix(_XMP) if packets else None
    exifs = [segment for segment in segments if _is_exif(segment)]
    old_exif = _block(exifs)
    index = next((segment for segment in segments if _is(segment, _APP2, _MPF)), None)

    def build(packet: bytes, exif: bytes | None) -> bytes:
        changes = []
        if exif is not None and exif != old_exif:
            changes.append(_change(exifs, _place(segments, behind_exif=False), _EXIF + exif))
        if packet != old_packet:
            changes.append(_change(packets, _place(segments, behind_exif=True), _XMP + packet))
        if index is not None:
            changes.append(_listed(index, changes))
        return _changed(data, changes)

    # The list of pictures tells the length of the first, which changes with the description.
    ours = packets if old_exif is None else [*packets, *exifs]
    rest = [data[segment.start : segment.end] for segment in segments if segment not in (*ours, index)]
    bare_exif = [] if old_exif is None else [bare(old_exif)]
    return Container(old_packet, old_exif, (*bare_exif, *rest, data[segments[-1].end :]), build)


def _block(exifs: list[_Segment]) -> bytes | None:
    """The Exif block, empty where there is none; of several nobody knows which one counts."""
    if len(exifs) > 1:
        return None
    return exifs[0].payload.removeprefix(_EXIF) if exifs else b""


def _change(old: list[_Segment], place: int, payload: bytes) -> _Change:
    """A segment in place of an old one, if there is one."""
    if len(payload) > _LONGEST:
        raise Refused(f"its metadata would have {len(payload)} bytes, and a segment holds {_LONGEST}")
    start, end = (old[0].start, old[0].end) if old else (place, place)
    return _Change(start, end, struct.pack(">BBH", 0xFF, _APP1, len(payload) + 2) + payload)


def _changed(data: bytes, changes: list[_Change]) -> bytes:
    """The file with all changes; where two have the same place, the first one comes first."""
    pieces, at = [], 0
    for change in sorted(changes, key=lambda change: change.start):
        pieces += [data[at : change.start], change.instead]
        at = change.end
    return b"".join([*pieces, data[at:]])


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


def _is_exif(segment: _Segment) -> bool:
    # Not always two zeros follow: such a block is none that we know, but no second one may stand beside it.
    return _is(segment, _APP1, b"Exif")


def _place(segments: list[_Segment], *, behind_exif: bool) -> int:
    """Where a new segment goes: behind JFIF and perhaps Exif, which want to be first, and before all else."""
    return next(
        segment.start
        for segment in segments
        if segment.marker != _APP0 and not (behind_exif and _is_exif(segment))
    )


def _listed(index: _Segment, changes: list[_Change]) -> _Change:
    """The list of pictures after the changes."""
    if any(change.start > index.start and change.longer for change in changes):
        raise Refused("its XMP or Exif stands after the list of pictures in it, which would be wrong then")
    listed = _with_longer_first(index.payload, sum(change.longer for change in changes))
    return _Change(index.end - len(index.payload), index.end, listed)


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
