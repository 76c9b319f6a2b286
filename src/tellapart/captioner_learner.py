"""A captioner as something to train: its loss, its batches, and how it is measured on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from tellapart.arrays import Float64, Int64
from tellapart.captioners.folder import save_captioner
from tellapart.captioning import Wish, describe_corpus
from tellapart.corpus import CaptionDraw, EpochPlans
from tellapart.data.examples import Example
from tellapart.fit import Fit, measure_fit
from tellapart.metrics.retrieval import ranks
from tellapart.objectives.parts import OBJECTIVES
from tellapart.objectives.schedules import Pace
from tellapart.preparation import Ready
from tellapart.recipe import Recipe
from tellapart.retrievers.loading import load_retriever
from tellapart.reweighting import caption_preferences
from tellapart.run import Run
from tellapart.scoring import score
from tellapart.supplies import RecipeSupplies
from tellapart.types import AnyCaptioner, Batch, Context, Follows, Loss, Objective, Remembers
from tellapart.world import World


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
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a device never changes
    kind: ClassVar[str] = "captioner"

    @cached_property
    def step(self) -> Step:
        """Captioner and objective."""
        name, config = self.recipe.part("objective")
        return Step(self.network, OBJECTIVES.get(name).builder()(config, self.supplies))

    @cached_property
    def supplies(self) -> RecipeSupplies:
        """What the objective may ask for."""
        pace = Pace(self.steps_per_epoch, self.steps_per_epoch * self.recipe.training.epochs)
        return RecipeSupplies(self.recipe, self.ready, pace, self.device)

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

    def shares(self, step: int, world: World) -> Sequence[Batch]:
        """Images of similar length with some of their captions, as many of them as this process sees."""
        epoch, rows = self._plans.find(step)
        mine, count = world.share(rows), self.recipe.training.portions
        size = -(-len(mine) // count) or 1
        portions = [mine[at : at + size] for at in range(0, len(mine), size)]
        found = self.ready.train_set.shares(rows, portions, self._draw(epoch))
        return [share.to(world.device) for share in found]

    def batch(self, step: int) -> Batch:
        """The whole batch of a step."""
        epoch, rows = self._plans.find(step)
        (batch,) = self.ready.train_set.shares(rows, [rows], self._draw(epoch))
        return batch

    def _draw(self, epoch: int) -> CaptionDraw:
        wanted = self.recipe.training.captions_per_image
        return CaptionDraw(wanted, self.recipe.seed, epoch, self._preferences)

    @cached_property
    def _preferences(self) -> Sequence[Float64[np.ndarray, " k"]] | None:
        training = self.recipe.training
        if training.caption_draw == "uniform":
            return None
        return caption_preferences(
            [example.captions for example in self.ready.train_set.examples],
            self.supplies.places(training.draw_by),
            temperature=training.draw_temperature,
            spread=training.draw_spread,
        )

    def tokens(self, step: int) -> int:
        """Words and end signs that are to be expected."""
        epoch, rows = self._plans.find(step)
        return self.ready.train_set.totals(rows, self._draw(epoch)).tokens

    def after_step(self, step: int, world: World) -> None:
        """Objectives that keep something from step to step are told."""
        objective: object = self.step.objective
        if isinstance(objective, Remembers):
            objective.after_step(step, world.add_up)

    def note_best(self) -> None:
        """Objectives that follow the best captioner are told."""
        objective: object = self.step.objective
        if isinstance(objective, Follows):
            objective.note_best(self.network)

    def gather(self) -> None:
        """Make all that training will need, and say what is missing: nothing may be found out later."""
        self.step.train()
        self._draw(0)
        if self.recipe.training.stop_metric == "mean-rank":
            self._ranking  # noqa: B018 - made when it is first asked for

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(self.recipe.training.rank_by, self.ready.val_set.examples)

    def validate(self) -> Fit:
        """The fit to the validation split; where the recipe stops by what captions are like, of greedy ones.

        On the processor, wherever it is trained.
        """
        self.network.cpu()
        try:
            return self._validate()
        finally:
            self.network.to(self.device)

    def _validate(self) -> Fit:
        size = self.recipe.training.images_per_batch
        fit = measure_fit(self.network, self.ready.val_set, images_per_batch=size)
        metric = self.recipe.training.stop_metric
        if metric not in ("cider-d", "mean-rank"):
            return fit
        captions = greedy_captions(self.ready)
        fit = replace(fit, words=float(np.mean([len(caption.split()) for caption in captions])))
        if metric == "cider-d":
            return replace(fit, cider_d=cider_of(captions, self.ready))
        found = self._ranking(captions)
        return replace(fit, mean_rank=float(found.mean()), recall=float((found == 0).mean()))

    def save(self, run: Run) -> None:
        """As the captioner of the run; it says which retrievers it was trained to please."""
        saved = self.ready.saved
        teachers = (*saved.settings.taught_by, *self.supplies.taught_by)
        settings = saved.settings.model_copy(update={"taught_by": tuple(dict.fromkeys(teachers))})
        save_captioner(run.captioner, replace(saved, settings=settings), dtype=torch.float16)

    def summary(self) -> str:
        """How much there is to learn from."""
        return (
            f"{len(self.ready.train_set.examples)} images to train on, "
            f"{len(self.ready.val_set.examples)} to validate on, {len(self.network.text)} words"
        )


def cider_of(captions: Sequence[str], ready: Ready) -> float:
    """CIDEr-D of captions of the validation split."""
    references = [example.captions for example in ready.val_set.examples]
    return score(captions, references, metrics=["cider"])["CIDEr-D"].corpus


class Ranking:
    """Ranks (0 is best) of the own picture among those of a split, by captions of all of them.

    Lindh et al. 2018 choose their captioner by the mean.
    """

    def __init__(self, retriever: str, examples: Sequence[Example]) -> None:
        self._judge = load_retriever(retriever)
        self._pictures = self._judge.embed_images([example.path for example in examples])

    def __call__(self, captions: Sequence[str]) -> Int64[np.ndarray, " n"]:
        """Of a caption for each picture, in their order."""
        scores = self._judge.embed_texts(captions) @ self._pictures.T
        return ranks(scores, np.arange(len(scores)))


def greedy_captions(ready: Ready) -> list[str]:
    """The captioner's own captions of the validation split."""
    wish = Wish(width=1, max_words=ready.saved.settings.max_words)
    ready.saved.captioner.eval()
    found = describe_corpus(ready.saved, ready.val_set, wish, watch=lambda done, total: None)
    return [candidates[0].caption for candidates in found]
