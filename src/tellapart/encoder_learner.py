"""An encoder to tune: it learns to foretell the words of captions, and to see what it saw before."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tellapart.arrays import Bool, Float, Float32
from tellapart.corpus import EpochPlans, Pool, Watch, look_at_all
from tellapart.data.examples import Example
from tellapart.data.small_words import FUNCTION_WORDS
from tellapart.data.text import TextRules, words
from tellapart.data.views import draw_view
from tellapart.errors import TellapartError
from tellapart.preparation import pools_of
from tellapart.recipe import EncoderRecipe
from tellapart.run import Run
from tellapart.sources import in_words, read_sources, refuse_unpaired, split_of
from tellapart.storage import cache_folder
from tellapart.types import Context, Loss
from tellapart.vision.cache import FeatureCache
from tellapart.vision.early import build_early
from tellapart.vision.efficientnet import EfficientNetLite, content_of, load_network
from tellapart.vision.late_network import LateNetwork
from tellapart.vision.parts import load_encoder
from tellapart.vision.tuned import TunedSettings, save_tuned
from tellapart.vision.tuning import WHAT, TuningConfig, lite_number
from tellapart.world import ALONE, World

SURE = 0.3  # share of a picture's captions that hold a word, from which on the word is right


@dataclass(frozen=True, slots=True)
class Glimpses:
    """Views of pictures as the early blocks see them, and what is to be said of each."""

    image_ids: tuple[str, ...]
    early: Float[Tensor, "b h w c"]
    shares: Float[Tensor, "b v"]  # of its captions that hold each word
    classes: Float[Tensor, "b k"]  # their probabilities by the encoder that is tuned


@dataclass(frozen=True, slots=True)
class Foretold:
    """Loss, and the average precision of words, the mean over those that the split's captions hold."""

    loss: float
    precision: float

    def value(self, metric: str) -> float:
        """The figure of that name."""
        return self.loss if metric == "loss" else self.precision

    def better(self, metric: str, than: float | None) -> bool:
        """Whether this is an improvement by that metric."""
        if than is None:
            return True
        return self.value(metric) < than if metric == "loss" else self.value(metric) > than

    def to_json(self) -> dict[str, float]:
        """As plain numbers."""
        return {"loss": self.loss, "precision": self.precision}

    def __str__(self) -> str:
        return f"loss {self.loss:.3f}, average precision of words {self.precision:.1%}"


class TuningStep(nn.Module):
    """The late blocks, what tells words by them, and both losses as one module."""

    classifier_weight: Tensor
    classifier_bias: Tensor

    def __init__(
        self, late: LateNetwork, classifier: nn.Linear, config: TuningConfig, usual: Float[Tensor, " v"]
    ) -> None:
        super().__init__()
        self.late = late
        self.config = config
        self.dropout = nn.Dropout(config.dropout)
        self.words = word_layer(classifier.in_features, usual)
        self.register_buffer("classifier_weight", classifier.weight.detach(), persistent=False)
        self.register_buffer("classifier_bias", classifier.bias.detach(), persistent=False)

    def forward(self, batch: Glimpses, context: Context) -> Loss:
        """The loss of one batch."""
        return self.loss_of(self.pooled(batch), batch)

    def pooled(self, batch: Glimpses) -> Float[Tensor, "b p"]:
        """The feature of each whole picture."""
        pooled: Tensor = self.late(batch.early).mean(1)
        return pooled

    def loss_of(self, pooled: Float[Tensor, "b p"], batch: Glimpses) -> Loss:
        """Of words, the cross-entropy of all of them together; of classes, the divergence from before."""
        foretold = self.words(self.dropout(pooled))
        told = functional.binary_cross_entropy_with_logits(foretold, batch.shares, reduction="none")
        classes = functional.linear(pooled, self.classifier_weight, self.classifier_bias).log_softmax(-1)
        parts = {
            "words": told.sum(1).mean(),
            "classes": functional.kl_div(classes, batch.classes, reduction="batchmean"),
        }
        terms = {"words": parts["words"], "classes": self.config.keep_classes * parts["classes"]}
        return Loss(
            sum(terms.values(), torch.zeros(())), {name: part.item() for name, part in parts.items()}, terms
        )


def word_layer(width: int, usual: Float[Tensor, " v"]) -> nn.Linear:
    """Logits of words from a feature: before it has learnt anything it says how usual each word is."""
    layer = nn.Linear(width, len(usual))
    nn.init.normal_(layer.weight, std=0.002)
    with torch.no_grad():
        layer.bias.copy_(torch.logit(usual.clamp(1e-4, 1 - 1e-4)))
    return layer


@dataclass(frozen=True)
class Glimpsed:
    """Pictures whose views the early blocks have seen, with the words of their captions."""

    examples: Sequence[Example]
    digests: Sequence[Sequence[bytes]]  # of each view, those of all pictures
    shares: Float32[np.ndarray, "n v"]
    cache: FeatureCache
    sides: tuple[int, int]  # of the grid that the early blocks give

    def glimpses(self, rows: Sequence[int], views: Sequence[int]) -> Glimpses:
        """These pictures, each in that view."""
        seen = self.cache.read(
            [self.digests[view][row] for row, view in zip(rows, views, strict=True)], ("grid", "classes")
        )
        early = torch.from_numpy(seen.grid).float().reshape(len(rows), *self.sides, -1)
        return Glimpses(
            tuple(self.examples[row].image_id for row in rows),
            early,
            torch.from_numpy(self.shares[list(rows)]),
            torch.from_numpy(seen.classes).float(),
        )


@dataclass(frozen=True)
class EncoderLearner:
    """An encoder to tune, its recipe and its data, as the training loop takes them."""

    recipe: EncoderRecipe
    settings: TunedSettings
    step: TuningStep
    words: Sequence[str]  # that are learnt
    train_set: Glimpsed
    val_set: Glimpsed
    pools: Sequence[Pool]
    kind: ClassVar[str] = WHAT

    @property
    def network(self) -> nn.Module:
        """The late blocks and what tells words by them: a checkpoint needs both."""
        return self.step

    @property
    def fingerprint(self) -> str:
        """Of the network whose weights are changed, and of the words that are learnt."""
        return hashlib.sha256(" ".join([self.settings.content, *self.words]).encode()).hexdigest()

    @cached_property
    def _plans(self) -> EpochPlans:
        return EpochPlans(self._plan)

    def _plan(self, epoch: int) -> list[list[int]]:
        size = self.recipe.training.images_per_batch
        rows = [row for pool in self.pools for row in pool.draw(seed=self.recipe.seed, epoch=epoch)]
        order = np.random.default_rng([self.recipe.seed, epoch]).permutation(rows).tolist()
        return [order[at : at + size] for at in range(0, len(order), size)]

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one pass through the pictures."""
        return self._plans.per_epoch

    def shares(self, step: int, world: World) -> Sequence[Glimpses]:
        """Pictures in random order, each in a view that is drawn afresh."""
        epoch, rows = self._plans.find(step)
        count, seed = len(self.train_set.digests), self.recipe.seed
        views = [draw_view(count, seed=seed, epoch=epoch, row=row) for row in rows]
        return [self.train_set.glimpses(rows, views)]

    def tokens(self, step: int) -> int:
        """Pictures of the batch."""
        return len(self._plans.find(step)[1])

    def gather(self) -> None:
        """Nothing is needed but the data."""

    def after_step(self, step: int, world: World) -> None:
        """Nothing is remembered of a step."""

    def note_best(self) -> None:
        """Nobody wants to know."""

    @torch.inference_mode()
    def validate(self) -> Foretold:
        """By the whole pictures of the validation split."""
        self.step.eval()
        count, size = len(self.val_set.examples), self.recipe.training.images_per_batch
        losses, logits = 0.0, []
        for first in range(0, count, size):
            rows = range(first, min(first + size, count))
            batch = self.val_set.glimpses(rows, [0] * len(rows))
            pooled = self.step.pooled(batch)
            losses += self.step.loss_of(pooled, batch).total.item() * len(rows)
            logits.append(self.step.words(pooled).numpy())
        return Foretold(losses / count, mean_precision(np.concatenate(logits), self.val_set.shares >= SURE))

    def save(self, run: Run) -> None:
        """As the encoder of the run: what is changed, without what tells words by it."""
        weights = {name: tensor.detach().numpy() for name, tensor in self.step.late.state_dict().items()}
        save_tuned(run.encoder, self.settings, weights)

    def summary(self) -> str:
        """How much there is to learn from."""
        changed = sum(weight.numel() for weight in self.step.late.parameters())
        return (
            f"{len(self.train_set.examples)} images in {len(self.train_set.digests)} views to tune on, "
            f"{len(self.val_set.examples)} to validate on; {self.train_set.shares.shape[1]} words, "
            f"{changed:,} weights"
        )


def mean_precision(logits: Float32[np.ndarray, "n v"], right: Bool[np.ndarray, "n v"]) -> float:
    """The average precision of a word, its likeliest pictures first: the mean over words right somewhere."""
    order = np.argsort(-logits, axis=0, kind="stable")
    found = np.take_along_axis(right, order, axis=0)
    places = np.arange(1, len(found) + 1)[:, None]
    precision = (np.cumsum(found, axis=0) / places * found).sum(axis=0)
    counts = found.sum(axis=0)
    return float((precision[counts > 0] / counts[counts > 0]).mean()) if counts.any() else 0.0


def prepare_encoder(recipe: EncoderRecipe, *, watch: Watch, world: World = ALONE) -> EncoderLearner:
    """Read the data, see every view of every picture with the blocks that stay, build the others."""
    if world.size > 1:
        raise TellapartError(
            f"an encoder is tuned by one process, and here are {world.size}",
            hint="tune it without torchrun or accelerate launch",
        )
    config, sources = recipe.tuning, read_sources(recipe.data, seed=recipe.seed)
    number, whole = lite_number(recipe.encoder.name), load_encoder(recipe.encoder.name)
    assert isinstance(whole, EfficientNetLite)
    to_train = [source.split("train") for source in sources]
    train_examples = split_of([one for source in to_train for one in source.examples], "train")
    val_examples = split_of(sources[0].examples, "val")
    refuse_unpaired([*train_examples, *val_examples], learner="an encoder")
    known = tuned_words(train_examples, recipe.data.rules(), min_images=config.min_images)
    network = load_network(number)
    _refuse_blocks(config, len(network._blocks))  # noqa: SLF001 - it has no public name
    early = build_early(number, whole, first=config.first_block)
    cache = FeatureCache(cache_folder(), early)
    side = int(early.shapes["grid"][0] ** 0.5)

    def glimpsed(examples: Sequence[Example], views: int) -> Glimpsed:
        digests = [
            look_at_all(examples, early, parts=("grid", "classes"), cache=cache, watch=watch, view=view)
            for view in range(views)
        ]
        shares = word_shares(examples, known, recipe.data.rules())
        return Glimpsed(examples, digests, shares, cache, (side, side))

    train_set, val_set = glimpsed(train_examples, recipe.encoder.views), glimpsed(val_examples, 1)
    torch.manual_seed(recipe.seed)
    late = LateNetwork(network, first=config.first_block, rank=config.rank, left_out=config.left_out)
    step = TuningStep(late, network._fc, config, torch.from_numpy(train_set.shares.mean(0)))  # noqa: SLF001
    settings = TunedSettings(
        tuning=config,
        base=recipe.encoder.name,
        content=content_of(number),
        trained_on=in_words(recipe.data, len(train_examples)),
    )
    return EncoderLearner(recipe, settings, step, known, train_set, val_set, pools_of(to_train))


def tuned_words(examples: Sequence[Example], rules: TextRules, *, min_images: int) -> list[str]:
    """The words that are learnt, in alphabetical order."""
    counts = Counter(word for example in examples for word in _said(example, rules))
    known = sorted(
        word for word, count in counts.items() if count >= min_images and word not in FUNCTION_WORDS
    )
    if not known:
        raise TellapartError(
            f"no word stands in the captions of {min_images} pictures",
            hint="lower tuning.min_images, or train on more captions",
        )
    return known


def word_shares(
    examples: Sequence[Example], known: Sequence[str], rules: TextRules
) -> Float32[np.ndarray, "n v"]:
    """The share of each picture's captions that hold each word."""
    places = {word: number for number, word in enumerate(known)}
    shares = np.zeros((len(examples), len(known)), np.float32)
    for row, example in enumerate(examples):
        for word, count in _said(example, rules).items():
            if word in places:
                shares[row, places[word]] = count / len(example.captions)
    return shares


def _said(example: Example, rules: TextRules) -> Counter[str]:
    """How many of its captions hold each word."""
    return Counter(word for caption in example.captions for word in set(words(caption, rules)))


def _refuse_blocks(config: TuningConfig, count: int) -> None:
    if config.first_block >= count:
        raise TellapartError(
            f"tuning.first_block is {config.first_block}, and the encoder has {count} blocks, counted from 0",
            hint=f"name one from 1 to {count - 1}",
        )
