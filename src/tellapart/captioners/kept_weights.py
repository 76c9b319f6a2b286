"""Captioners that hold a checkpoint of others: only what is trained is saved, the rest is read again.

A hash tells at loading if what was frozen is no longer what the captioner was trained with.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor, nn

from tellapart.errors import TellapartError


def keep_only_trained(captioner: nn.Module, *, origin: str) -> None:
    """Settle what of a captioner is saved, by what is trained now: whoever borrows it may freeze it later.

    Args:
        captioner: with all weights as its checkpoint has them.
        origin: what messages call that checkpoint.
    """
    trained = {name: weight for name, weight in captioner.named_parameters() if weight.requires_grad}
    held: dict[str, Tensor] = captioner.state_dict(keep_vars=True)
    # A second name of a trained weight is left out too: it comes with the first.
    left_out = [name for name in held if name not in trained]
    shared = {id(weight) for weight in trained.values()}
    frozen = {name: held[name] for name in left_out if id(held[name]) not in shared}
    captioner.register_buffer("frozen_hash", _hash(frozen) if frozen else None)

    def leave_out(module: nn.Module, weights: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in left_out:
            del weights[prefix + name]

    def fill_in(module: nn.Module, weights: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in left_out:
            if prefix + name in weights:
                raise RuntimeError(f"unexpected weights {prefix + name}: these are never saved")
            weights[prefix + name] = _tensor(module, name)
        given, own = weights.get(f"{prefix}frozen_hash"), module.frozen_hash
        if given is not None and isinstance(own, Tensor) and not torch.equal(given.cpu(), own.cpu()):
            raise TellapartError(
                f"the checkpoint {origin} is not the one that this captioner was trained with",
                hint="restore the files it had then, or train again",
            )

    hooks: Any = captioner  # those that register hooks have no types
    hooks.register_state_dict_post_hook(leave_out)
    hooks.register_load_state_dict_pre_hook(fill_in)


def _hash(weights: dict[str, Tensor]) -> Tensor:
    """Of names and numbers, as bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return torch.tensor(list(digest.digest()[:16]))


def _tensor(module: nn.Module, name: str) -> Tensor:
    path, _, leaf = name.rpartition(".")
    tensor: Tensor = getattr(module.get_submodule(path), leaf)
    return tensor.detach()
