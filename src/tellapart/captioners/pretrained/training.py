"""What of a checkpoint is trained, and so saved: its decoder, adapters, or all that a caption depends on."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from tellapart.captioners.pretrained.captioner import PretrainedCaptioner
from tellapart.captioners.settings.pretrained import PretrainedConfig
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
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
    _save_only_trained(captioner.train())


def _try(captioner: PretrainedCaptioner, vision: Vision) -> Tensor:
    text = captioner.text
    tokens = torch.tensor([[[text.start, text.end]]])
    return captioner.predict(vision, tokens).logits


def _add_adapters(captioner: PretrainedCaptioner, config: PretrainedConfig, checkpoint: Checkpoint) -> None:
    peft = import_extra("peft", needed_by="train = 'lora'", extra="pretrained")
    transposed = checkpoint.library.pytorch_utils.Conv1D  # GPT-2's linear layer
    writer = captioner.writer
    linear = {
        name: module
        for name, module in writer.named_modules()
        if isinstance(module, nn.Linear | transposed) and ATTENTION.search(name)
    }
    if not linear:
        raise TellapartError(
            f"the checkpoint {checkpoint.name} has no attention layers that adapters fit to",
            hint="set captioner.train to 'decoder'",
        )
    adapters = peft.LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=sorted(linear),
        fan_in_fan_out=any(isinstance(module, transposed) for module in linear.values()),
    )
    peft.inject_adapter_in_model(adapters, writer)


def _save_only_trained(captioner: PretrainedCaptioner) -> None:
    """Frozen weights come from the checkpoint again: they are neither saved nor asked for at loading."""
    trained = {name for name, parameter in captioner.named_parameters() if parameter.requires_grad}

    def leave_out(module: nn.Module, weights: dict[str, Any], prefix: str, metadata: object) -> None:
        for name in [name for name in weights if name.removeprefix(prefix) not in trained]:
            del weights[name]

    def do_not_miss(module: nn.Module, keys: Any) -> None:
        keys.missing_keys[:] = [key for key in keys.missing_keys if key in trained]

    captioner.register_state_dict_post_hook(leave_out)  # type: ignore[no-untyped-call]
    captioner.register_load_state_dict_post_hook(do_not_miss)  # type: ignore[no-untyped-call]
