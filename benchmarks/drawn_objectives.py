"""Every objective on drawn scenes: what it moves, beside as many further steps of likelihood.

    python -m benchmarks.drawn_objectives runs/drawn [--unseen 104] [--only NAME …]

The recipes `NAME-shapes` all go on from the same captioner. It, the retriever that teaches, the captions that
fit many pictures and the captioner that learnt those are made once, as stages of unkt-shapes; the judge is
trained as the retriever that teaches is, from another seed and on other scenes. Each objective then takes
four epochs by its own recipe, and the control those of SMILE's with likelihood in its place. Settings were
chosen on scenes of the seeds 101 and 102; told are figures on those of the seed 104. Goes on where it was
stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.drawn_measures import Figures, Unseen
from tellapart.recipe import AnyRecipe, Recipe, RetrieverRecipe, load_recipe
from tellapart.run import Run
from tellapart.training import train

STAGED = "unkt"  # whose recipe has all stages that any of them has
OBJECTIVES = (
    "smile",
    "contrastive",
    "specificity",
    STAGED,
    "reward",
    "dpo",
    "introspective",
    "gan",
    "unlikelihood",
    "distillation",
)
UNSEEN = 2000  # scenes drawn to measure on, those not counted that were trained on
HEADER = """| | words | true details | true captions | R@1 | Div-1 |
|---|---|---|---|---|---|"""


def trained(recipe: AnyRecipe, folder: Path) -> Run:
    """The run of a recipe, trained if it is not yet."""
    run = Run(folder)
    return run if run.is_over else train(recipe, folder, resume=run.recipe.exists())


def continued(name: str, stages: Path, *changes: str) -> Recipe:
    """An objective's recipe without its stages, which lie there."""
    return load_recipe(f"{name}-shapes", changes=changes).located(stages)


def judging(staged: Recipe) -> RetrieverRecipe:
    """Another retriever like the one that teaches, to be trained on scenes of its own."""
    stages = dict(staged.stage_list())
    teacher = stages["retriever"]
    assert isinstance(teacher, RetrieverRecipe)
    return teacher.model_copy(update={"seed": teacher.seed + 1})


def main() -> None:
    """Train what is missing, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--unseen", type=int, default=104, help="seed of the scenes to measure on")
    parser.add_argument("--only", nargs="+", default=OBJECTIVES, choices=OBJECTIVES)
    args = parser.parse_args()
    staged = load_recipe(f"{STAGED}-shapes")
    stages = trained(staged, args.folder / STAGED).stages
    judge = trained(judging(staged), args.folder / "judge").folder
    unseen = Unseen.drawn(UNSEEN, seed=args.unseen, besides=staged.data, known=staged.seed, judge=judge)
    print(f"{len(unseen.examples)} scenes\n\n{HEADER}")
    base = tell("base", unseen.figures(stages / "base"))
    likelihood = continued("smile", stages, "objective.name=mle")
    control = tell("likelihood", unseen.figures(trained(likelihood, args.folder / "mle").folder), base)
    for name in args.only:
        found = unseen.figures(trained(continued(name, stages), args.folder / name).folder)
        tell(name, found, base, control)


def tell(name: str, found: Figures, *others: Figures) -> Figures:
    """A line of the table, and one for each difference."""
    print(f"| {name} | {found.row()} |", flush=True)
    for than, other in zip(("base", "likelihood"), others, strict=False):
        print(f"| … less {than} | {(found - other).row()} |", flush=True)
    return found


if __name__ == "__main__":
    main()
