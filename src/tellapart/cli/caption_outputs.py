"""Where `tellapart caption` puts captions: the screen, files beside the pictures, a page, COCO results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tellapart.cli.console import complain, one_line, remark, say, stderr, tell
from tellapart.errors import TellapartError
from tellapart.outputs.sidecars import Sidecars

if TYPE_CHECKING:
    from tellapart.captioning import Captioned
    from tellapart.collection.telling import Told

MOST_NAMED = 20  # pictures that a remark names


@dataclass(slots=True)
class Outputs:
    """All places where a caption goes, and what went wrong on the way.

    A complaint about one place keeps a caption from none of the others.
    """

    model: str
    json: bool
    shown: int  # candidates of each picture on the screen
    trigger: str = ""
    sidecars: Sidecars | None = None
    describes: bool = False  # whether captions are written into the pictures' own files
    coco: Path | None = None
    settings: dict[str, object] = field(default_factory=dict)  # what all captions have in common
    failed: bool = False
    _pairs: list[tuple[str, str]] = field(default_factory=list)
    _pictures: list[tuple[Path, str]] = field(default_factory=list)

    def refuse(self, error: TellapartError) -> None:
        """Something cannot be captioned, or cannot be written."""
        self.failed = True
        complain(error)

    def write(self, captioned: Captioned, *, earlier: Sequence[str] = ()) -> None:
        """A caption, everywhere but on the page."""
        from tellapart.outputs.sidecars import with_trigger

        caption = with_trigger(captioned.caption, self.trigger)
        if self.json:
            say(captioned.to_json(model=self.model) | self.settings | {"caption": caption})
        else:
            tell(f"{one_line(str(captioned.image))}: {caption}")
            for candidate in captioned.candidates[1 : self.shown]:
                tell(f"    {candidate.caption}")
        if self.sidecars is not None:
            self._try(partial(self.sidecars.write, captioned.image, captioned.caption, earlier=earlier))
        if self.coco is not None:
            self._pairs.append((captioned.image_id, caption))
        if self.describes:
            self._pictures.append((captioned.image, caption))

    def finish(self, results: Iterator[Captioned], page: Path | None) -> None:
        """Take all captions, write the page, and what can only be written at the end."""
        if page is None:
            for _ in results:
                pass
        else:
            # Of all that came into question, as many as were asked for.
            some = (replace(result, candidates=result.candidates[: self.shown]) for result in results)
            write_page(page, some, model=self.model)
        if self.coco is not None and self._pairs:
            self._try(partial(_write_coco, self.coco, self._pairs))
        if self._pictures:
            from tellapart.outputs.metadata import write_description

            # Last of all: a file that changes while others are compared with it would be another picture.
            for picture, caption in self._pictures:
                self._try(partial(write_description, picture, caption))

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except TellapartError as error:
            self.refuse(error)


def write_page(page: Path, results: Iterator[Captioned], *, model: str) -> None:
    """Write the page; without a single caption there is none, and what stood there stays."""
    from tellapart.report.gallery import write_gallery

    first = next(results, None)
    if first is not None:
        write_gallery(page, chain([first], results), title="Captions", model=model)
        stderr.print(f"page: {page}")


def _write_coco(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    from tellapart.outputs.coco_results import write_coco_results

    write_coco_results(path, pairs)
    stderr.print(f"COCO results: {path}")


@dataclass(slots=True)
class Summary:
    """What is said at the end of a run over a collection."""

    captioned: int = 0
    kept: int = 0
    lost: list[str] = field(default_factory=list)  # found by no caption
    faded: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)

    def note(self, told: Told) -> None:
        """One picture's caption."""
        self.captioned += 1
        self.kept += told.is_kept
        name = told.captioned.image_id
        if not told.captioned.about["found"]:
            self.lost.append(name)
        if told.has_faded:
            self.faded.append(name)
        if told.captioned.about.get("doubles"):
            self.doubles.append(name)

    def tell(self) -> None:
        """In a few lines on stderr."""
        if self.kept:
            remark(f"{self.kept} of {self.captioned} captions were kept: nothing has changed around them")
        if self.lost:
            remark(
                f"{len(self.lost)} of {self.captioned} captions do not find their picture: {_some(self.lost)}"
            )
        if self.faded:
            remark(f"{len(self.faded)} captions have become ambiguous: {_some(self.faded)}")
        if self.doubles:
            these = f"{len(self.doubles)} pictures have doubles that no words could tell them from"
            remark(f"{these}: {_some(self.doubles)}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(one_line, names[:MOST_NAMED])) + more
