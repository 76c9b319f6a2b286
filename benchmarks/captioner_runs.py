"""Train every captioner of the table, one after the other, and caption the splits that the table measures.

    TELLAPART_DATA=DATA python -m benchmarks.captioner_runs runs/table [--only NAME …] [--list]
    python -m benchmarks.captioner_table

Goes on where it was stopped, within a run too, and passes over runs whose figures stand in
docs/results/captioners.jsonl. Each run ends when CIDEr-D on Flickr8k's dev split has not risen for three
validations, with its recipe's schedule, or after 60 minutes of processor time (half an hour on 2 cores);
about 16 hours of one core in all. Two may run side by side, with OMP_NUM_THREADS=1 and different --only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.captioner_records import add_record, measure, read_records
from tellapart.recipe import load_recipe
from tellapart.reproduction.ways import LENGTH_PENALTY
from tellapart.run import Run
from tellapart.sources import HELD_OUT

WIDTH = 5
# The recipe of m-RNN is that of the first captioner that shipped: for the table it ends as all others do.
LIKE_OTHERS = (
    "training.epochs=15",
    "training.stop_metric=cider-d",
    "training.core_minutes=60",
    "decoding.width=5",
)
CONCEPTS = ("captioner.concepts=10", "captioner.copy_words=true")
VARIANTS = (
    "mrnn-no-emb-input",
    "mrnn-one-layer-emb",
    "mrnn-emb-one-input",
    "mrnn-vis-in-rnn",
    "mrnn-vis-in-rnn-both",
    "mrnn-vis-in-rnn-both-shared",
    "mrnn-shared",
    "rnn-base",
)
GRIDS = ("adaptive", "topdown", "transformer", "meshed")
FEW = "training.images_per_batch=10"  # LSTMs learn from many small steps, as in their own recipes


SPLITS = ("test", HELD_OUT)
EVERYTHING = "transformer-concepts"  # the recipe whose held-out COCO photographs all are measured on
# Captions without pictures, but no photograph of COCO: who then names what Flickr8k never names has read it.
NO_COCO_PHOTOGRAPHS = (
    'data.extra=[{ path = "text/flickr30k_captions.jsonl.gz", pictures = false, per_epoch = 1000 }, '
    '{ path = "text/coco_captions_val2017.json.gz", pictures = false, per_epoch = 500 }, '
    '{ path = "text/train_val_annotation.zip", format = "msrvtt", pictures = false, per_epoch = 350 }]'
)


@dataclass(frozen=True)
class Planned:
    """A run: the recipe, and what is changed in it."""

    recipe: str
    changes: tuple[str, ...] = ()


def plan() -> dict[str, Planned]:
    """All runs, in the order in which they are trained."""
    runs = {"mrnn": Planned("mrnn-flickr8k", LIKE_OTHERS)}
    runs |= {name: Planned(f"{name}-flickr8k") for name in (*VARIANTS, "neuraltalk", *GRIDS)}
    runs |= {f"{name}+concepts": Planned(f"{name}-flickr8k", CONCEPTS) for name in GRIDS}
    for name in GRIDS:
        steps = (FEW,) if name in ("adaptive", "topdown") else ()
        own = (f"captioner.name={name}", "captioner.preset=small", *CONCEPTS, *steps)
        changes = () if name == "transformer" else own
        runs[f"{name}+concepts+coco+text"] = Planned(EVERYTHING, changes)
    runs["transformer+concepts+text"] = Planned(EVERYTHING, (NO_COCO_PHOTOGRAPHS,))
    return runs


def main() -> None:
    """Train and caption what is not yet done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    for name, planned in plan().items():
        if arguments.only and name not in arguments.only:
            continue
        run = Run(arguments.folder / name)
        if arguments.list:
            print(name, planned.recipe, *planned.changes)
            continue
        done = {record.split for record in read_records() if record.name == name}
        if not done.issuperset(SPLITS):
            train(run, planned)
            for split in SPLITS:
                caption(run, split)
                note(run, planned, split)


def note(run: Run, planned: Planned, split: str) -> None:
    """Write a run's figures down."""
    path = run.evaluation(split, width=WIDTH)
    record = measure(run, path, recipe=planned.recipe, changes=planned.changes, shown=load_recipe(EVERYTHING))
    add_record(record)


def caption(run: Run, split: str) -> None:
    """Caption a split, where that is not done; the same COCO photographs for all."""
    if not run.evaluation(split, width=WIDTH).exists():
        data = ("--recipe", EVERYTHING) if split == HELD_OUT else ()
        how = ("--beam", str(WIDTH), "--length-penalty", str(LENGTH_PENALTY))
        tellapart("evaluate", str(run.folder), "--split", split, *how, *data)


def train(run: Run, planned: Planned) -> None:
    """To the end, from the beginning or from where it was."""
    entries = run.entries()
    if entries and entries[-1].get("stopped_by"):
        return
    if run.latest_checkpoint():
        tellapart("train", str(run.folder), "--resume")
    else:
        changes = [word for change in planned.changes for word in ("--set", change)]
        tellapart("train", planned.recipe, "--out", str(run.folder), *changes)


def tellapart(*arguments: str) -> None:
    """Run a verb; stop with it if it fails."""
    print("tellapart", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "tellapart", *arguments], check=True)


if __name__ == "__main__":
    main()
