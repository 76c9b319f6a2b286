"""The description in an Exif block (ImageDescription, tag 0x010E): read, replaced or added.

A block is a small TIFF file: a header that says where the first directory is, and directories whose entries
say how far from the header their values are. Makers' notes and others point by such distances as well, in
ways that nobody knows: so no byte is moved. The first directory is written anew behind all that is there,
with the description behind it, and the header points to that one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tellapart.outputs.refusal import Refused

_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_HEADER = 8  # byte order, place of the first directory
_ENTRY = 12  # tag, type, count, and the value itself or its place
_INLINE = 4  # bytes of a value that stand in the entry itself
_DESCRIPTION, _ASCII = 0x010E, 2
# Of one value of each type, in bytes.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 129: 1}
_LONGEST = 0xFFFF - 2 - len(b"Exif\0\0")  # a block has to fit into one segment of a JPEG file


@dataclass(frozen=True, slots=True)
class _Directory:
    """The first directory of a block.

    Attributes:
        order: of the bytes in numbers, as `struct` names it.
        start: where it begins.
        others: its entries, but for the description.
        ours: the entries of the description: one or none, if all is well.
        following: the place of the next directory, in four bytes, or fewer where the block ends too early.
    """

    order: str
    start: int
    others: list[bytes]
    ours: list[bytes]
    following: bytes

    @property
    def next(self) -> int:
        """The place of the next directory, 0 for none."""
        return _number(self.order, self.following)

    @property
    def reach(self) -> int:
        """Where the last of what its entries point to ends."""
        ends = [0]
        for entry in self.others:
            kind, count, place = struct.unpack_from(self.order + "HII", entry, 2)
            size = _SIZES.get(kind, 0) * count
            ends.append(place + size if size > _INLINE else 0)
        return max(ends)


def description(block: bytes) -> str | None:
    """The description that programs may find in a block, also in a damaged one; blanks are none."""
    return next(iter(_told(block)), None)


def with_description(block: bytes, caption: str) -> bytes:
    """The block with this description; a new one where there is none (b"")."""
    if _told(block) == [caption]:
        return block
    text = caption.encode() + b"\0"
    if block:
        found = _sound(block)
        changed = _joined(block[: _end_of_base(block, found)], found, text)
    else:
        changed = _joined(b"MM\0*" + bytes(4), _Directory(">", _HEADER, [], [], bytes(4)), text)
    if len(changed) > _LONGEST:
        raise Refused(f"its Exif would have {len(changed)} bytes, and a segment holds {_LONGEST}")
    return changed


def bare(block: bytes) -> bytes:
    """The block as it would be without a description: the same before and after it is described.

    One that holds nothing else is the same as none (b""), and a damaged one, which is never described, is as
    it is.
    """
    try:
        found = _sound(block)
    except Refused:
        return block
    end = _end_of_base(block, found)
    if end == _HEADER and not found.others and not found.next:
        return b""
    return _joined(block[:end], found, None)


def _told(block: bytes) -> list[str]:
    """All descriptions in a block that are not blank."""
    found = _directory(block)
    texts = [_value(block, found.order, entry) for entry in found.ours] if found else []
    # A value ends with a zero, and what is behind it, if anything, is not shown.
    told = [text.split(b"\0", 1)[0].decode("utf-8", "replace") for text in texts]
    return [text for text in told if text.strip()]


def _directory(block: bytes) -> _Directory | None:
    """The first directory as far as it goes, if there is one."""
    order = _ORDERS.get(block[:4])
    if order is None:
        return None
    start = _number(order, block[4:_HEADER])
    if not _HEADER <= start <= len(block) - 2:
        return None
    end = start + 2 + _ENTRY * _number(order, block[start : start + 2])
    whole = range(start + 2, min(end, len(block) - _ENTRY + 1), _ENTRY)
    entries = [block[place : place + _ENTRY] for place in whole]
    tag = struct.pack(order + "H", _DESCRIPTION)
    ours = [entry for entry in entries if entry.startswith(tag)]
    others = [entry for entry in entries if not entry.startswith(tag)]
    return _Directory(order, start, others, ours, block[end : end + 4])


def _sound(block: bytes) -> _Directory:
    """The first directory of a block that can be written anew without a risk."""
    found = _directory(block)
    if found is None or len(found.following) < 4:
        raise Refused("its Exif is damaged: its first directory is missing or cut off")
    if found.reach > len(block):
        raise Refused("its Exif is damaged: values are missing")
    if found.next and (found.next == found.start or not _HEADER <= found.next <= len(block) - 2):
        raise Refused("its Exif is damaged: there is no directory where one should be")
    return found


def _end_of_base(block: bytes, found: _Directory) -> int:
    """Where that ends in a block which has to stay.

    It is all of the block, unless the first directory is last, as we write it, and can be written over: else
    the block would grow with every description.
    """
    text = _value(block, found.order, found.ours[0]) if found.ours else None
    is_last = max(found.reach, found.next) <= found.start
    return found.start if is_last and _joined(block[: found.start], found, text) == block else len(block)


def _joined(base: bytes, found: _Directory, text: bytes | None) -> bytes:
    """A block that ends with the first directory and the description, if there is one."""
    order, entries = found.order, list(found.others)
    base += bytes(len(base) % 2)  # directories and values stand at even places
    behind = b""
    if text is not None:
        end = len(base) + 2 + _ENTRY * (len(entries) + 1) + len(found.following)
        value = struct.pack(order + "I", end) if len(text) > _INLINE else text.ljust(_INLINE, b"\0")
        entries.append(struct.pack(order + "HHI", _DESCRIPTION, _ASCII, len(text)) + value)
        behind = text + bytes(len(text) % 2) if len(text) > _INLINE else b""
    entries.sort(key=lambda entry: _number(order, entry[:2]))
    header = base[:4] + struct.pack(order + "I", len(base))
    count = struct.pack(order + "H", len(entries))
    return header + base[_HEADER:] + count + b"".join(entries) + found.following + behind


def _value(block: bytes, order: str, entry: bytes) -> bytes:
    """The bytes of a text, as far as the block goes."""
    count, place = struct.unpack_from(order + "II", entry, 4)
    return block[place : place + count] if count > _INLINE else entry[8 : 8 + count]


def _number(order: str, data: bytes) -> int:
    return int.from_bytes(data, "little" if order == "<" else "big")
