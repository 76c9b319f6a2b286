"""Descriptions in the pictures' own files, where photo programs show them.

That is dc:description of XMP, and in JPEG files ImageDescription of Exif as well: many programs prefer that
one, and would show what the camera wrote there. The compressed picture is not touched, nor anything else in
the file: profile, thumbnails, makers' notes, all else of XMP and Exif.
The file is replaced in one step by one with the same permissions, owner and extended attributes, where the
system lets us. It keeps its modification time: of many photographs that is the only date. Other names of the
same file (hard links) keep the old one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from tellapart.data.picture_files import read_bytes
from tellapart.errors import TellapartError
from tellapart.outputs import exif
from tellapart.outputs.containers import jpeg, png, webp
from tellapart.outputs.containers.container import Container
from tellapart.outputs.refusal import Refused
from tellapart.outputs.writing import in_one_line, replaceable, replacement
from tellapart.outputs.xmp import description, with_description

FORMATS = ("JPEG", "PNG", "WebP")


def write_description(picture: Path, caption: str) -> bool:
    """Put a caption into a picture's file; say whether the file is another now.

    What cannot be changed without a risk is an error, and stays as it is.
    """
    caption = in_one_line(caption, picture)
    target, status = replaceable(picture)
    data = read_bytes(target)
    try:
        container = _parse(data, picture)
        packet, block = _described(container, caption)
        if (packet, block) == (container.packet, container.exif):
            return False
        changed = _changed(container, packet, block, picture)
    except Refused as reason:
        raise _refusal(picture, reason) from reason
    with replacement(target) as temporary:
        temporary.write_bytes(changed)
        if status is not None:
            _dress(temporary, target, status)
        if status is None or not _is_unchanged(target, status):
            raise TellapartError(
                f"{picture} was changed by another program meanwhile", hint="run the same command again"
            )
    return True


def read_description(picture: Path) -> str | None:
    """The description in a picture's file, if there is one."""
    try:
        packet = _parse(read_bytes(picture), picture).packet
        return None if packet is None else description(packet)
    except Refused as reason:
        raise _refusal(picture, reason) from reason


def digest_without_description(data: bytes) -> str:
    """A fingerprint of a picture's file that does not change when the picture is described.

    Any other change of the file changes it. Of files that cannot be described it is that of all their bytes.
    """
    try:
        container = _container(data)
        pieces = (data,) if container is None else container.rest
    except Refused:
        pieces = (data,)
    total = hashlib.sha256()
    for piece in pieces:
        total.update(len(piece).to_bytes(8, "little"))
        total.update(piece)
    return total.hexdigest()


def _described(container: Container, caption: str) -> tuple[bytes, bytes | None]:
    """The XMP packet and the Exif block that tell a caption; what tells it already stays as it is."""
    packet, block = container.packet, container.exif
    if packet is None or description(packet) != caption:
        packet = with_description(packet, caption)
    if block is not None:
        block = _described_exif(block, caption)
    return packet, block


def _described_exif(block: bytes, caption: str) -> bytes:
    """The Exif block with a caption; one that cannot be changed stays, unless it tells something else."""
    try:
        return exif.with_description(block, caption)
    except Refused as reason:
        if exif.description(block) is None:
            return block
        raise Refused(f"another description in it cannot be replaced: {reason}") from reason


def _changed(container: Container, packet: bytes, block: bytes | None, picture: Path) -> bytes:
    changed = container.build(packet, block)
    # A last look before somebody's photograph is replaced.
    again = _parse(changed, picture)
    if (again.packet, again.exif, again.rest) != (packet, block, container.rest):
        raise Refused("it is put together in a way that we do not know")
    return changed


def _parse(data: bytes, picture: Path) -> Container:
    container = _container(data)
    if container is None:
        raise TellapartError(
            f"{picture} is of a format into which no description is written",
            hint=f"that can be done with {', '.join(FORMATS)}; write .txt or JSONL files instead",
        )
    return container


def _container(data: bytes) -> Container | None:
    if data.startswith(jpeg.SIGNATURE):
        return jpeg.parse_jpeg(data)
    if data.startswith(png.SIGNATURE):
        return png.parse_png(data)
    return webp.parse_webp(data) if webp.is_webp(data) else None


def _refusal(picture: Path, reason: Refused) -> TellapartError:
    return TellapartError(
        f"{picture} cannot be described in its own file, which stays as it is: {reason}",
        hint="write .txt or JSONL files instead",
    )


def _dress(temporary: Path, target: Path, status: os.stat_result) -> None:
    """Give the new file what the old one has besides its bytes."""
    with suppress(OSError):  # only root may give files away
        os.chown(temporary, status.st_uid, status.st_gid)
    shutil.copystat(target, temporary)


def _is_unchanged(target: Path, status: os.stat_result) -> bool:
    now = target.stat()
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (status.st_ino, status.st_size, status.st_mtime_ns)
