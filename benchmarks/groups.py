"""Five groups of look-alikes, before and after: what a captioner says of each by itself, and told apart.

    TELLAPART_DATA=DATA python -m benchmarks.groups runs/groups
    python -m benchmarks.groups runs/groups --images photos/

Captions every picture of the folder, by default the test photographs of Flickr8k, with `tellapart caption
--apart off` and with `tellapart caption`. The groups are not chosen by hand: they are the five whose pictures
are most alike, by `reranker`, which tells them apart; whether a caption finds its picture within its group is
said by `judge`. Prints them as Markdown and draws them as groups.jpg. The photographs of Flickr8k belong to
their owners: the picture is to be looked at, not to be passed on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps

from tellapart.data.images import read_picture
from tellapart.metrics.retrieval import ranks
from tellapart.recipe import load_recipe
from tellapart.report.recall_curves import DRAWN, GREY, INK, Pen
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.pools import GROUP, hard_pool
from tellapart.sources import read_examples, split_of
from tellapart.storage import new_file

COUNT = 5
RECIPE, RERANKER, JUDGE = "mrnn-flickr8k", "reranker", "judge"
SIDE, GAP, LINE, LETTERS, LINES = 190, 12, 15, 29, 3  # pixels; of a caption, letters a line and lines
RIGHT, WRONG = (0, 120, 80), (180, 70, 0)


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture with both captions, and whether each finds it in its group."""

    path: Path
    captions: tuple[str, str]
    found: tuple[bool, bool]


def link_split(folder: Path, split: str) -> Path:
    """A folder of the photographs of a split of Flickr8k, without copying them."""
    recipe = load_recipe(RECIPE)
    folder.mkdir(parents=True, exist_ok=True)
    for example in split_of(read_examples(recipe.data, seed=recipe.seed), split):
        link = folder / example.path.name
        if not link.exists():
            link.symlink_to(example.path.absolute())
    return folder


def caption(images: Path, out: Path, *flags: str) -> dict[Path, str]:
    """What `tellapart caption` says of every picture of a folder; it goes on where it was stopped."""
    command = [sys.executable, "-m", "tellapart", "caption", str(images), "--out", str(out), *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {images / Path(line["image"]).name: line["caption"] for line in lines if "caption" in line}


def find_groups(before: dict[Path, str], after: dict[Path, str]) -> list[list[Shown]]:
    """The groups that are most alike, with the judge's word on every caption."""
    paths = sorted(before.keys() & after.keys())
    pictures = load_retriever(RERANKER).embed_images(paths)
    rows = hard_pool(pictures, COUNT * GROUP, group=GROUP).reshape(COUNT, GROUP)
    judge = load_retriever(JUDGE)
    groups = []
    for some in ([paths[row] for row in group] for group in rows.tolist()):
        seen = judge.embed_images(some)
        found = [
            ranks(dot_products(judge.embed_texts([told[path] for path in some]), seen), np.arange(GROUP)) == 0
            for told in (before, after)
        ]
        groups.append(
            [
                Shown(path, (before[path], after[path]), (bool(found[0][place]), bool(found[1][place])))
                for place, path in enumerate(some)
            ]
        )
    return groups


def tell(groups: Sequence[Sequence[Shown]]) -> None:
    """Print the groups as a Markdown table; captions that find their picture in the group are bold."""
    print("| photograph | each by itself | told apart |")
    print("|---|---|---|")
    for number, group in enumerate(groups, start=1):
        for shown in group:
            cells = [
                f"**{text}**" if found else text
                for text, found in zip(shown.captions, shown.found, strict=True)
            ]
            print("|", " | ".join([f"{number}: {shown.path.name}", *cells]), "|")
    pairs = [shown.found for group in groups for shown in group]
    before, after = (sum(column) for column in zip(*pairs, strict=True))
    print(f"\nFound in their group: {before} of {len(pairs)} before, {after} after.")


def draw(path: Path, groups: Sequence[Sequence[Shown]]) -> None:
    """A row of pictures a group, with the captions below each: before in grey, after in black."""
    cell = SIDE + 2 * LINES * LINE + 3 * GAP
    size = (GAP + GROUP * (SIDE + GAP), GAP + len(groups) * cell)
    canvas = Image.new("RGB", (size[0] * DRAWN, size[1] * DRAWN), "white")
    pen = Pen(ImageDraw.Draw(canvas))
    for row, group in enumerate(groups):
        for column, shown in enumerate(group):
            left, top = GAP + column * (SIDE + GAP), GAP + row * cell
            whole = read_picture(shown.path, at_least=SIDE * DRAWN)
            picture = ImageOps.contain(whole, (SIDE * DRAWN, SIDE * DRAWN), Image.Resampling.LANCZOS)
            canvas.paste(picture, (left * DRAWN, (top + SIDE) * DRAWN - picture.height))
            below = top + SIDE + GAP
            for text, found, colour in zip(shown.captions, shown.found, (GREY, INK), strict=True):
                pen.line([(left, below), (left, below + LINES * LINE)], RIGHT if found else WRONG, width=3)
                for number, words in enumerate(textwrap.wrap(text, LETTERS)[:LINES]):
                    at = (left + 8, below + (number + 0.5) * LINE)
                    pen.write(at, words, anchor="lm", colour=colour, size=12)
                below += LINES * LINE + GAP // 2
    with new_file(path) as temporary:
        canvas.resize(size, Image.Resampling.LANCZOS).save(temporary, "JPEG", quality=88)


def main() -> None:
    """Caption, choose, print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    images = arguments.images or link_split(folder / "test", "test")
    before = caption(images, folder / "before.jsonl", "--apart", "off")
    after = caption(images, folder / "after.jsonl")
    groups = find_groups(before, after)
    tell(groups)
    draw(folder / "groups.jpg", groups)


if __name__ == "__main__":
    main()
