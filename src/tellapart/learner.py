"""What the training loop knows of what it trains; captioner, retriever and encoder are the same to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from torch import nn

from tellapart.run import Run
from tellapart.world import World


@runtime_checkable
class Validation(Protocol):
    """What was measured on the validation split."""

    def value(self, metric: str) -> float:
        """The figure of that name, as a recipe writes it; every validation has a "loss"."""
        ...

    def better(self, metric: str, than: float | None) -> bool:
        """Whether this is an improvement by that metric."""
        ...

    def to_json(self) -> dict[str, float]:
        """As plain numbers."""
        ...


@runtime_checkable
class Named(Protocol):
    """A batch, of which the loop only wants to say whose it was when something goes wrong."""

    @property
    def image_ids(self) -> Sequence[str]:
        """What its images are called."""
        ...


@runtime_checkable
class Learner(Protocol):
    """Something to train, with what it is trained and validated on."""

    @property
    def kind(self) -> str:
        """What it is: "captioner", "retriever" or "encoder"."""
        ...

    @property
    def step(self) -> nn.Module:
        """Network and loss as one module: takes a batch and a Context, gives a Loss."""
        ...

    @property
    def network(self) -> nn.Module:
        """What is trained, and kept in checkpoints."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of what gives the weights their meaning: a checkpoint with another is refused."""
        ...

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one pass through the data."""
        ...

    def shares(self, step: int, world: World) -> Sequence[Any]:
        """What this process sees of the batch of a step, in portions (Named ones).

        Batch and shares are a function of the seed, the step and the processes alone.
        """
        ...

    def tokens(self, step: int) -> int:
        """How much the whole batch of a step is, to tell the speed by."""
        ...

    def after_step(self, step: int, world: World) -> None:
        """Note what is to be remembered of a step, in all processes alike."""
        ...

    def note_best(self) -> None:
        """What was trained is the best so far."""
        ...

    def gather(self) -> None:
        """Make all that training will need besides data, or say what is missing."""
        ...

    def validate(self) -> Validation:
        """Measure it on the validation split."""
        ...

    def save(self, run: Run) -> None:
        """Keep it as the best so far."""
        ...

    def summary(self) -> str:
        """What is trained on what, in a line."""
        ...
