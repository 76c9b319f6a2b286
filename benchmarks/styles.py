"""What each style of `tellapart caption` comes to: how true captions are, how often they find their picture.

    TELLAPART_DATA=DATA python -m benchmarks.styles runs/styles --split test
    TELLAPART_DATA=DATA python -m benchmarks.styles runs/styles --split held-out --recipe default-grid

Runs the verbs that a user would: `tellapart caption FOLDER --style NAME`, then `self-retrieve --by judge`,
which has chosen none of the captions, and `score`. Goes on where it was stopped. The first row, `plain`, is
the captioner's beam of 5 (`--apart off --beam 5`); the last column is R@1 over that of the first row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.race import markdown_row
from tellapart.collection.styles import STYLES
from tellapart.data.examples import Example
from tellapart.recipe import load_recipe
from tellapart.sources import read_examples, split_of

MEASURES = ("CIDEr-D", "METEOR", "BLEU-4", "Distinct", "Vocabulary", "Length", "Unsupported-detail")
WAYS = {"plain": ("--apart", "off", "--beam", "5")} | {name: ("--style", name) for name in STYLES}
METRICS = "bleu,cider,meteor,diversity,detail"


@dataclass(frozen=True, slots=True)
class Found:
    """How often a style's captions find their picture, by the judge."""

    first: float
    low: float
    high: float
    fifth: float
    rank: float


def main() -> None:
    """Caption and measure by every style."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--recipe", default="mrnn-flickr8k", help="whose pictures are captioned")
    parser.add_argument("--captioner", default="default")
    parser.add_argument("--only", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--fit", type=float, help="in place of each style's own")
    parser.add_argument("--agree", type=int, help="in place of each style's own")
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.recipe)
    examples = split_of(read_examples(recipe.data, seed=recipe.seed), arguments.split)
    place = arguments.folder / arguments.split
    images, references = link(place / "images", examples), write_references(place / "people.jsonl", examples)
    print(markdown_row(["style", "R@1", "R@5", "mean rank", *MEASURES, "R@1 over the first"]))
    print(markdown_row(["---"] * (len(MEASURES) + 5)))
    plain = 0.0
    for name in arguments.only:
        own = [
            each
            for flag, value in (("fit", arguments.fit), ("agree", arguments.agree))
            for each in (() if value is None else (f"--{flag}", f"{value:g}"))
        ]
        out = place / f"{name}{''.join(own).replace('--', '-')}.jsonl"
        run("caption", images, *WAYS[name], "--captioner", arguments.captioner, *own, "--out", out)
        found, scores = self_retrieve(out, images), measure(out, references)
        plain = plain or found.first
        cells = [
            f"`{name}`",
            f"{found.first:.3f} ({found.low:.3f}-{found.high:.3f})",
            f"{found.fifth:.3f}",
            f"{found.rank:.1f}",
            *(f"{scores[each]:.3f}" if scores[each] < 50 else f"{scores[each]:.0f}" for each in MEASURES),
            f"{found.first / plain:.2f}",
        ]
        print(markdown_row(cells), flush=True)


def link(folder: Path, examples: Sequence[Example]) -> Path:
    """A folder of just these pictures, without copying them."""
    folder.mkdir(parents=True, exist_ok=True)
    for example in examples:
        name = folder / example.path.name
        if not name.exists():
            name.symlink_to(example.path.absolute())
    return folder


def write_references(path: Path, examples: Sequence[Example]) -> Path:
    """What people said of them, by the name that `caption` gives each."""
    lines = [
        json.dumps({"image_id": example.path.stem, "captions": list(example.captions)})
        for example in examples
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def self_retrieve(captions: Path, images: Path) -> Found:
    """By the judge, among all pictures."""
    result = json.loads(run("self-retrieve", captions, "--images", images, "--by", "judge", "--json"))
    (judge,) = result["judges"]
    scores, (low, high) = judge["scores"], judge["intervals"]["R@1"]
    return Found(scores["R@1"], low, high, scores["R@5"], scores["Mean-rank"])


def measure(captions: Path, references: Path) -> dict[str, float]:
    """Against what people said."""
    flags = ("--references", references, "--metrics", METRICS, "--json")
    scores: dict[str, float] = json.loads(run("score", captions, *flags))["scores"]
    return scores


def run(*arguments: Any) -> str:
    """A verb, as a user would; what it prints."""
    command = [sys.executable, "-m", "tellapart", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
