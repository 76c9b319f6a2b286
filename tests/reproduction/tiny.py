"""A plan of seconds: three methods of a tiny m-RNN on sixty drawn scenes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tellapart.reproduction.ground import Ground, drawn_scenes
from tellapart.reproduction.plan import (
    Claim,
    Column,
    Figure,
    Method,
    Paper,
    Part,
    Plan,
    Row,
    Showing,
    Table,
    join,
)
from tellapart.reproduction.running import Screen, Workshop
from tellapart.reproduction.shelf import Shelf
from tellapart.reproduction.ways import WAYS

BASE = Method("base", "a tiny m-RNN", "mrnn", seeds=2, minutes=1, priority=0)
WATCHED = (
    "training.stop_metric=mean-rank",
    "training.rank_by={judge}",
    "training.evaluate_every=2",
    "training.keep=last",
)
MORE = Method("more", "the same, longer", "mrnn", ("objective.name=mle", *WATCHED), start="base", minutes=1)
PAPER = Paper(
    "tiny",
    "A tiny paper",
    (BASE, MORE),
    {"base": ("greedy", "samples5", "ranks"), "more": ("greedy", "margin", "samples5", "penalties")},
    (
        Table(
            "Table 1",
            "all there is",
            (Column("C", "CIDEr-D"), Column("words", "Length", 1.0, 1), Column("S", "")),
            (
                Row("Base", "base/greedy", ("0.1", "?", "")),
                Row("More", "more/greedy"),
                Row("Theirs alone", "", ("0.2", "9.9", "0.3")),
                Row("Chosen", "more/margin"),
                Row("Missing", "never/greedy", ("1", "2", "3")),
            ),
        ),
        Table(
            "Figure 2",
            "the best of some",
            tuple(Column(f"N = {count}", f"oracle CIDEr-D@{count}") for count in (1, 2, 5)),
            (Row("Base", "base/samples5"), Row("More", "more/samples5")),
            is_curve=True,
        ),
    ),
    (
        Claim("longer", "it is longer", "nowhere", (Part("Length", "more/greedy", "above", "base/greedy"),)),
        Claim("other", "it is other", "nowhere", (Part("R@1", "never/greedy", "above", "base/greedy"),)),
        Claim(
            "words",
            "as many words",
            "nowhere",
            (
                Part("Vocabulary", "more/greedy", "alike", "base/greedy", margin=10.0),
                Part("image-to-sentence R@1", "base/ranks", "above", "base/ranks", than="plain R@1"),
                Part("mBLEU-4", "more/samples5", "alike", "base/samples5", margin=10.0),
            ),
        ),
    ),
    Showing(("base/greedy", "more/greedy"), penalties=("more/penalties",)),
    figures=(Figure("Figure 3", "how words grow", "words", ("more",)),),
    notes=("It is very small.",),
    plot="Table 1",
)
TINY = ("captioner.preset=tiny", "captioner.dropout=0.0", "training.epochs=1", "decoding.max_words=6")


def tiny_ground(folder: Path) -> Ground:
    """Sixty scenes, and two retrievers of a second each."""
    whole = drawn_scenes(folder, scenes=60)
    small = ("retriever.width=8", "retriever.hidden=8", "retriever.word_width=8", "training.epochs=1")
    retrievers = tuple(
        replace(
            method, changes=(*method.changes[:1], "data.scenes=60", "training.images_per_batch=16", *small)
        )
        for method in whole.retrievers
    )
    return replace(
        whole,
        changes=(*whole.changes, *TINY),
        beginning=(),
        going_on=("training.epochs=1",),
        retrievers=retrievers,
    )


def tiny_plan(ground: Ground) -> Plan:
    """The paper's, retrievers first."""
    plan = join([PAPER], WAYS)
    return Plan({**{method.name: method for method in ground.retrievers}, **plan.methods}, plan.ways)


def tiny_shop(out: Path, *, kept: Path | None = None, screen: Screen | None = None) -> Workshop:
    """A folder in which the tiny plan is run."""
    ground = tiny_ground(out / "shapes")
    shelf = Shelf(kept or out / "captions", ground.name)
    return Workshop(out, ground, tiny_plan(ground), shelf, screen or Screen())


if __name__ == "__main__":
    tiny_shop(Path(sys.argv[1]), screen=Screen(lambda line: print(line, flush=True))).run()
