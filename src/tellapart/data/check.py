"""Finding what is wrong with a captioned image set before it is trained on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tellapart.data.examples import Example, Problem, Reading
from tellapart.data.images import decode
from tellapart.data.picture_files import PICTURE_SUFFIXES, read_bytes
from tellapart.errors import TellapartError

# Enough to keep two cores busy while others wait for the disk.
_THREADS = 4


@dataclass(frozen=True, slots=True)
class Check:
    """What a captioned image set holds and what is wrong with it."""

    images: int  # those that have captions
    captions: int
    splits: Mapping[str, int]  # images by split; "" for those in none
    unmentioned: int  # pictures that stand beside those of the set without being in it: no problem
    problems: Sequence[Problem]

    def to_json(self) -> dict[str, object]:
        """The same in plain types."""
        return {
            "images": self.images,
            "captions": self.captions,
            "splits": dict(self.splits),
            "unmentioned": self.unmentioned,
            "problems": [asdict(problem) for problem in self.problems],
        }


def check_dataset(reading: Reading, *, progress: Callable[[int, int], None]) -> Check:
    """Open every picture, and add what is wrong with the pictures to what is wrong with the files.

    That is: pictures that are missing or unreadable, the same picture twice (under one name or two, perhaps
    in two splits), two pictures under one id.

    Args:
        reading: what a reader found.
        progress: called with how many pictures have been opened, and how many there are.
    """
    examples = reading.examples
    contents = _contents(examples, progress)
    return Check(
        images=len(examples),
        captions=sum(len(example.captions) for example in examples),
        splits=dict(Counter(example.split for example in examples)),
        unmentioned=_count_unmentioned(contents),
        problems=[*reading.problems, *_unreadable(examples, contents), *_repeated(examples, contents)],
    )


def _contents(
    examples: Sequence[Example], progress: Callable[[int, int], None]
) -> Mapping[Path, str | TellapartError]:
    """For each picture the hash of its bytes, or why it cannot be read."""
    paths = list(dict.fromkeys(example.path for example in examples))
    found: dict[Path, str | TellapartError] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for path, content in zip(paths, pool.map(_content, paths), strict=True):
            found[path] = content
            progress(len(found), len(paths))
    return found


def _content(path: Path) -> str | TellapartError:
    try:
        data = read_bytes(path)
        decode(data, name=str(path), at_least=1)
    except TellapartError as error:
        return error
    return hashlib.sha256(data).hexdigest()


def _unreadable(
    examples: Iterable[Example], contents: Mapping[Path, str | TellapartError]
) -> Iterator[Problem]:
    for example in examples:
        content = contents[example.path]
        if isinstance(content, TellapartError):
            yield Problem(example.where, content.problem, content.hint)


def _repeated(
    examples: Iterable[Example], contents: Mapping[Path, str | TellapartError]
) -> Iterator[Problem]:
    by_content: dict[str | Path, Example] = {}
    by_id: dict[str, Example] = {}
    for example in examples:
        content = contents[example.path]
        first = by_content.setdefault(content if isinstance(content, str) else example.path, example)
        namesake = by_id.setdefault(example.image_id, example)
        if first is not example:
            yield Problem(example.where, _repetition(example, first), "keep one of the two")
        elif namesake is not example:
            what = f"the id {example.image_id!r} is also that of {namesake.path} in {namesake.where}"
            yield Problem(example.where, what, "give each image an id of its own")


def _repetition(example: Example, first: Example) -> str:
    splits = ""
    if example.split != first.split:
        splits = f", and stands in split {example.split!r}, the other in {first.split!r}"
    if example.path == first.path:
        return f"{example.path} is listed already in {first.where}{splits}"
    return f"{example.path} is the same picture as {first.path} in {first.where}{splits}"


def _count_unmentioned(mentioned: Iterable[Path]) -> int:
    names: dict[Path, set[str]] = {}
    for path in mentioned:
        names.setdefault(path.parent, set()).add(path.name)
    return sum(len(_picture_names(folder) - known) for folder, known in names.items())


def _picture_names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir() if path.suffix.lower() in PICTURE_SUFFIXES}
    except OSError:  # each picture in it is a problem already
        return set()
