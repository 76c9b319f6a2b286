"""Every objective goes on from the same captioner, beside the same number of further steps of likelihood.

    tellapart train mrnn-flickr8k --set data.root=DATA --out runs/mrnn
    TELLAPART_DATA=DATA python -m benchmarks.objective_runs runs/objectives --start runs/mrnn [--only NAME …]
    TELLAPART_DATA=DATA python -m benchmarks.objective_runs runs/more --captioner transformer --start FOLDER
    python -m benchmarks.objective_table

All train the same captioner, an m-RNN unless another is named, for two epochs of Flickr8k; nothing but the
objective differs, and the learning rate where the list below says so. What comes out after the last step is
measured, whatever the validation says: test photographs, beam of 5; for diversity within an image five
captions of each are drawn at temperature 1. The judge of self-retrieval has taught none of them: those that
learn from a retriever learn from `reranker`. Goes on where it was stopped; figures go to
docs/results/objectives.jsonl, with the differences from base and control and their intervals (paired
bootstrap over images).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.objective_measures import measure
from benchmarks.objective_records import BASE, CONTROL, add_record
from tellapart.metrics.score import Scores
from tellapart.reproduction.methods import GOING_ON, SLOWLY
from tellapart.run import Run

OBJECTIVES: Mapping[str, Sequence[str]] = {
    CONTROL: ("objective.name=mle",),
    "smile": ("objective.name=smile",),
    "smile+mle": ("objective.name=smile", "objective.mle_share=0.5"),
    "unlikelihood": ("objective.name=unlikelihood",),
    "contrastive": ("objective.name=contrastive",),
    "introspective": ("objective.name=introspective",),
    "specificity": ("objective.name=specificity", "objective.compat=authors", "objective.mle_weight=1.0"),
    "unkt": ("objective.name=unkt", "objective.teacher={teacher}", "objective.weight=0.3"),
    "reward": ("objective.name=reward", "objective.baseline=mean", SLOWLY),
    "reward-retrieval": (
        "objective.name=reward",
        "objective.baseline=mean",
        'objective.rewards=[{ name = "cider-d" }, { name = "self-retrieval" }]',
        SLOWLY,
    ),
    "dpo": ("objective.name=dpo", "objective.mle_weight=1.0", SLOWLY),
    "gan": ("objective.name=gan", "objective.mle_weight=1.0", SLOWLY),
    "distillation": ("objective.name=distillation",),
    "cider-btw": ("objective.name=mle", "objective.caption_weights=cider-btw"),
    "distinctive-captions": (
        "objective.name=mle",
        "training.captions_per_image=3",
        "training.caption_draw=distinctive",
    ),
}
HALF = (
    "data.format=jsonl",
    "data.images=",
    "training.evaluate_every=700",
)  # some images have no such caption
WITHOUT_ATTENTION = "objective.attention=false"  # of the m-RNN, which attends to nothing


@dataclass(frozen=True)
class Experiment:
    """Which captioner all start from, and where their runs are kept."""

    folder: Path
    captioner: str
    start: str

    @property
    def recipe(self) -> str:
        """The captioner's recipe on Flickr8k."""
        return f"{self.captioner}-flickr8k"

    def train(self, name: str, changes: Sequence[str]) -> Run:
        """To the end, from the start or from where it was."""
        run = Run(self.folder / name)
        entries = run.entries()
        if entries and entries[-1].get("stopped_by"):
            return run
        if run.latest_checkpoint():
            tellapart("train", str(run.folder), "--resume")
            return run
        all_changes = (f"training.start_from={self.start}", *GOING_ON, *changes)
        words = [word for change in all_changes for word in ("--set", change)]
        tellapart("train", self.recipe, "--out", str(run.folder), *words)
        return run

    def teacher(self) -> str:
        """The negative teacher of UNKT: goes on from the same captioner with the generic captions."""
        halves = self.folder / "halves"
        if not halves.exists():
            tellapart("entropy", self.recipe, "--by", "reranker", "--out", str(halves))
        half = ("data.format=jsonl", "data.images=", f"data.path={(halves / 'high.jsonl').absolute()}")
        return str(self.train("teacher", half).folder)

    def measure(self, name: str) -> Scores:
        """The figures of one objective, trained where that is not done."""
        changes = list(OBJECTIVES[name])
        if name == "unkt":
            changes = [change.format(teacher=self.teacher()) for change in changes]
            changes += [WITHOUT_ATTENTION] if self.captioner == "mrnn" else []
        return measure(str(self.train(name, changes).folder), self.recipe)


def main() -> None:
    """Train and measure what is not yet done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--captioner", default="mrnn")
    parser.add_argument("--start", default="runs/mrnn", help="the run or captioner that all go on from")
    parser.add_argument("--only", nargs="+", default=list(OBJECTIVES))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        for name, changes in OBJECTIVES.items():
            print(name, *changes)
        return
    some = Experiment(arguments.folder, arguments.captioner, arguments.start)
    measured = {BASE: measure(some.start, some.recipe), CONTROL: some.measure(CONTROL)}
    add_record(some.captioner, BASE, (), measured[BASE], measured)
    for name in arguments.only:
        scores = measured.get(name) or some.measure(name)
        add_record(some.captioner, name, OBJECTIVES[name], scores, measured)


def tellapart(*arguments: str) -> None:
    """Run a verb; stop with it if it fails."""
    print("tellapart", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "tellapart", *arguments], check=True)


if __name__ == "__main__":
    main()
