"""Every objective goes on from the same captioner, beside the same number of further steps of likelihood.

    TELLAPART_DATA=DATA python -m benchmarks.objective_runs runs/objectives [--start FOLDER] [--only NAME …]
    python -m benchmarks.objective_table

All train the same captioner, by default the one that ships as `base`, for two epochs of Flickr8k with the
same optimiser, and nothing but the objective differs; what comes out after the last step is measured,
whatever the validation says. Test photographs, beam of 5; for diversity within an image five captions of each
are drawn at temperature 1. The judge of self-retrieval has taught none of them: those that learn from a
retriever learn from `reranker`. Goes on where it was stopped; figures go to docs/results/objectives.jsonl,
with the differences from base and control and their intervals (paired bootstrap over images).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.objective_measures import RECIPE, measure
from benchmarks.objective_records import BASE, CONTROL, add_record
from tellapart.metrics.score import Scores
from tellapart.run import Run

SAME_FOR_ALL = (
    "training.epochs=2",
    "training.evaluate_every=750",  # both epochs: what is kept is what came out at the end
    "training.stop_metric=loss",
    "training.patience=0",
    "training.core_minutes=0",
    "optimiser.learning_rate=1e-4",
    "optimiser.warmup_steps=50",
)
OBJECTIVES: Mapping[str, Sequence[str]] = {
    CONTROL: ("objective.name=mle",),
    "smile": ("objective.name=smile",),
    "smile+mle": ("objective.name=smile", "objective.mle_share=0.5"),
    "unlikelihood": ("objective.name=unlikelihood",),
    "contrastive": ("objective.name=contrastive",),
    "introspective": ("objective.name=introspective",),
    "gan": ("objective.name=gan",),
    "specificity": ("objective.name=specificity", "objective.mle_weight=1.0"),
    "unkt": ("objective.name=unkt", "objective.teacher={teacher}", "objective.weight=0.5"),
    "reward": ("objective.name=reward", "objective.samples=5", "objective.baseline=mean"),
    "reward-retrieval": (
        "objective.name=reward",
        "objective.samples=5",
        "objective.baseline=mean",
        'objective.rewards=[{ name = "cider-d" }, { name = "self-retrieval" }]',
    ),
    "dpo": ("objective.name=dpo",),
    "cider-btw": ("objective.name=mle", "objective.caption_weights=cider-btw"),
    "distinctive-captions": (
        "objective.name=mle",
        "training.captions_per_image=3",
        "training.caption_draw=distinctive",
    ),
}


def main() -> None:
    """Train and measure what is not yet done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start", default=BASE)
    parser.add_argument("--only", nargs="+", default=list(OBJECTIVES))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        for name, changes in OBJECTIVES.items():
            print(name, *changes)
        return
    measured = {BASE: measure(arguments.start), CONTROL: measure_run(arguments, CONTROL)}
    for name in arguments.only:
        scores = measured.get(name) or measure_run(arguments, name)
        add_record(name, OBJECTIVES[name], scores, measured)
    add_record(BASE, (), measured[BASE], measured)


def measure_run(arguments: argparse.Namespace, name: str) -> Scores:
    """The figures of one objective, trained where that is not done."""
    run = Run(arguments.folder / name)
    entries = run.entries()
    if not (entries and entries[-1].get("stopped_by")):
        if run.latest_checkpoint():
            tellapart("train", str(run.folder), "--resume")
        else:
            teacher = str(arguments.folder / "teacher")
            own = [change.format(teacher=teacher) for change in OBJECTIVES[name]]
            if name == "unkt":
                train_teacher(arguments)
            changes = [f"training.start_from={arguments.start}", *SAME_FOR_ALL, *own]
            words = [word for change in changes for word in ("--set", change)]
            tellapart("train", RECIPE, "--out", str(run.folder), *words)
    return measure(str(run.folder))


def train_teacher(arguments: argparse.Namespace) -> None:
    """The negative teacher of UNKT: goes on from the same captioner with the generic half of the captions."""
    run, halves = Run(arguments.folder / "teacher"), arguments.folder / "halves"
    if not halves.exists():
        tellapart("entropy", RECIPE, "--by", "reranker", "--out", str(halves))
    entries = run.entries()
    if entries and entries[-1].get("stopped_by"):
        return
    changes = [f"training.start_from={arguments.start}", *SAME_FOR_ALL, "data.format=jsonl"]
    changes.append(f"data.path={(halves / 'high.jsonl').absolute()}")
    resume = ["--resume"] if run.latest_checkpoint() else []
    words = [word for change in changes for word in ("--set", change)]
    tellapart("train", RECIPE, "--out", str(run.folder), *words, *resume)


def tellapart(*arguments: str) -> None:
    """Run a verb; stop with it if it fails."""
    print("tellapart", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "tellapart", *arguments], check=True)


if __name__ == "__main__":
    main()
