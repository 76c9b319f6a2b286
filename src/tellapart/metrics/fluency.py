"""Perplexity of captions by a causal language model: how surprised it is by each token, given those before.

Of one caption it is exp(mean negative log-likelihood of its tokens). The papers' numbers come from GPT-2 by
two programs around transformers, and both are given: **Perplexity** is the mean over captions, as the measure
`perplexity` of the library `evaluate` has it, and **Perplexity-corpus** is exp(mean over all tokens of their
negative log-likelihood), as on the page about perplexity that SMILE cites. A few odd captions raise the mean
much more than the latter.

A caption is read after the model's token for the beginning of a text, which itself is not counted; SmolLM2,
trained on dialogues, is asked after "<|im_start|>assistant", since after its bare first token any text at all
surprises it. Runs of white space count as one blank, and no end token is scored. Captions of more than
LONGEST tokens are cut, with a note. A caption without tokens counts as one token of probability 1 / size of
the vocabulary, what a model would give that knows nothing; a note says so.

Perplexities of unlike models, or of text in unlike case and punctuation, cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tellapart.errors import TellapartError
from tellapart.metrics.language_model import LanguageModel, load_language_model
from tellapart.metrics.material import Material, Metric, Watch
from tellapart.metrics.parts import FluencyConfig
from tellapart.metrics.pretrained import distinct
from tellapart.metrics.score import Floats, Pooled, Score, mean_score, signed

LONGEST = 1023  # tokens of a caption: GPT-2 reads these and its first token
BATCH = 512  # tokens at once, fillings among them: their logits over 50,000 words take 100 MB


def build_fluency(config: FluencyConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: fluency(material, config)


def fluency(material: Material, config: FluencyConfig) -> list[Score]:
    """Perplexity of each image's caption, their mean, and the perplexity of all of them together."""
    model = load_language_model(config.model, material.watch)
    surprise = surprises(model, material.captions, material.watch)
    after = model.opening.strip().replace("|", "")  # which keeps the details of a signature apart
    details = {"model": model.identity, "after": after, "cut": surprise.longest}
    notes = (*_cut_note(surprise), *_empty_note(surprise, model))
    sums = np.stack([surprise.nats, surprise.tokens], axis=1)
    whole = float(corpus_perplexity(sums.sum(axis=0))) if len(sums) else math.nan
    return [
        mean_score(
            "Perplexity", corpus_perplexity(sums), signed(details | {"mean": "captions"}), notes=notes
        ),
        Score(
            "Perplexity-corpus",
            whole,
            signed(details | {"mean": "tokens"}),
            pooled=Pooled(sums, corpus_perplexity),
            notes=notes,
        ),
    ]


def corpus_perplexity(sums: Floats) -> Floats:
    """By the sums of nats and tokens (…, 2), of one caption or of many."""
    return np.asarray(np.exp(sums[..., 0] / sums[..., 1]))


@dataclass(frozen=True, slots=True)
class Surprise:
    """What a model makes of some texts."""

    nats: Floats  # sum of the negative log-likelihoods of a text's tokens
    tokens: Floats  # their number, and 1 where there are none
    longest: int
    cut: int  # texts with more tokens than that
    empty: int  # texts without


def surprises(model: LanguageModel, texts: Sequence[str], watch: Watch) -> Surprise:
    """How surprised a model is by each text; one that stands there several times is read once."""
    once, where = distinct([" ".join(text.split()) for text in texts])
    longest = min(LONGEST, model.window - len(model.opening_ids))
    whole = model.tokens(once)
    kept = [ids[:longest] for ids in whole]
    nats = np.full(len(once), math.log(model.vocabulary))
    done = 0
    for rows in _batches([len(ids) + len(model.opening_ids) for ids in kept]):
        watch("perplexity", done, len(once))
        if filled := [row for row in rows if kept[row]]:
            nats[filled] = _read(model, [kept[row] for row in filled])
        done += len(rows)
    watch("perplexity", len(once), len(once))
    lengths = np.array([len(ids) for ids in kept], dtype=np.float64)
    return Surprise(
        nats=nats[where],
        tokens=np.maximum(lengths, 1.0)[where],
        longest=longest,
        cut=sum(len(whole[row]) > longest for row in where),
        empty=sum(not kept[row] for row in where),
    )


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Texts of similar lengths together, so that little is filled up; the longest last."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[row] * (len(batch) + 1) > BATCH:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _read(model: LanguageModel, texts: Sequence[list[int]]) -> Floats:
    """The negative log-likelihood of each text, none of which may be empty."""
    rows = [model.opening_ids + ids for ids in texts]
    width = max(map(len, rows))
    # Any token fills up: on the right it comes after all that is scored, and the mask hides it besides.
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(width) < lengths[:, None]
    first = len(model.opening_ids)
    with torch.inference_mode():
        logits: Tensor = model.network(input_ids=tokens, attention_mask=mask.long()).logits
        expected = logits[:, first - 1 : -1].float()
        # By words, as they lie in memory: `cross_entropy` wants places last, and would stride over 50,000.
        said = expected.gather(2, tokens[:, first:, None]).squeeze(2)
        loss = expected.logsumexp(2) - said
        nats = (loss.double() * mask[:, first:]).sum(1).numpy()
    if not np.isfinite(nats).all():
        raise TellapartError(
            f"the language model {model.identity} gives numbers that are not finite",
            hint="its weights are damaged: copy or download them again",
        )
    return np.asarray(nats)


def _cut_note(surprise: Surprise) -> tuple[str, ...]:
    if not surprise.cut:
        return ()
    spoken = "1 caption was" if surprise.cut == 1 else f"{surprise.cut} captions were"
    return (f"{spoken} cut at {surprise.longest} tokens for their perplexity",)


def _empty_note(surprise: Surprise, model: LanguageModel) -> tuple[str, ...]:
    if not surprise.empty:
        return ()
    spoken = "1 caption is" if surprise.empty == 1 else f"{surprise.empty} captions are"
    return (f"{spoken} empty: taken as one token of probability 1/{model.vocabulary} for their perplexity",)
