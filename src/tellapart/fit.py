"""How well a captioner expects given captions: loss, perplexity, accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch

from tellapart.corpus import Corpus
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch


@dataclass(frozen=True, slots=True)
class Fit:
    """Mean loss a token in nats, perplexity (Eq. 5 of m-RNN over all words), share of words guessed right.

    The end sign counts as a word. Values of different vocabularies do not compare.
    """

    loss: float
    perplexity: float
    accuracy: float
    # Of the captioner's own greedy captions, where that was asked for:
    words: float | None = None  # mean length
    cider_d: float | None = None
    mean_rank: float | None = None  # of the own picture among all; 0 is best
    recall: float | None = None  # share of them that find their picture first (R@1)

    def better(self, metric: str, than: float | None) -> bool:
        """Whether this is an improvement by that metric."""
        if than is None:
            return True
        value = self.value(metric)
        return value > than if metric in ("accuracy", "cider-d") else value < than

    def value(self, metric: str) -> float:
        """The figure of that name, as a recipe writes it."""
        value: float = getattr(self, metric.replace("-", "_"))
        return value

    def __str__(self) -> str:
        cider = "" if self.cider_d is None else f", CIDEr-D {self.cider_d:.3f}"
        rank = "" if self.mean_rank is None else f", mean rank {self.mean_rank:.1f}"
        recall = "" if self.recall is None else f", R@1 {self.recall:.1%}"
        return f"perplexity {self.perplexity:.2f}, next word right {self.accuracy:.1%}{cider}{rank}{recall}"

    def to_json(self) -> dict[str, float]:
        """As plain numbers; what was not measured is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def perplexity(nats: float, tokens: int) -> float:
    """Eq. 5: 2 to the mean number of bits a word, which is e to the mean number of nats."""
    mean = nats / tokens
    return math.exp(mean) if mean < 700 else math.inf  # e^710 is beyond what a float can hold


@torch.inference_mode()
def measure_fit(captioner: AnyCaptioner, corpus: Corpus, *, images_per_batch: int) -> Fit:
    """Teacher-forced fit to every caption of a corpus."""
    was_training = captioner.training
    captioner.eval()
    nats, right, tokens = 0.0, 0, 0
    for batch in _whole(corpus, images_per_batch):
        logits = captioner.predict(batch.vision, batch.tokens[:, :, :-1]).logits
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        nats += mle(logits, labels, mask).double().sum().item()
        right += int(((logits.argmax(-1) == labels) & mask).sum())
        tokens += int(mask.sum())
    captioner.train(was_training)
    return Fit(nats / tokens, perplexity(nats, tokens), right / tokens)


def _whole(corpus: Corpus, images_per_batch: int) -> Iterator[Batch]:
    most = max(len(group) for group in corpus.captions)
    for rows in corpus.plan(images_per_batch=images_per_batch, seed=0, epoch=0):
        yield corpus.batch(rows, captions_per_image=most, seed=0, epoch=0)
