"""What of a checkpoint is trained, and so saved: its decoder, adapters, or all that a caption depends on."""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from tellapart.captioners.adapters import add_adapters
from tellapart.captioners.kept_weights import keep_only_trained
from tellapart.captioners.pretrained.captioner import PretrainedCaptioner
from tellapart.captioners.settings.pretrained import PretrainedConfig
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.checkpoints import Checkpoint, reached

ATTENTION = re.compile(r"(^|[._])(self_|cross)?att(n|ention)[._]")
"""Where in a network its attention is: there the adapters go (Hu et al. 2022, LoRA, section 4.2)."""


def prepare_training(
    captioner: PretrainedCaptioner, config: PretrainedConfig, checkpoint: Checkpoint, vision: Vision
) -> None:
    """Freeze what is not trained, and keep only what is in the captioner's own file.

    Args:
        captioner: whose weights are all as the checkpoint has them.
        config: what is to be trained.
        checkpoint: it was made from; an error where the file lacks a weight that captions depend on.
        vision: any image, to find out which weights a caption depends on at all.
    """
    with torch.enable_grad():
        captioner.eval().requires_grad_(True)
        checkpoint.expect_whole(_try(captioner, vision))
        if config.train == "lora":
            captioner.requires_grad_(False)
            _add_adapters(captioner, config, checkpoint)
        used = reached(_try(captioner, vision))
    for parameter in captioner.parameters():
        # A tower's pooling layer, the embedding of a video's frames: nothing would ever train them.
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in used)
    keep_only_trained(captioner.train(), origin=checkpoint.name)


def _try(captioner: PretrainedCaptioner, vision: Vision) -> Tensor:
    text = captioner.text
    tokens = torch.tensor([[[text.start, text.end]]])
    return captioner.predict(vision, tokens).logits


def _add_adapters(captioner: PretrainedCaptioner, config: PretrainedConfig, checkpoint: Checkpoint) -> None:
    transposed = checkpoint.library.pytorch_utils.Conv1D  # GPT-2's linear layer
    hint = "set captioner.train to 'decoder'"
    linear = sorted(
        name
        for name, module in captioner.writer.named_modules()
        if isinstance(module, nn.Linear | transposed) and ATTENTION.search(name)
    )
    if not linear:
        raise TellapartError(
            f"the checkpoint {checkpoint.name} has no attention layers that adapters fit to", hint=hint
        )
    add_adapters(captioner.writer, config, targets=linear, model=checkpoint.name, hint=hint)
