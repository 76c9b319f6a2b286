"""The processes that train together: one by default, more under `torchrun` or `accelerate launch`.

Each sees a share of every batch. What they learn from it is added up, so that all hold the same weights, and
the same as one process that sees the whole batch. The first one alone decides and writes files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TypeVar

import torch
from torch import Tensor, distributed

from tellapart.errors import TellapartError

_LAUNCHERS = "start several processes with torchrun or accelerate launch, which set all that is needed"

_LOST = "gloo/transport"  # in what gloo says when a process is gone; NCCL has errors of a kind of their own

T = TypeVar("T")
R = TypeVar("R")


class LeftBehindError(TellapartError):
    """Another of the processes has ended, and has said why: this one cannot go on without it."""

    def __init__(self, world: World) -> None:
        super().__init__(
            f"process {world.rank + 1} of {world.size} ends, for another one has ended",
            hint="what that one has said tells why",
        )


@dataclass(frozen=True, slots=True)
class World:
    """This process among all that train together."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a device never changes

    @property
    def leads(self) -> bool:
        """Whether this process is the one that decides and writes."""
        return self.rank == 0

    def share(self, rows: Sequence[R]) -> Sequence[R]:
        """What of a batch this process sees."""
        return rows[self.rank :: self.size]

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one exchange."""
        listed = list(tensors)
        if self.size == 1 or not listed:
            return
        joined = torch.cat([tensor.reshape(-1) for tensor in listed])
        with self._exchanging():
            distributed.all_reduce(joined)
        sums = torch.split(joined, [tensor.numel() for tensor in listed])
        for tensor, summed in zip(listed, sums, strict=True):
            tensor.copy_(summed.view_as(tensor))

    def agree(self, value: T) -> T:
        """The first process's value, in every process."""
        if self.size == 1:
            return value
        box = [value]
        with self._exchanging():
            distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def total(self, value: float) -> float:
        """The sum of a number over all processes."""
        summed = torch.tensor([value], dtype=torch.float64, device=self.device)
        self.add_up([summed])
        return summed.item()

    def any(self, flag: bool) -> bool:
        """Whether it is true of any process."""
        return self.total(float(flag)) > 0

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Within the block, a process that is gone is no riddle."""
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, distributed.DistError) or _LOST in str(error):
                raise LeftBehindError(self) from error
            raise


ALONE = World()


@contextmanager
def join_world() -> Iterator[World]:
    """The processes that a launcher has started, as its environment variables tell; or this one alone."""
    size = _number("WORLD_SIZE", 1)
    if size <= 1:
        yield ALONE
        return
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", _number("LOCAL_RANK", 0)) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same bits each time
    # Its functions have the group that is there when it is imported as a default: imported later, by torch
    # itself, it would keep the group and gloo's threads beyond their end, and such a thread that lets go of a
    # tensor while Python ends aborts the process (pytorch/pytorch#190489).
    import_module("torch.distributed.nn.functional")
    try:
        # The others wait while the first looks at all pictures, or validates: hours, if it must be.
        distributed.init_process_group("nccl" if has_gpu else "gloo", timeout=timedelta(days=7))
    except ValueError as error:
        raise TellapartError(
            f"WORLD_SIZE is {size}, but the processes cannot find each other: {error}", hint=_LAUNCHERS
        ) from error
    try:
        yield World(distributed.get_rank(), size, device)
    finally:
        distributed.destroy_process_group()


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError as error:
        raise TellapartError(
            f"the environment variable {name} is {text!r}, not a number",
            hint=_LAUNCHERS,
        ) from error
