"""What all readers share: judging names, captions and splits, and gathering what is good and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tellapart.data.examples import SPLITS, Example, Problem, Reading
from tellapart.data.readers.files import is_writable

_OTHER_NAMES = {"restval": "train", "training": "train", "dev": "val", "valid": "val", "validation": "val"}


@dataclass(frozen=True, slots=True)
class Findings:
    """Examples and problems, as a reader meets them."""

    examples: list[Example] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def report(self, where: str, what: str, hint: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(where, what, hint))

    def reading(self) -> Reading:
        """All that was found."""
        return Reading(self.examples, self.problems)

    def name(self, value: object, where: str, label: str) -> str | None:
        """The name of a picture, or nothing and a problem."""
        if isinstance(value, str) and value and "\0" not in value and is_writable(value):
            return value
        self.report(where, f"{label} is not the name of a picture", "write its file name there")
        return None

    def identifier(self, value: object, where: str, label: str) -> str | None:
        """An image id as a string, or nothing and a problem."""
        if type(value) is int or (isinstance(value, str) and value and is_writable(value)):
            return str(value)
        self.report(where, f"{label} is neither a whole number nor a string", "write an id, or leave it out")
        return None

    def split(self, value: object, where: str, label: str) -> str | None:
        """One of the splits or "", or nothing and a problem."""
        spelling = value.strip().lower() if isinstance(value, str) else value
        if spelling in (*SPLITS, "", None):
            return str(spelling or "")
        if isinstance(spelling, str) and spelling in _OTHER_NAMES:
            return _OTHER_NAMES[spelling]
        self.report(where, f"{label} is {value!r}, which is no split", f"write one of {', '.join(SPLITS)}")
        return None

    def captions(self, values: Sequence[object], where: str, label: str) -> tuple[str, ...]:
        """The captions that can be used, without space around them; a problem for each of the others."""
        found = [self.caption(value, where, f"{label}[{index}]") for index, value in enumerate(values)]
        if not found:
            self.report(where, f"{label} is empty: the image has no caption", "add a caption or drop it")
        return tuple(caption for caption in found if caption is not None)

    def caption(self, value: object, where: str, label: str) -> str | None:
        """One caption without space around it, or nothing and a problem."""
        if not isinstance(value, str):
            flaw = "is not a string"
        elif not (caption := value.strip()):
            flaw = "is an empty caption"
        elif not is_writable(caption):
            flaw = "holds half a character (a lone surrogate)"
        else:
            return caption
        self.report(where, f"{label} {flaw}", "write a caption there or drop it")
        return None


@dataclass(slots=True)
class Draft:
    """A picture whose captions are still being gathered."""

    image_id: str
    split: str
    where: str
    captions: list[str] = field(default_factory=list)
    listed: str = ""  # the line that said its split, where that is not the first row


@dataclass(frozen=True, slots=True)
class Rows:
    """Captions that come one a row, gathered by picture in the order in which they come."""

    findings: Findings
    drafts: dict[str, Draft] = field(default_factory=dict)

    def add(self, name: str, caption: str | None, where: str, *, image_id: str = "", split: str = "") -> None:
        """Take a row; a picture whose only rows have no usable caption is left out."""
        draft = self.drafts.get(name)
        if draft is None:
            draft = self.drafts[name] = Draft(image_id or stem(name), split, where)
        if draft.split != split:
            what = f"{name} is in split {split!r} here and in {draft.split!r} in {draft.where}"
            self.findings.report(where, what, "give all rows of an image one split")
        elif image_id and draft.image_id != image_id:
            what = f"{name} has the id {image_id!r} here and {draft.image_id!r} in {draft.where}"
            self.findings.report(where, what, "give all rows of an image one id")
        elif caption is not None:
            draft.captions.append(caption)

    def put_in_split(self, draft: Draft, split: str, where: str) -> None:
        """Say the split of a picture after its rows."""
        if draft.split in ("", split):
            draft.split, draft.listed = split, where
        else:
            what = f"{draft.image_id} is in split {split!r} here and in {draft.split!r} in {draft.listed}"
            self.findings.report(where, what, "keep it in one of the lists")

    def finish(self, locate: Callable[[str], Path]) -> Reading:
        """The pictures that have captions as examples, with all problems."""
        for name, draft in self.drafts.items():
            if draft.captions:
                captions = tuple(draft.captions)
                example = Example(draft.image_id, locate(name), captions, draft.split, draft.where)
                self.findings.examples.append(example)
        return self.findings.reading()


def stem(name: str) -> str:
    """A file name without its ending: the image id where a file gives no other."""
    head, _, tail = name.rpartition(".")
    return head if head and not head.endswith("/") and "/" not in tail else name


def locator(path: Path, images: Path | None) -> Callable[[str], Path]:
    """How the names in a caption file become paths.

    The pictures stand in the folder given, else in `images` beside the file, else beside the file. Names
    that begin with `images/` themselves are taken from the file's own folder.
    """
    beside = path.parent
    inside = beside / "images"
    if images is not None:
        return lambda name: images / name
    if not inside.is_dir():
        return lambda name: beside / name
    return lambda name: (beside if name.startswith("images/") else inside) / name
