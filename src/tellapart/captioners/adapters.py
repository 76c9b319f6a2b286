"""Low-rank adapters (Hu et al. 2022, LoRA, Eq. 3): W + alpha/rank · B·A in place of W, by peft."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from tellapart.captioners.settings.kinds import LoraSettings
from tellapart.errors import TellapartError
from tellapart.extras import import_extra

MARK = "lora_"  # what peft puts into the names of its weights


def add_adapters(
    network: nn.Module, config: LoraSettings, *, targets: Sequence[str] | str, model: str, hint: str
) -> None:
    """Put adapters into the named layers of a network, in place.

    Args:
        network: whose layers get adapters.
        config: rank, scale and dropout.
        targets: names of layers, or a word that peft knows.
        model: what messages call the network.
        hint: what to do where none fit.
    """
    peft = import_extra("peft", needed_by="train = 'lora'", extra="pretrained")
    settings = peft.LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        # Some keep their matrices input by output, as GPT-2 does.
        fan_in_fan_out=any(type(module).__name__ == "Conv1D" for module in network.modules()),
    )
    try:
        peft.inject_adapter_in_model(settings, network)
    except ValueError as error:
        raise TellapartError(f"no low-rank adapters fit {model}: {error}", hint=hint) from error
