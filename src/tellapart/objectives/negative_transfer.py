"""UNKT (Fei and Huang 2023): learn from captions by likelihood, and from a negative teacher what not to say.

    L = (1-λ)·L_mle + λ·(L_pred + Σ_l L_hid + Σ_l L_att)        Eq. 9

The teacher is a captioner that learnt generic captions. It is frozen, reads the true words, and gets no
gradient. Not in the paper, and so decided here: the hidden states of a place become a distribution by a
softmax over their features, attention is that of words to the picture, hard targets are the teacher's
likeliest words after the true ones, and padding counts nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tellapart.arrays import Bool, Float, Int
from tellapart.errors import TellapartError
from tellapart.objectives.compose import share_of, token_mean
from tellapart.objectives.schedules import Weight, build_weight
from tellapart.objectives.settings.negative_transfer import UNKTConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import mle, precise
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective, Prediction

LEAST = 1e-19  # of the attention to a place: below, its logarithm's slope would soon be infinite

Draw = Callable[[Batch, Context], Int[Tensor, " n"]]  # a random word for each word of a batch


def build_unkt(config: UNKTConfig, supplies: Supplies) -> Objective:
    """Negative transfer from a teacher; where layers are compared, it must have the captioner's sizes."""
    teacher = supplies.captioner(config.teacher) if config.teacher else supplies.own_copy()
    student = supplies.glimpse()
    taught = supplies.glimpse(teacher)
    for name, term in (("hidden", config.hidden), ("attention", config.attention)):
        if term:
            _refuse_unlike(name, getattr(student, name), getattr(taught, name))
    draw = random_words(supplies) if config.targets == "random" else None
    return NegativeTransfer(config, (teacher,), build_weight(config.weight, supplies.pace), draw)


def _refuse_unlike(name: str, student: Sequence[Tensor], teacher: Sequence[Tensor]) -> None:
    what = "hidden states" if name == "hidden" else "attention"
    for whose, layers in (("the captioner", student), ("its teacher", teacher)):
        if not layers:
            raise TellapartError(
                f"the objective 'unkt' compares the {what} of every layer, and {whose} has none",
                hint=f"set objective.{name}=false, or captioner.name=transformer (or meshed)",
            )
    # Of the sizes (images, captions, heads, places, …) those that do not depend on the caption.
    sizes = [[(*layer.shape[2:-2], layer.shape[-1]) for layer in layers] for layers in (student, teacher)]
    if sizes[0] != sizes[1]:
        raise TellapartError(
            f"the objective 'unkt' compares the {what} of every layer; the captioner's are of sizes "
            f"{sizes[0]}, its teacher's of {sizes[1]}",
            hint=f"train the teacher with the same [captioner], or set objective.{name}=false",
        )


@dataclass(frozen=True)
class NegativeTransfer:
    """Likelihood and what is to be unlearnt, weighed by λ; a term of weight 0 is not computed."""

    config: UNKTConfig
    teacher: tuple[AnyCaptioner]  # in a tuple: a module inside a module would be trained and saved with it
    weight: Weight
    draw: Draw | None = None

    def __call__(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """Eq. 9; the log holds every term as it is, and λ."""
        share = self.weight(context.step)
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        student = captioner.predict(batch.vision, batch.tokens[:, :, :-1])
        found: list[tuple[str, float, Tensor]] = []
        if share < 1:
            found.append(("mle", 1 - share, token_mean(mle(student.logits, labels, mask), mask, batch)))
        if share > 0:
            found += [(name, share, term) for name, term in self._negative(student, batch, context)]
        terms = {name: weight * term for name, weight, term in found}
        parts = {name: term.item() for name, _, term in found}
        parts["weight"] = share * share_of(batch)
        return Loss(torch.stack(list(terms.values())).sum(), parts, terms)

    def _negative(
        self, student: Prediction, batch: Batch, context: Context
    ) -> Iterator[tuple[str, Float[Tensor, ""]]]:
        """What is to be unlearnt: L_pred, Σ_l L_hid, Σ_l L_att, each a mean over the tokens of the batch."""
        mask, tokens = batch.mask[:, :, 1:], max(1, batch.totals().tokens)
        with torch.no_grad():
            teacher = self.teacher[0].predict(batch.vision, batch.tokens[:, :, :-1])
        if self.config.predictions:
            yield "predictions", self._unlikely(student, teacher, batch, context).sum() / tokens
        if self.config.hidden:
            layers = zip(teacher.hidden, student.hidden, strict=True)
            alike = [nearness(softened(one[mask]), softened(other[mask])) for one, other in layers]
            yield "hidden", torch.stack(alike).sum() / tokens
        if self.config.attention:
            layers = zip(teacher.attention, student.attention, strict=True)
            alike = [nearness(attended(one, mask), attended(other, mask)).mean(-1) for one, other in layers]
            yield "attention", torch.stack(alike).sum() / tokens

    def _unlikely(
        self, student: Prediction, teacher: Prediction, batch: Batch, context: Context
    ) -> Float[Tensor, " n"]:
        mask, temperature = batch.mask[:, :, 1:], self.config.temperature
        logits = precise(student.logits[mask]) / temperature
        if self.draw is not None:
            return unlikelihood(logits, self.draw(batch, context))
        if self.config.targets == "hard":
            return unlikelihood(logits, teacher.logits[mask].argmax(-1))
        return soft_unlikelihood(logits, (precise(teacher.logits[mask]) / temperature).softmax(-1))


def unlikelihood(logits: Float[Tensor, "n v"], words: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """-log(1 - p(word)): Eq. 5 where the teacher is sure of one word.

    1 - p is what all other words have together, so that it is never rounded to nothing.
    """
    others = logits.scatter(-1, words.unsqueeze(-1), -torch.inf)
    return logits.logsumexp(-1) - others.logsumexp(-1)


def soft_unlikelihood(logits: Float[Tensor, "n v"], targets: Float[Tensor, "n v"]) -> Float[Tensor, " n"]:
    """-Σ_k p_n(k)·log(1 - p_s(k)) of each token (Eq. 5); `targets` are p_n, which gets no gradient."""
    found: Tensor = _SoftUnlikelihood.apply(logits, targets)  # type: ignore[no-untyped-call]
    return found


class _SoftUnlikelihood(torch.autograd.Function):
    """Eq. 5 with its gradient worked out by hand: one array of words is kept for it instead of six.

    With r_k = p_n(k)·p_s(k) / (1 - p_s(k)), the derivative by logit j is r_j - p_s(j)·Σ_k r_k. Of the
    likeliest word m, 1 - p_s(m) may be too little to be told from 0: it is computed as what all other words
    have together. The two terms of its own derivative leave p_s(m)·(p_n(m) - Σ_{k≠m} r_k), and r_m takes from
    any other word p_n(m)·p_s(m) times that word's share of all but m.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        best, top = logits.max(-1, keepdim=True)
        others = (logits - best).scatter_(-1, top, -torch.inf)
        rest, share = others.logsumexp(-1, keepdim=True), others.softmax(-1)
        del others
        of_top, left, taken = targets.gather(-1, top), rest.sigmoid(), (-rest).sigmoid()  # 1 - p_s(m), p_s(m)
        student = share * left  # 0 at the likeliest word, and one half at the most at any other
        values = (of_top * softplus(-rest)).squeeze(-1) - (targets * torch.log1p(-student)).sum(-1)
        odds = (targets * student).div_(1 - student)
        total = odds.sum(-1, keepdim=True)
        slope = odds.sub_(share.mul_(left * total + of_top * taken))
        ctx.save_for_backward(slope.scatter_(-1, top, taken * (of_top - total)))
        return values

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return upstream.unsqueeze(-1) * slope, None


def softened(hidden: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Hidden states as logarithms of a distribution over their features."""
    return precise(hidden).log_softmax(-1)


def attended(attention: Float[Tensor, "b k h t p"], mask: Bool[Tensor, "b k t"]) -> Float[Tensor, "n h p"]:
    """Logarithms of what each word attended to, head by head."""
    return precise(attention.transpose(2, 3)[mask]).clamp_min(LEAST).log()


def nearness(teacher: Float[Tensor, "*n d"], student: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """exp(-KL(P, Q)) of rows of log-probabilities, the elements of Eq. 6: 1 where they are equal."""
    divergence = (teacher.exp() * (teacher - student)).sum(-1)
    return (-divergence.clamp_min(0)).exp()  # rounding may take it below 0


def random_words(supplies: Supplies) -> Draw:
    """Draws words of the training captions, each as often as it stands there, an image at a time."""
    text, images = supplies.text, supplies.training_set
    signs = {text.pad, text.start, text.end, *text.silent}
    captions = (caption for row in range(len(images)) for caption in images.captions(row))
    known = torch.tensor([token for caption in captions for token in caption if token not in signs])

    def draw(batch: Batch, context: Context) -> Int[Tensor, " n"]:
        counts = batch.mask[:, :, 1:].flatten(1).sum(1).tolist()
        drawn = [
            torch.randint(len(known), (count,), generator=context.of_image(row))
            for row, count in zip(batch.rows, counts, strict=True)
        ]
        return known[torch.cat(drawn)].to(batch.tokens.device)

    return draw
