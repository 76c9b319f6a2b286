"""What trained captioners came to, kept as lines of text: runs take hours, and need not end on one day.

    python -m benchmarks.captioner_runs runs/table      # trains, measures, and adds a line a run and split
    python -m benchmarks.captioner_table                # prints them as a table

A line holds every figure of a run on a split, its recipe's name with what was changed in it, and what it was
trained with. A run that has a line for every split is not trained again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from tellapart import score
from tellapart.recipe import Recipe, load_recipe
from tellapart.run import Run
from tellapart.sources import HELD_OUT, read_examples, split_of

RECORDS = Path("docs/results/captioners.jsonl")
MEASURES = ("bleu", "rouge", "cider", "meteor", "diversity")
COLUMNS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr-D")
DIVERSITY = ("Distinct", "Novel", "Vocabulary", "Length")


@dataclass(frozen=True)
class Record:
    """One run's figures on one split."""

    name: str
    split: str
    recipe: str
    changes: tuple[str, ...]
    scores: dict[str, float]
    perplexity: float
    parameters: int
    validations: int
    core_minutes: float
    ended_by: str
    environment: dict[str, Any]


def read_records(path: Path = RECORDS) -> Iterator[Record]:
    """Every line of the file, in its order."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            yield Record(**(fields | {"changes": tuple(fields["changes"])}))


def add_record(record: Record, path: Path = RECORDS) -> None:
    """Add a line, in the place of one of the same run and split; two programs may do so at once."""
    with path.parent.joinpath(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = [old for old in read_records(path) if (old.name, old.split) != (record.name, record.split)]
        ordered = sorted([*kept, record], key=lambda some: (some.split, some.name))
        path.write_text("".join(json.dumps(asdict(some)) + "\n" for some in ordered), encoding="utf-8")


def measure(run: Run, path: Path, *, recipe: str, changes: tuple[str, ...], shown: Recipe) -> Record:
    """The figures of an evaluation; `shown` is the recipe whose held-out photographs all are measured on."""
    evaluation = json.loads(path.read_text(encoding="utf-8"))
    checkpoint = run.latest_checkpoint()
    state = torch.load(checkpoint, weights_only=True) if checkpoint else {"progress": {}, "step": {}}
    weights = state.get("step") or state["network"]
    validations = [entry for entry in run.entries() if "validation" in entry]
    return Record(
        run.folder.name,
        evaluation["split"],
        recipe,
        changes,
        figures(evaluation, load_recipe(str(run.recipe)), shown),
        evaluation["perplexity"],
        sum({tensor.data_ptr(): tensor.numel() for tensor in weights.values()}.values()),  # shared ones once
        len(validations),
        round(state["progress"].get("core_seconds", 0) / 60, 1),
        validations[-1]["stopped_by"],
        json.loads((run.folder / "environment.json").read_text(encoding="utf-8")),
    )


def measure_joined(name: str, members: Sequence[Record], path: Path, *, own: Recipe, shown: Recipe) -> Record:
    """The same of an ensemble, which nobody trained: it is as large and as long in the making as they are."""
    evaluation = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        name,
        evaluation["split"],
        "",
        tuple(member.name for member in members),
        figures(evaluation, own, shown),
        evaluation["perplexity"],
        sum(member.parameters for member in members),
        0,
        round(sum(member.core_minutes for member in members), 1),
        "",
        members[0].environment,
    )


def figures(evaluation: dict[str, Any], own: Recipe, shown: Recipe) -> dict[str, float]:
    """All measures of the captions of an evaluation; `own` is what the captioner was trained on."""
    examples = read_examples(own.data, seed=own.seed)
    split = evaluation["split"]
    pool = read_examples(shown.data, seed=shown.seed) if split == HELD_OUT else examples
    references = {some.image_id: list(some.captions) for some in split_of(pool, split)}
    lines = Path(evaluation["predictions"]).read_text(encoding="utf-8").splitlines()
    captions = {line["image_id"]: line["caption"] for line in map(json.loads, lines)}
    scores = score(
        captions,
        references,
        metrics=list(MEASURES),
        train=[list(some.captions) for some in split_of(examples, "train")],
    )
    return {name: round(scores[name].corpus, 6) for name in (*COLUMNS, *DIVERSITY)}
