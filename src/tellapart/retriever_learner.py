"""A dual encoder as something to train: batches of pairs, a ranking loss, and recall on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from tellapart.corpus import EpochPlans, Pool, Watch, as_vision, look_at_all
from tellapart.data.examples import Example
from tellapart.data.text import words
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.foreign.glove import most_frequent
from tellapart.metrics.retrieval import ranks, recall, sentence_ranks
from tellapart.model_folder import save_model
from tellapart.preparation import pools_of
from tellapart.recipe import RetrieverRecipe
from tellapart.retrievers.dual.folder import WHAT, RetrieverSettings
from tellapart.retrievers.dual.network import DualEncoder
from tellapart.retrievers.dual.sentences import Read
from tellapart.retrievers.ranking import RankingLoss
from tellapart.retrievers.settings import RANKINGS, RETRIEVERS, DualConfig
from tellapart.run import Run
from tellapart.sources import (
    Source,
    by_hash,
    in_words,
    known_captions,
    read_sources,
    refuse_unpaired,
    split_of,
)
from tellapart.storage import cache_folder
from tellapart.types import Context, Loss, Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import traits_of
from tellapart.vision.features import PARTS, Features, in_order
from tellapart.vision.parts import load_encoder
from tellapart.world import World

CHUNK = 500  # sentences embedded together where nothing is learned


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pictures, each with one of its captions."""

    image_ids: tuple[str, ...]
    vision: Vision
    read: Sequence[Read]


@dataclass(frozen=True, slots=True)
class Recalls:
    """Loss, and the share of queries that find their own among the first 1, 5 and 10, both ways."""

    loss: float
    sentences: tuple[float, float, float]  # a picture asks for one of its captions
    pictures: tuple[float, float, float]  # a caption asks for its picture

    def value(self, metric: str) -> float:
        """The figure of that name: "recall" is the sum of all six."""
        return self.loss if metric == "loss" else sum(self.sentences) + sum(self.pictures)

    def better(self, metric: str, than: float | None) -> bool:
        """Whether this is an improvement by that metric."""
        if than is None:
            return True
        return self.value(metric) < than if metric == "loss" else self.value(metric) > than

    def to_json(self) -> dict[str, float]:
        """As plain numbers."""
        shares = {
            f"{kind}_r{k}": share
            for kind in ("sentences", "pictures")
            for k, share in zip((1, 5, 10), asdict(self)[kind], strict=True)
        }
        return {"loss": self.loss, **shares}

    def __str__(self) -> str:
        shown = (" ".join(f"{share:.1%}" for share in shares) for shares in (self.sentences, self.pictures))
        return "R@1, 5, 10 of sentences {}, of pictures {}".format(*shown)


class RankingStep(nn.Module):
    """Network and ranking loss as one module, so that whatever wraps training sees a single forward."""

    def __init__(self, network: DualEncoder, ranking: RankingLoss) -> None:
        super().__init__()
        self.network = network
        self.ranking = ranking

    def forward(self, batch: Pairs, context: Context) -> Loss:
        """The mean loss of a batch's pairs."""
        pictures, sentences = self.network.embed_vision(batch.vision), self.network.embed_read(batch.read)
        total = self.ranking(pictures @ sentences.T, context.generator).mean()
        return Loss(total, {"ranking": total.item()}, {"ranking": total})


@dataclass(frozen=True)
class Captioned:
    """Pictures, as the encoder saw them, with their captions, as the sentence encoder read them."""

    examples: Sequence[Example]
    views: Features  # a row a picture and view: all pictures in the first view, the whole, then in the next
    read: Sequence[Sequence[Read]]

    @property
    def view_count(self) -> int:
        """Views of each picture."""
        return len(self.views.pooled) // len(self.examples)

    def pairs(self, rows: Sequence[int], places: Sequence[int], views: Sequence[int] | None = None) -> Pairs:
        """These pictures, each with the caption of that place, and whole or each in that view."""
        seen = np.array(rows) + len(self.examples) * np.array(views if views else 0)
        vision = as_vision(Features(*(getattr(self.views, part)[seen] for part in PARTS)))
        read = [self.read[row][place] for row, place in zip(rows, places, strict=True)]
        return Pairs(tuple(self.examples[row].image_id for row in rows), vision, read)


@dataclass(frozen=True)
class RetrieverLearner:
    """A dual encoder, its recipe and its data, as the training loop takes them."""

    recipe: RetrieverRecipe
    settings: RetrieverSettings
    text: WordText | None  # None: MiniLM reads
    network: DualEncoder
    train_set: Captioned
    val_set: Captioned
    pools: Sequence[Pool]
    kind: ClassVar[str] = WHAT

    @cached_property
    def step(self) -> RankingStep:
        """Network and ranking loss."""
        name, config = self.recipe.part("ranking")
        return RankingStep(self.network, RANKINGS.get(name).builder()(config))

    @property
    def fingerprint(self) -> str:
        """Of its words."""
        return self.settings.fingerprint

    @cached_property
    def _plans(self) -> EpochPlans:
        return EpochPlans(self._plan)

    def _plan(self, epoch: int) -> list[list[int]]:
        size, seed = self.recipe.training.images_per_batch, self.recipe.seed
        rows = [row for pool in self.pools for row in pool.draw(seed=seed, epoch=epoch)]
        batches = []
        for again in range(self.recipe.training.passes):
            order = np.random.default_rng([seed, epoch, again]).permutation(rows).tolist()
            batches += [order[at : at + size] for at in range(0, len(order), size)]
        return batches

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch, all its passes together."""
        return self._plans.per_epoch

    def shares(self, step: int, world: World) -> Sequence[Pairs]:
        """The whole batch, as each of its pairs is told from all others."""
        if world.size > 1:
            raise TellapartError(
                f"a retriever learns from whole batches, and {world.size} processes would each see a share",
                hint="train it in one process: without torchrun or accelerate launch",
            )
        return [self.batch(step)]

    def batch(self, step: int) -> Pairs:
        """Pictures in random order, each with one of its captions and in one of its views, drawn afresh."""
        _, rows = self._plans.find(step)
        random = np.random.default_rng([self.recipe.seed, step, 1])
        places = [int(random.integers(len(self.train_set.read[row]))) for row in rows]
        views: list[int] = random.integers(self.train_set.view_count, size=len(rows)).tolist()
        return self.train_set.pairs(rows, places, views)

    def tokens(self, step: int) -> int:
        """Pictures of the batch, each with a caption."""
        return len(self._plans.find(step)[1])

    def gather(self) -> None:
        """Nothing is needed but the data."""

    def after_step(self, step: int, world: World) -> None:
        """Nothing is remembered of a step."""

    def note_best(self) -> None:
        """Nobody wants to know."""

    @torch.inference_mode()
    def validate(self) -> Recalls:
        """Recall over the whole validation split."""
        self.network.eval()
        count = len(self.val_set.examples)
        size = self.recipe.training.images_per_batch
        losses = []
        for first in range(0, count, size):
            rows = range(first, min(first + size, count))
            context = Context(first, torch.Generator().manual_seed(first))
            losses += [
                self.step(self.val_set.pairs(list(rows), [0] * len(rows)), context).total.item()
            ] * len(rows)
        scores, own = self._scores(self.val_set)
        to_sentence, to_picture = sentence_ranks(scores, own), ranks(scores, own)
        return Recalls(
            sum(losses) / count,
            (recall(to_sentence, 1), recall(to_sentence, 5), recall(to_sentence, 10)),
            (recall(to_picture, 1), recall(to_picture, 5), recall(to_picture, 10)),
        )

    def _scores(self, data: Captioned) -> tuple[np.ndarray, np.ndarray]:
        """The cosine of every caption with every picture, and the picture of each caption."""
        vision = data.pairs(range(len(data.examples)), [0] * len(data.examples)).vision
        pictures = self.network.embed_vision(vision)
        sentences = [read for group in data.read for read in group]
        embedded = [
            self.network.embed_read(sentences[at : at + CHUNK]) for at in range(0, len(sentences), CHUNK)
        ]
        own = np.repeat(np.arange(len(data.read)), [len(group) for group in data.read])
        return (torch.cat(embedded) @ pictures.T).numpy(), own

    def save(self, run: Run) -> None:
        """As the best retriever of the run."""
        weights = {name: tensor.detach().half().numpy() for name, tensor in self.network.state_dict().items()}
        known = self.text.vocabulary.to_json() if self.text else None
        save_model(run.retriever, self.settings, weights, what=WHAT, words=known)

    def summary(self) -> str:
        """How much there is to learn from."""
        return (
            f"{len(self.train_set.examples)} images to train on, "
            f"{len(self.val_set.examples)} to validate on; "
            f"{sum(weight.numel() for weight in self.network.parameters()):,} weights"
        )


def prepare_retriever(recipe: RetrieverRecipe, *, watch: Watch) -> RetrieverLearner:
    """Read the data, see every picture, read every caption, build the network."""
    sources = read_sources(recipe.data, seed=recipe.seed)
    encoder = load_encoder(recipe.encoder.name)
    traits = traits_of(encoder)
    to_train = [_half(source.split("train"), recipe.training.half) for source in sources]
    train_examples = split_of([example for source in to_train for example in source.examples], "train")
    refuse_unpaired(train_examples, learner="a retriever")
    val_examples = split_of(sources[0].examples, "val")
    name, config = recipe.part("retriever")
    assert isinstance(config, DualConfig)
    text = _text(recipe, config, train_examples)
    torch.manual_seed(recipe.seed)
    network: DualEncoder = RETRIEVERS.get(name).builder()(config, text=text, traits=traits)
    parts = in_order(network.needs)
    cache = FeatureCache(cache_folder(), encoder)

    def captioned(examples: Sequence[Example], views: int) -> Captioned:
        digests = [
            look_at_all(examples, encoder, parts=parts, cache=cache, watch=watch, view=view)
            for view in range(views)
        ]
        seen = cache.read([digest for view in digests for digest in view], parts)
        return Captioned(examples, seen, _read_all(network, examples))

    settings = RetrieverSettings(
        retriever=recipe.retriever,
        encoder=traits.model_copy(update={"nouns": ()}),
        text=text.rules if text else None,
        fingerprint=network.sentences.fingerprint,
        trained_on=in_words(recipe.data, len(train_examples))
        + (f", the {recipe.training.half} half" if recipe.training.half else ""),
    )
    train_set, val_set = captioned(train_examples, recipe.encoder.views), captioned(val_examples, 1)
    return RetrieverLearner(recipe, settings, text, network, train_set, val_set, pools_of(to_train))


def _half(source: Source, half: str) -> Source:
    if not half:
        return source
    ordered = by_hash(source.examples)
    middle = len(ordered) // 2
    return replace(source, examples=ordered[:middle] if half == "first" else ordered[middle:])


def _text(recipe: RetrieverRecipe, config: DualConfig, examples: Sequence[Example]) -> WordText | None:
    """The words of the training captions and, with GloVe, of its most frequent ones."""
    if config.sentences == "minilm":
        return None
    rules = recipe.data.rules()
    text = WordText.build(known_captions(recipe.data, [Source(examples)]), rules)
    more = [
        word
        for word in most_frequent(config.more_words)
        if words(word, rules) == [word] and word not in text.vocabulary
    ]
    return WordText(Vocabulary((*text.vocabulary.words, *more)), rules)


def _read_all(network: DualEncoder, examples: Sequence[Example]) -> list[Sequence[Read]]:
    sentences = [caption for example in examples for caption in example.captions]
    read = iter(network.sentences.read(sentences))
    return [[next(read) for _ in example.captions] for example in examples]
