"""Every objective trains every captioner, ours and those of checkpoints that others trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.captioners.pretrained.checkpoints import transformers, write_tiny
from tests.objectives.material import SMALL, context, learner, objective_changes

from tellapart.captioner_learner import CaptionerLearner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe import load_recipe
from tellapart.training import prepare_learner

OURS = [name for name in CAPTIONERS.names() if "tiny" in CAPTIONERS.get(name).presets]
OTHERS = ("blip", "git", "vit-gpt2", "blip2", "image-text")
IN_PIECES = ("prefix", *OTHERS)  # what they write are pieces of words
# What cannot be is refused, which is tested beside each objective: retrievers whose words carry a gradient
# read whole words, and an evaluator of captioners that see nothing would see nothing either.
REFUSED = {*((name, "specificity") for name in IN_PIECES), ("rnn-base", "gan")}
PAIRS = [
    (name, objective)
    for name in (*OURS, *OTHERS)
    for objective in OBJECTIVES.names()
    if (name, objective) not in REFUSED
]
WORDS_ALONE = ("objective.hidden=false", "objective.attention=false")  # not all have states and attention
RECIPE = """
seed = 1
[data]
format = "shapes"
text = "mrnn"
[captioner]
name = "{name}"
checkpoint = "{checkpoint}"
"""


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what objectives need, and for checkpoints."""
    transformers.utils.logging.disable_progress_bar()
    return tmp_path_factory.mktemp("needed")


def of_checkpoint(name: str, needed: Path, *changes: str) -> CaptionerLearner:
    """A captioner of a tiny checkpoint, whose decoder is to learn from drawn scenes."""
    checkpoint, path = needed / name, needed / f"{name}.toml"
    if not checkpoint.exists():
        write_tiny(name, checkpoint)
        path.write_text(RECIPE.format(name=name, checkpoint=checkpoint))
    small = [change for change in SMALL if not change.startswith("captioner.")]
    made = prepare_learner(load_recipe(str(path), changes=[*small, *changes]), watch=lambda done, total: None)
    assert isinstance(made, CaptionerLearner)
    return made


def test_all_captioners_are_here() -> None:
    assert {*OURS, *OTHERS} == set(CAPTIONERS.names())


@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_a_step_is_finite_and_reaches_the_captioner(name: str, objective: str, needed: Path) -> None:
    changes = [*objective_changes(objective, needed), *(WORDS_ALONE if objective == "unkt" else ())]
    some = of_checkpoint(name, needed, *changes) if name in OTHERS else learner(*changes, captioner=name)
    loss = some.step.train()(some.batch(0), context())
    loss.total.backward()
    assert loss.total.isfinite()
    found = [weight.grad for weight in some.network.parameters() if weight.grad is not None]
    assert found
    assert all(gradient.isfinite().all() for gradient in found)
    if objective != "reward" or name not in IN_PIECES:  # pieces drawn by chance are no words to be rewarded
        assert sum(float(gradient.norm()) for gradient in found) > 1e-6
