"""A folder of pictures, each with a .txt file of the same name beside it: one caption a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tellapart.data.examples import Example, Problem, Reading
from tellapart.data.picture_files import find_pictures
from tellapart.data.readers.files import is_writable, read_lines
from tellapart.data.readers.records import Findings
from tellapart.errors import TellapartError


def read_folder(path: Path) -> Reading:
    """Pictures of a folder and of those inside it, with the captions in their sidecars.

    The image id is the path within the folder without its ending, with forward slashes. Hidden files and
    folders are passed over. A picture without sidecar and a sidecar without picture are problems.
    """
    findings = Findings()
    sidecars = {sidecar.with_suffix(""): sidecar for sidecar in _sidecars(path)}
    pictures: dict[Path, Path] = {}
    for picture in _pictures(path, findings):
        other = pictures.setdefault(picture.with_suffix(""), picture)
        if other != picture:
            what = f"shares its name, and so its captions, with {other.name}"
            findings.report(str(picture), what, "rename one of the two")
    if pictures.keys().isdisjoint(sidecars):
        raise TellapartError(
            f"no picture in {path} has a .txt file of its name beside it",
            hint="if the captions are in one file, name that file and give the folder as the images' folder",
        )
    for bare, picture in pictures.items():
        _read_pair(picture, sidecars.pop(bare, None), path, findings)
    for sidecar in sidecars.values():
        findings.report(
            f"{sidecar}:1", "there is no picture of this name", "add the picture or drop the file"
        )
    return findings.reading()


def _pictures(folder: Path, findings: Findings) -> Iterator[Path]:
    """The pictures; what cannot be searched is a problem if there are others, else an error."""
    errors: list[TellapartError] = []
    found = 0
    for picture in find_pictures([folder]):
        if isinstance(picture, TellapartError):
            errors.append(picture)
        elif is_writable(str(picture)):
            found += 1
            yield picture
        else:
            findings.report(str(folder), f"the name {picture.name!a} is not UTF-8", "rename the picture")
    if errors and not found:
        raise errors[0]
    findings.problems.extend(Problem(str(folder), error.problem, error.hint) for error in errors)


def _sidecars(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise TellapartError(f"{folder} is not a folder", hint="name a folder of pictures with .txt files")
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() == ".txt"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _read_pair(picture: Path, sidecar: Path | None, folder: Path, findings: Findings) -> None:
    if sidecar is None:
        hint = f"write its captions to {picture.with_suffix('.txt').name}"
        findings.report(str(picture), "there is no .txt file of this name beside the picture", hint)
        return
    try:
        lines = read_lines(sidecar)
    except TellapartError as error:
        findings.report(f"{sidecar}:1", error.problem, error.hint)
        return
    captions = tuple(text.strip() for _, text in lines.good())
    findings.problems.extend(lines.problems())
    if captions:
        image_id = picture.relative_to(folder).with_suffix("").as_posix()
        findings.examples.append(Example(image_id, picture, captions, "", f"{sidecar}:1"))
    elif not lines.broken:
        findings.report(f"{sidecar}:1", "the file holds no caption", "write one caption a line")
