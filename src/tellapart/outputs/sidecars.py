"""Captions in .txt files beside their pictures: `photo.jpg` has `photo.txt`.

Trainers of image generators read these: some the first line alone, others a line at random, and tags between
commas. So a file of one line stays one: a new caption joins it after ", ". Where there are several lines,
each is a caption of its own, and the new one is another line. A trigger is the word by which such a trainer
calls what it learns: it stands before every line of a file that is written, however the line came about.

Doing the same again changes nothing: a caption that stands at its place already is not added. So after a
kill all captions known so far may be written again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tellapart.data.picture_files import PICTURE_SUFFIXES
from tellapart.errors import TellapartError
from tellapart.outputs.writing import in_one_line, replacement, unwritable
from tellapart.storage import is_abandoned

Mode = Literal["skip", "overwrite", "append", "prepend"]
MODES: tuple[Mode, ...] = ("skip", "overwrite", "append", "prepend")
SEPARATOR = ", "  # between a caption and what was there; commas are what stands between tags

_ENDING = ".txt"


def with_trigger(caption: str, trigger: str) -> str:
    """The caption after the trigger, unless it begins with that already."""
    trigger = trigger.strip(" ,")
    if not trigger or caption == trigger or caption.startswith((f"{trigger}{SEPARATOR}", f"{trigger} ")):
        return caption
    return f"{trigger}{SEPARATOR}{caption}" if caption else trigger


def sidecar_lines(
    lines: Sequence[str], caption: str, mode: Mode, *, trigger: str = "", earlier: Sequence[str] = ()
) -> list[str]:
    """The captions of a file, given those that are there.

    Args:
        lines: what is there, one caption a line.
        caption: the new one.
        mode: whether what is there stays alone, goes, or stays before or after the new caption. "append"
            puts the new one last, "prepend" first.
        trigger: a word or phrase before every line, at the very front.
        earlier: captions that this picture had from us: one that still stands at its place is replaced. This
            is so with "skip" too, if there is nothing else in the file.
    """
    trigger = trigger.strip(" ,")
    own = [line for line in lines if line != trigger]
    if mode == "skip" and lines and not (len(own) == 1 and _is_one_of(own[0], earlier, trigger)):
        return list(lines)
    if mode in ("append", "prepend") and (own or caption):
        found = _added(own, caption, earlier, trigger, last=mode == "append")
    else:
        found = [caption]
    return [with_trigger(line, trigger) for line in found]


def _added(lines: list[str], caption: str, earlier: Sequence[str], trigger: str, *, last: bool) -> list[str]:
    """The lines with the caption at the end or at the beginning, in the place of one that it follows."""
    if not caption:
        return lines
    for known in (caption, *earlier):
        replaced = _in_place_of(known, lines, caption, trigger, last=last)
        if replaced is not None:
            return replaced
    if len(lines) != 1:
        return [*lines, caption] if last else [caption, *lines]
    if last:
        return [f"{with_trigger(lines[0], trigger)}{SEPARATOR}{caption}"]
    kept = lines[0].removeprefix(f"{trigger}{SEPARATOR}") if trigger else lines[0]
    return [f"{with_trigger(caption, trigger)}{SEPARATOR}{kept}"]


def _in_place_of(known: str, lines: list[str], caption: str, trigger: str, *, last: bool) -> list[str] | None:
    if not lines or not known:
        return None
    line, others = (lines[-1], lines[:-1]) if last else (lines[0], lines[1:])
    if _is_one_of(line, [known], trigger):
        return [*others, caption] if last else [caption, *others]
    if others:
        return None
    if last and line.endswith(f"{SEPARATOR}{known}"):
        return [line.removesuffix(known) + caption]
    for front in () if last else (with_trigger(known, trigger), known):
        if line.startswith(f"{front}{SEPARATOR}"):
            return [with_trigger(caption, trigger) + line.removeprefix(front)]
    return None


def _is_one_of(line: str, captions: Sequence[str], trigger: str) -> bool:
    """Whether a line is one of these captions, with the trigger before it or without."""
    return any(line in (caption, with_trigger(caption, trigger)) for caption in captions)


class Sidecars:
    """Writes captions beside pictures.

    A file outlives the end of the process at any moment; after a loss of power it may be empty, and an empty
    one counts as none.
    """

    def __init__(self, mode: Mode, *, trigger: str = "") -> None:
        self.mode = mode
        self.trigger = trigger
        self._shared: dict[Path, dict[str, list[str]]] = {}  # by folder: pictures that share a name

    def write(self, picture: Path, caption: str, *, earlier: Sequence[str] = ()) -> bool:
        """Write a picture's caption; say whether the file is another now.

        What cannot be read or written is an error, and stays as it is.
        """
        path = self._path(picture)
        caption = in_one_line(caption, picture)
        before = None if self.mode == "overwrite" else _read(path)
        lines = [line.strip() for line in (before or "").split("\n") if line.strip()]
        earlier = [in_one_line(text, picture) for text in earlier]
        wanted = sidecar_lines(lines, caption, self.mode, trigger=self.trigger, earlier=earlier)
        if before is not None and wanted == lines and lines:
            return False
        data = "".join(f"{line}\n" for line in wanted).encode("utf-8")
        if self.mode == "overwrite" and _holds(path, data):
            return False
        if not picture.parent.is_dir():
            raise TellapartError(f"{picture.parent} is gone", hint="restore the folder, and run it again")
        with replacement(path, lasting=False) as temporary:
            temporary.write_bytes(data)
        return True

    def _path(self, picture: Path) -> Path:
        path = picture.with_suffix(_ENDING)
        if picture.suffix.lower() == _ENDING:
            raise TellapartError(
                f"{picture} is called like a file of captions: there is no name left for its own",
                hint="rename the picture, so that it ends as pictures do",
            )
        others = [name for name in self._namesakes(picture) if name != picture.name]
        if others:
            raise TellapartError(
                f"{picture} and {' and '.join(others)} would share {path.name}: nothing is written there",
                hint="rename one of them, or write the captions to a JSONL file",
            )
        return path

    def _namesakes(self, picture: Path) -> list[str]:
        """The pictures in its folder that are called as it is but for their endings."""
        if picture.suffix.lower() not in PICTURE_SUFFIXES:
            return [name for name in _pictures_in(picture.parent) if Path(name).stem == picture.stem]
        if picture.parent not in self._shared:
            by_stem: dict[str, list[str]] = {}
            for name in _pictures_in(picture.parent):
                by_stem.setdefault(Path(name).stem, []).append(name)
            self._shared[picture.parent] = {
                stem: sorted(names) for stem, names in by_stem.items() if len(names) > 1
            }
        return self._shared[picture.parent].get(picture.stem, [])


def has_sidecar(picture: Path) -> bool:
    """Whether there is a file of captions beside a picture, with anything in it."""
    try:
        return picture.with_suffix(_ENDING).stat().st_size > 0
    except OSError:
        return False


def _pictures_in(folder: Path) -> Iterator[str]:
    """Names of the pictures in a folder; what killed writers have left there is removed on the way."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_abandoned(entry):
                    (folder / entry.name).unlink(missing_ok=True)
                elif not entry.name.startswith(".") and Path(entry.name).suffix.lower() in PICTURE_SUFFIXES:
                    yield entry.name
    except OSError as error:
        raise unwritable(folder, error) from error


def _read(path: Path) -> str | None:
    """The text of a file, without a byte-order mark; None if there is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TellapartError(f"{path} is not a file, and stays as it is", hint="rename it")
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _no_text(path) from error
    except OSError as error:
        reason = error.strerror or error
        raise TellapartError(
            f"{path} cannot be read, and stays as it is: {reason}", hint="change its permissions"
        ) from error
    if "\0" in text:  # UTF-16 of plain English is UTF-8, but for the zeros between the letters
        raise _no_text(path)
    return text


def _no_text(path: Path) -> TellapartError:
    return TellapartError(
        f"{path} is not UTF-8 text, and stays as it is",
        hint="save it as UTF-8, or replace such files with --sidecar overwrite",
    )


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() == data
    except OSError:  # writing it tells the user
        return False
