"""Every matrix product of some work, noted while it runs, to be run again with nothing else around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the layouts of both factors of every matrix product within the block, forward and backward."""

    FIRST: Mapping[str, int] = {"mm": 0, "bmm": 0, "mv": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[tuple[Layout, Layout]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run it, and note what it is."""
        name = func.overloadpacket.__name__
        if name in self.FIRST:
            left, right = args[self.FIRST[name] : self.FIRST[name] + 2]
            self.note(left, right)
        elif name == "_linear_pointwise":  # of weights in oneDNN's own layout, with rows filled up by zeros
            wide, narrow = args[1].shape
            self.note_layouts((tuple(args[0].shape), args[0].stride()), ((narrow, wide), (1, narrow)))
        elif name == "_scaled_dot_product_flash_attention_for_cpu":
            self.note_attention(*args[:3])
        elif name == "_scaled_dot_product_flash_attention_for_cpu_backward":
            self.note_attention(*args[1:4])  # two products forward are four backward
            self.note_attention(*args[1:4])
        return func(*args, **(kwargs or {}))

    def note(self, left: Tensor, right: Tensor) -> None:
        """One product."""
        self.note_layouts((tuple(left.shape), left.stride()), (tuple(right.shape), right.stride()))

    def note_layouts(self, left: Layout, right: Layout) -> None:
        """One product of factors that lie in memory like that."""
        self.found[left, right] += 1

    def note_attention(self, queries: Tensor, keys: Tensor, values: Tensor) -> None:
        """The two products within it."""
        weights = queries.new_empty(*queries.shape[:-1], keys.size(-2))
        self.note(queries, keys.transpose(-2, -1))
        self.note(weights, values)

    def operations(self) -> float:
        """Additions and multiplications, in thousands of millions."""
        return 2e-9 * sum(
            count * prod(left) * prod(right[len(left) - 1 :])
            for ((left, _), (right, _)), count in self.found.items()
        )

    def bare(self) -> Callable[[], None]:
        """All of them again, and nothing else."""
        jobs = [(made_up(left), made_up(right), count) for (left, right), count in self.found.items()]

        @torch.no_grad()
        def multiply() -> None:
            for left, right, count in jobs:
                for _ in range(count):
                    torch.matmul(left, right)

        return multiply


def made_up(layout: Layout) -> Tensor:
    """Random numbers laid out in memory like that."""
    shape, strides = layout
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return torch.rand(last + 1).as_strided(shape, strides)
