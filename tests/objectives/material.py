"""What tests of objectives share: real tiny captioners with real supplies, on a few drawn scenes."""

from __future__ import annotations

from pathlib import Path

import torch
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioner_learner import CaptionerLearner
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe import load_recipe
from tellapart.training import prepare_learner
from tellapart.types import Batch, Context, Vision

SMALL = (
    "data.scenes=60",
    "captioner.preset=tiny",
    "training.epochs=4",
    "training.images_per_batch=4",
    "training.captions_per_image=2",
    "decoding.max_words=12",
)


def learner(*changes: str, captioner: str = "mrnn") -> CaptionerLearner:
    """A tiny captioner, untrained and without dropout, that is to learn from drawn scenes."""
    recipe = load_recipe("mrnn-shapes", changes=[f"captioner.name={captioner}", *SMALL, *changes])
    made = prepare_learner(recipe, watch=lambda done, total: None)
    assert isinstance(made, CaptionerLearner)
    return made


def context(step: int = 0, seed: int = 1) -> Context:
    """The context of a step."""
    return Context(step, torch.Generator().manual_seed(step), seed)


def doubled(batch: Batch) -> Batch:
    """The same in double precision, for laws that ask for equality."""
    seen = batch.vision
    vision = Vision(seen.grid.double(), seen.pooled.double(), seen.classes.double(), seen.pictured)
    return Batch(batch.image_ids, vision, batch.tokens, batch.mask, batch.rows, batch.places, batch.whole)


def saved_copy(made: CaptionerLearner, folder: Path) -> Path:
    """The learner's captioner on disk, to be named as a reference or a teacher."""
    from tellapart.captioners.folder import save_captioner

    save_captioner(folder, made.ready.saved, dtype=torch.float32)
    return folder


def objective_changes(name: str, folder: Path) -> list[str]:
    """Changes of a recipe for drawn scenes that name this objective, with what it needs in that folder."""
    changes = [f"objective.name={name}"]
    for setting in OBJECTIVES.get(name).retrievers:
        if not (folder / "retriever").exists():
            write_tiny_dual(folder / "retriever", WORDS)
        changes.append(f"objective.{setting}={folder / 'retriever'}")
    return changes + list(MORE.get(name, ()))


WORDS = ("a red circle is left of the blue square", "the small green triangle above a large yellow star")
# Sixty scenes are few: one in a hundred of them is none.
MORE = {"specificity": ("objective.share=0.1",)}
