"""Every objective on drawn scenes: what it moves, beside as many further steps of likelihood.

    python -m benchmarks.drawn_objectives runs/drawn [--split test] [--only NAME …]

The recipes `NAME-shapes` all start from the same captioner. It, the retriever that teaches, the captions that
fit many pictures and the captioner that learnt those are made once, as stages of unkt-shapes; the judge is
another retriever, which has learnt other scenes. Each objective then goes on from the base by its own recipe,
and the control by that of SMILE with likelihood in its place. Settings were chosen on the scenes of the split
val; told are the figures on those of the split test. Goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.drawn_measures import Figures, Unseen
from tellapart.recipe import Recipe, load_experiment, load_recipe
from tellapart.run import Run
from tellapart.stepping import AnyRecipe
from tellapart.training import train

STAGED = "unkt"  # whose recipe has all stages that any of them has
OBJECTIVES = (
    STAGED,
    "smile",
    "contrastive",
    "specificity",
    "reward",
    "dpo",
    "introspective",
    "gan",
    "unlikelihood",
    "distillation",
)
HEADER = """| | words | true details | true captions | R@1 | Div-1 |
|---|---|---|---|---|---|"""


def trained(recipe: AnyRecipe, folder: Path) -> Run:
    """The run of a recipe, trained if it is not yet."""
    run = Run(folder)
    return run if run.is_over else train(recipe, folder, resume=run.recipe.exists())


def continued(name: str, stages: Path, *changes: str) -> Recipe:
    """An objective's recipe without its stages, which lie there."""
    return load_recipe(f"{name}-shapes", changes=changes).located(stages)


def main() -> None:
    """Train what is missing, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", choices=("val", "test"), default="test")
    parser.add_argument("--only", nargs="+", default=OBJECTIVES, choices=OBJECTIVES)
    args = parser.parse_args()
    staged = load_recipe(f"{STAGED}-shapes")
    stages = trained(staged, args.folder / STAGED).stages
    other_scenes = [f"data.scenes={staged.data.scenes}", f"seed={staged.seed + 1}"]
    judge = trained(load_experiment("retriever-shapes", changes=other_scenes), args.folder / "judge").folder
    unseen = Unseen.of(staged.data, [args.split], seed=staged.seed, judge=judge)
    print(HEADER)
    base = tell("base", unseen.figures(stages / "base"))
    likelihood = continued("smile", stages, "objective.name=mle")
    control = tell("likelihood", unseen.figures(trained(likelihood, args.folder / "mle").folder), base)
    for name in args.only:
        found = unseen.figures(trained(continued(name, stages), args.folder / name).folder)
        tell(name, found, base, control)


def tell(name: str, found: Figures, *others: Figures) -> Figures:
    """A line of the table, and one for each difference."""
    print(f"| {name} | {found.row()} |")
    for than, other in zip(("base", "likelihood"), others, strict=False):
        print(f"| … less {than} | {(found - other).row()} |")
    return found


if __name__ == "__main__":
    main()
