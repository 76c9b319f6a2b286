"""The flags of `tellapart caption`: what each is called, may be, and does."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.options import expect_page
from tellapart.collection.plan import MOST_EFFORT, Apart, Plan
from tellapart.collection.styles import STYLES, Style
from tellapart.errors import TellapartError

OF_STYLE = "the style's"
CANDIDATES = 10  # that come into question for a picture where one is chosen


class ApartMode(StrEnum):
    """How captions are told apart."""

    margin = "margin"
    pragmatic = "pragmatic"
    off = "off"


def plan_of(style: Style, neighbours: int, seed: int) -> Plan | None:
    """What is done to choose a caption for each picture; None where there is nothing to choose from."""
    kinds: dict[str, Apart] = {"margin": "margin", "pragmatic": "pragmatic", "off": "off"}
    if style.apart == ApartMode.off and not style.agree:
        return None
    return Plan(kinds[style.apart], neighbours, style.effort, seed, style.fit, style.agree)


class StyleName(StrEnum):
    """Named sets of flags, of `collection.styles`."""

    accurate = "accurate"
    balanced = "balanced"
    distinctive = "distinctive"

    @property
    def style(self) -> Style:
        """What its flags are."""
        return STYLES[self.value]


class SidecarMode(StrEnum):
    """What becomes of a .txt file that is there."""

    skip = "skip"
    overwrite = "overwrite"
    append = "append"
    prepend = "prepend"


Paths = Annotated[
    list[Path], typer.Argument(help="Image files and folders (searched recursively).", show_default=False)
]
StyleFlag = Annotated[
    StyleName,
    typer.Option(
        help="A captioner, a beam, --apart, --effort, --fit and --agree that go well together: 'accurate' "
        "says what is likeliest true, 'distinctive' what tells a picture from all others, 'balanced' both. "
        "Single flags override it."
    ),
]
CaptionerName = Annotated[
    str | None,
    typer.Option(
        help="'default', a captioner or run folder, or pretrained: blip[:FOLDER].", show_default=OF_STYLE
    ),
]
ApartFlag = Annotated[
    ApartMode | None,
    typer.Option(
        help="Tell each picture from those most like it: 'margin' chooses the caption that does, "
        "'pragmatic' also writes with the others in view, 'off' captions each by itself, as they come "
        "(unless they are to --agree).",
        show_default=OF_STYLE,
    ),
]
NeighbourCount = Annotated[int, typer.Option(min=1, help="Of how many others each is told from.")]
Effort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_EFFORT,
        help="Where no caption finds its picture: 1 tries more, 2 with the others in view, 3 longer.",
        show_default=OF_STYLE,
    ),
]
Fit = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="How much the likelihood of a caption counts beside how well it tells its picture apart.",
        show_default=OF_STYLE,
    ),
]
Agree = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Draw so many captions of each picture by chance, and prefer one that agrees with them: truer, "
        "and slower. 50 is a good number.",
        show_default=OF_STYLE,
    ),
]
RetrieverName = Annotated[
    str, typer.Option(help="Who tells what is like what, and chooses: see 'tellapart search'.")
]
Seed = Annotated[int, typer.Option(help="Of captions drawn by chance.")]
Beam = Annotated[
    int | None,
    typer.Option(min=1, help="Width of the beam; 1 is greedy.", show_default=OF_STYLE),
]
CandidateCount = Annotated[
    int | None,
    typer.Option(min=1, help="How many captions an image to show, best first.", show_default="1"),
]
Prefix = Annotated[str, typer.Option(help="Words every caption is to begin with.")]
Ban = Annotated[list[str] | None, typer.Option(help="A word or phrase never to write; may be given again.")]
Require = Annotated[
    list[str] | None, typer.Option(help="A word or phrase every caption holds; may be given again.")
]
Repeats = Annotated[
    bool | None,
    typer.Option(
        "--repeats/--no-repeats",
        help="Whether a caption may say a word twice, function words aside.",
        show_default="the captioner's own",
    ),
]
Trigger = Annotated[str, typer.Option(help="A word or phrase put before every caption, but in --out.")]
MaxWords = Annotated[
    int | None, typer.Option(min=1, help="Longest caption.", show_default="the captioner's own")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Take only the first so many pictures.", show_default="all")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="A file of captions with where each came from (.jsonl): run again, it goes on.",
        show_default=False,
    ),
]
SidecarFlag = Annotated[
    SidecarMode | None,
    typer.Option(help="Also write a .txt file beside each picture; what to do with one that is there."),
]
Coco = Annotated[Path | None, typer.Option(help="Also write COCO results (.json).", show_default=False)]
DescribePictures = Annotated[
    bool,
    typer.Option(
        "--describe", help="Also write captions into the pictures' own files (XMP; in JPEG Exif too)."
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(help="Also write a web page (.html) with pictures and captions.", show_default=False),
]
Cache = Annotated[bool, typer.Option(help="Remember what the encoder saw in each picture.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line (predictions JSONL).")]


def expect_names(*, page: Path | None, coco: Path | None) -> None:
    """`--page *.jpg` would replace a photograph by a page."""
    expect_page(page)
    if coco is not None and coco.suffix.lower() != ".json":
        raise TellapartError(f"--coco {coco}: not the name of COCO results", hint="let it end in .json")
