"""A captioner as something to train: its loss, its batches, and how it is measured on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import nn

from tellapart.captioners.folder import save_captioner
from tellapart.captioning import Wish, describe_corpus
from tellapart.corpus import EpochPlans
from tellapart.fit import Fit, measure_fit
from tellapart.objectives.parts import OBJECTIVES
from tellapart.preparation import Ready
from tellapart.recipe import Recipe
from tellapart.run import Run
from tellapart.scoring import score
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


class Step(nn.Module):
    """Captioner and objective as one module, so that whatever wraps training sees a single forward."""

    def __init__(self, captioner: AnyCaptioner, objective: Objective) -> None:
        super().__init__()
        self.captioner = captioner
        self.objective = objective

    def forward(self, batch: Batch, context: Context) -> Loss:
        """The loss of one batch."""
        return self.objective(self.captioner, batch, context)


@dataclass(frozen=True)
class CaptionerLearner:
    """A captioner, its recipe and its data, as the training loop takes them."""

    recipe: Recipe
    ready: Ready
    kind: ClassVar[str] = "captioner"

    @cached_property
    def step(self) -> Step:
        """Captioner and objective."""
        name, config = self.recipe.part("objective")
        return Step(self.network, OBJECTIVES.get(name).builder()(config))

    @property
    def network(self) -> AnyCaptioner:
        """The captioner."""
        return self.ready.saved.captioner

    @property
    def fingerprint(self) -> str:
        """Of its words."""
        return self.ready.saved.settings.fingerprint

    @cached_property
    def _plans(self) -> EpochPlans:
        size, seed = self.recipe.training.images_per_batch, self.recipe.seed
        corpus = self.ready.train_set
        return EpochPlans(lambda epoch: corpus.plan(images_per_batch=size, seed=seed, epoch=epoch))

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one pass through the data."""
        return self._plans.per_epoch

    def batch(self, step: int) -> Batch:
        """Images of similar length with some of their captions."""
        epoch, rows = self._plans.find(step)
        wanted = self.recipe.training.captions_per_image
        return self.ready.train_set.batch(rows, captions_per_image=wanted, seed=self.recipe.seed, epoch=epoch)

    def tokens(self, batch: Batch) -> int:
        """Words and end signs that are to be expected."""
        return int(batch.mask[:, :, 1:].sum())

    def validate(self) -> Fit:
        """The fit to the validation split; where the recipe stops by it, CIDEr-D of greedy captions too."""
        size = self.recipe.training.images_per_batch
        fit = measure_fit(self.network, self.ready.val_set, images_per_batch=size)
        if self.recipe.training.stop_metric == "cider-d":
            fit = replace(fit, cider_d=greedy_cider(self.ready))
        return fit

    def save(self, run: Run) -> None:
        """As the best captioner of the run."""
        save_captioner(run.captioner, self.ready.saved, dtype=torch.float16)

    def summary(self) -> str:
        """How much there is to learn from."""
        return (
            f"{len(self.ready.train_set.examples)} images to train on, "
            f"{len(self.ready.val_set.examples)} to validate on, {len(self.network.text)} words"
        )


def greedy_cider(ready: Ready) -> float:
    """CIDEr-D of the captioner's own captions of the validation split, each word the likeliest."""
    captioner, examples = ready.saved.captioner, ready.val_set.examples
    wish = Wish(width=1, max_words=ready.saved.settings.max_words)
    captioner.eval()
    found = describe_corpus(ready.saved, ready.val_set, wish, watch=lambda done, total: None)
    captions = [candidates[0].caption for candidates in found]
    scores = score(captions, [example.captions for example in examples], metrics=["cider"])
    return scores["CIDEr-D"].corpus
