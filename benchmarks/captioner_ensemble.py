"""Join captioners of the table that share their words, and add what they come to together as a row.

    TELLAPART_DATA=DATA python -m benchmarks.captioner_runs runs/table --only mrnn topdown
    TELLAPART_DATA=DATA python -m benchmarks.captioner_ensemble runs/table mrnn topdown
    python -m benchmarks.captioner_table

The mean of their probabilities, word by word; captions by the same beam as all others'.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.captioner_records import add_record, measure_joined, read_records
from benchmarks.captioner_runs import EVERYTHING, SPLITS, WIDTH, tellapart
from tellapart.recipe import load_recipe
from tellapart.reproduction.ways import LENGTH_PENALTY
from tellapart.run import Run


def main() -> None:
    """Join, caption, measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("members", nargs="+")
    arguments = parser.parse_args()
    runs = [Run(arguments.folder / name) for name in arguments.members]
    name = " & ".join(arguments.members)
    joined = Run(arguments.folder / "-and-".join(arguments.members))
    own, shown = load_recipe(str(runs[0].recipe)), load_recipe(EVERYTHING)
    if not joined.folder.exists():
        tellapart("ensemble", *(str(run.folder) for run in runs), "--out", str(joined.folder))
    for split in SPLITS:
        path = joined.evaluation(split, width=WIDTH)
        if not path.exists():
            data = EVERYTHING if split != "test" else str(runs[0].recipe)
            how = ("--beam", str(WIDTH), "--length-penalty", str(LENGTH_PENALTY), "--recipe", data)
            tellapart("evaluate", str(joined.folder), "--split", split, *how)
        members = [
            record
            for member in arguments.members
            for record in read_records()
            if (record.name, record.split) == (member, split)
        ]
        add_record(measure_joined(name, members, path, own=own, shown=shown))


if __name__ == "__main__":
    main()
