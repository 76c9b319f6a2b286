"""Trained captioners side by side, as a Markdown table.

    python -m benchmarks.captioner_runs runs/table                        # trains them all
    python -m benchmarks.captioner_table runs/table [--split test]
    python -m benchmarks.captioner_table runs/table --split held-out      # 500 COCO photographs

A row a run under the folder: measures of its captions (COCO's tokenizer; METEOR 1.5), perplexity with the end
sign counted, distinct captions, those that no training caption of the run equals, different words, how long
it trained and what ended it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.captioner_runs import EVERYTHING, WIDTH
from tellapart import score
from tellapart.recipe import load_recipe
from tellapart.run import Run
from tellapart.sources import HELD_OUT, read_examples, split_of

COLUMNS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr-D")


@dataclass(frozen=True)
class Row:
    """One run's figures."""

    name: str
    scores: dict[str, float]
    evaluation: dict[str, Any]
    validations: int
    core_minutes: float
    ended_by: str

    def cells(self) -> Iterator[str]:
        """As text."""
        yield self.name
        yield from (f"{self.scores[column]:.3f}".removeprefix("0") for column in COLUMNS)
        yield f"{self.evaluation['perplexity']:.2f}"
        yield f"{self.scores['Distinct']:.3f}".removeprefix("0")
        yield f"{self.scores['Novel']:.3f}".removeprefix("0")
        yield f"{self.scores['Vocabulary']:.0f}"
        yield str(self.validations)
        yield f"{self.core_minutes:.0f}"
        yield self.ended_by


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="test")
    arguments = parser.parse_args()
    names = (*COLUMNS, "perplexity", "distinct", "novel", "words", "validations", "core minutes", "ended by")
    print("| captioner |", " | ".join(names), "|")
    print("|" + "---|" * (len(names) + 1))
    for folder in sorted(arguments.folder.iterdir()):
        if (path := Run(folder).evaluation(arguments.split, width=WIDTH)).exists():
            print("|", " | ".join(row(Run(folder), path).cells()), "|", flush=True)


def row(run: Run, path: Path) -> Row:
    """The figures of one run."""
    evaluation = json.loads(path.read_text(encoding="utf-8"))
    recipe = load_recipe(str(run.recipe))
    examples = read_examples(recipe.data, seed=recipe.seed)
    split = evaluation["split"]
    shown = read_examples(load_recipe(EVERYTHING).data, seed=1) if split == HELD_OUT else examples
    references = {some.image_id: list(some.captions) for some in split_of(shown, split)}
    lines = Path(evaluation["predictions"]).read_text(encoding="utf-8").splitlines()
    captions = {line["image_id"]: line["caption"] for line in map(json.loads, lines)}
    scores = score(
        captions,
        references,
        metrics=["bleu", "rouge", "cider", "meteor", "diversity"],
        train=[list(some.captions) for some in split_of(examples, "train")],
    )
    entries = run.entries()
    checkpoint = run.latest_checkpoint()
    progress = torch.load(checkpoint, weights_only=True)["progress"] if checkpoint else {}
    last = next(entry for entry in reversed(entries) if "validation" in entry)
    validations = sum("validation" in entry for entry in entries)
    return Row(
        run.folder.name,
        {name: scores[name].corpus for name in (*COLUMNS, "Distinct", "Novel", "Vocabulary")},
        evaluation,
        validations,
        progress.get("core_seconds", 0) / 60,
        last["stopped_by"],
    )


if __name__ == "__main__":
    main()
