"""Specificity (Lindh et al. 2018): the captioner writes, a frozen retriever judges, gradients come back.

Of the whole caption that the captioner writes, the retriever tells how close it is to its picture. Its
gradient with respect to the words, taken as one-hot vectors, is put onto the probabilities from which they
were chosen ("straight through"). No caption by a human hand is needed.

Where the retriever's reading of a word stands for the end sign or the unknown word, the gradient treats both
like any other word that could stand there. In the authors' program these two have vectors of zeros, and so no
gradient: `compat = "authors"` does the same with every retriever. That a caption would end there is seen by
neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tellapart.arrays import Float, Int32
from tellapart.errors import TellapartError
from tellapart.objectives.compose import add_up, image_mean, token_objective
from tellapart.objectives.schedules import build_weight
from tellapart.objectives.settings.specificity import SpecificityConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import mle
from tellapart.objectives.writing import Written, gumbel_noise, write
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective, Text

CONTRASTIVE = ("cdp", "ccos")


def build_specificity(config: SpecificityConfig, supplies: Supplies) -> Objective:
    """One of Eq. 2-5, and likelihood beside it where that has a weight."""
    retriever = supplies.retriever(config.retriever)
    near = contrastive_pool(config, supplies) if config.loss in CONTRASTIVE else None
    weight = build_weight(config.mle_weight, supplies.pace)
    likelihood = token_objective(mle, name="mle")

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        generators = [context.of_image(row) for row in batch.rows]
        # Drawn before the noise, so that both estimators meet the same pictures.
        others = None if near is None else draw(near, batch.rows, generators)
        perturb = gumbel_noise(generators) if config.estimator == "gumbel" else (lambda logits: logits)
        temperature = config.temperature if config.estimator == "gumbel" else 1.0
        written = write(
            captioner,
            batch.vision,
            max_words=supplies.max_words,
            perturb=perturb,
            temperature=temperature,
        )
        pictures = retriever.picture_vectors(batch.rows)
        one_hot = teachable(written, captioner.text, config).to(pictures.dtype)
        caption = retriever.word_vectors(one_hot, written.mask)
        own = _similarity(caption, pictures, config)
        values, parts = -own, {"similarity": own}
        if others is not None:
            other = _similarity(caption, retriever.picture_vectors(others), config)
            values = torch.relu(config.margin + other - own)  # Eq. 4 and 5
            parts |= {"contrastive": other, "unsatisfied": (values > 0).to(own)}
        terms = {"specificity": image_mean(values, batch)}
        amount = weight(context.step)
        if amount:
            terms["mle"] = amount * likelihood(captioner, batch, context).total
        parts["words"] = written.mask.sum(1).to(own)
        return add_up(terms, {name: image_mean(value, batch).item() for name, value in parts.items()})

    return objective


def contrastive_pool(config: SpecificityConfig, supplies: Supplies) -> Int32[np.ndarray, "n k"]:
    """The pictures of which each picture's contrastive one is drawn: the share that is most like it."""
    images = len(supplies.training_set)
    count = int(config.share * images + 1e-9)  # 0.29 · 100 is 28.999… in binary
    if count < 1:
        raise TellapartError(
            f"objective.share is {config.share:g}: of {images} training images that is no picture to draw "
            "the contrastive one from",
            hint=f"raise objective.share to {math.ceil(1000 / max(1, images)) / 1000:g} or more, "
            "or train on more images",
        )
    return supplies.training_set.nearest(max(1, min(count, images - 1)))


def draw(
    near: Int32[np.ndarray, "n k"], rows: Sequence[int], generators: Sequence[torch.Generator]
) -> list[int]:
    """A contrastive picture for each, afresh at each visit."""
    return [
        int(near[row, int(torch.randint(near.shape[1], (), generator=generator))])
        for row, generator in zip(rows, generators, strict=True)
    ]


def teachable(written: Written, text: Text, config: SpecificityConfig) -> Float[Tensor, "b t v"]:
    """The words, through which gradients pass; in the authors' program none to signs and the unknown word."""
    if config.compat == "paper":
        return written.one_hot
    signs = torch.zeros(written.one_hot.size(-1), dtype=torch.bool, device=written.one_hot.device)
    signs[[text.end, *text.silent]] = True
    return torch.where(signs, written.one_hot.detach(), written.one_hot)


def _similarity(
    captions: Float[Tensor, "b d"], pictures: Float[Tensor, "b d"], config: SpecificityConfig
) -> Float[Tensor, " b"]:
    """The dot product (Eq. 2, 4), or the cosine (Eq. 3, 5)."""
    if config.loss in ("cos", "ccos") or config.compat == "authors":
        captions, pictures = normalize(captions, dim=-1), normalize(pictures, dim=-1)
    return (captions * pictures).sum(-1)
