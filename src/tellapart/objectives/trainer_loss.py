"""SMILE as `compute_loss_func` of transformers' Trainer, for language models of any kind."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.errors import TellapartError
from tellapart.objectives.semipermeable import First, smile
from tellapart.objectives.tokens import mle

IGNORED = -100  # how transformers marks places without a label


@runtime_checkable
class TrainerLoss(Protocol):
    """What the Trainer calls with a model's outputs, once it has taken the labels out of its inputs."""

    def __call__(
        self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """The loss of a batch, of which there may be `num_items_in_batch` labels elsewhere too."""
        ...


def smile_loss(
    model: Any, *, mle_share: float = 0.0, first: str = "mle", ends: tuple[int, ...] | None = None
) -> TrainerLoss:
    """λ·MLE + (1-λ)·SMILE a token, for `Trainer(model, ..., compute_loss_func=smile_loss(model))`.

    A caption is all of a row that has a label: what is prompt or padding has -100. The Trainer takes labels
    away from the model, so an encoder-decoder model must be given `decoder_input_ids`, as
    `DataCollatorForSeq2Seq(tokenizer, model=model)` makes them.

    Args:
        model: whose config says whether it is an encoder-decoder; a causal one has its labels shifted.
        mle_share: λ; the authors' published mixture has 0.01.
        first: "mle": the first label competes with all words; "none": only with those of its text.
        ends: ids that close a text and compete everywhere; None: those of the model's generation settings.
    """
    if not 0 <= mle_share <= 1:
        raise TellapartError(f"mle_share is {mle_share}", hint="it is a share: between 0 and 1")
    if first not in ("mle", "none"):
        raise TellapartError(
            f"first is {first!r}: for a model of transformers it is 'mle' or 'none'",
            hint="to shift first tokens, replace them in the data and set first='none'",
        )
    wanted: First = "mle" if first == "mle" else "none"
    closing = find_ends(model) if ends is None else ends
    shifts = not getattr(model.config, "is_encoder_decoder", False)

    def loss(outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        logits, labels = align(logits, labels, shifts=shifts)
        mask = labels != IGNORED
        labels = labels.masked_fill(~mask, 0)
        total = logits.new_zeros(())
        if mle_share > 0:
            total = total + mle_share * mle(logits, labels, mask).sum()
        if mle_share < 1:
            total = total + (1 - mle_share) * smile(logits, labels, mask, first=wanted, ends=closing).sum()
        count = mask.sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch
        return total / count

    return loss


def align(
    logits: Float[Tensor, "n s v"], labels: Int[Tensor, "n t"] | None, *, shifts: bool
) -> tuple[Float[Tensor, "n p v"], Int[Tensor, "n p"]]:
    """Logits and the labels they are for.

    A causal model's logits are for the label one place on; where it has more, a picture stands in front.
    """
    if labels is None:
        raise TellapartError("a batch without labels", hint="let the data collator add 'labels'")
    length = labels.shape[1]
    if shifts and logits.shape[1] >= length:
        return logits[:, -length:][:, :-1], labels[:, 1:]
    if logits.shape[1] != length:
        raise TellapartError(
            f"the model expects {logits.shape[1]} tokens, and the labels are {length}",
            hint="an encoder-decoder model needs decoder_input_ids: "
            "DataCollatorForSeq2Seq(tokenizer, model=model) adds them",
        )
    return logits, labels


def find_ends(model: Any) -> tuple[int, ...]:
    """The ids that close a text: a model's generation settings say, or its config."""
    for settings in (getattr(model, "generation_config", None), model.config):
        found = getattr(settings, "eos_token_id", None)
        if found is not None:
            return tuple(found) if isinstance(found, list) else (found,)
    raise TellapartError(
        f"{type(model).__name__} does not say which token closes a text", hint="name it: ends=(id,)"
    )
