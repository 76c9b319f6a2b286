"""One update of the weights: the shares of a batch, their gradients added up, and how fast to move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tellapart.errors import TellapartError
from tellapart.learner import Named
from tellapart.recipe import AnyRecipe
from tellapart.recipe_sections import OptimiserConfig
from tellapart.types import Context, Loss
from tellapart.world import ALONE, World


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step came to, over the whole batch."""

    loss: float
    parts: Mapping[str, float]
    norms: Mapping[str, float]  # of the gradient of each term of the loss, where that was asked for


@dataclass(frozen=True, slots=True)
class Moment:
    """Which step of how many it is, and whether the log wants to know about each term."""

    number: int
    steps: int
    by_term: bool = False


def take_step(
    step: nn.Module,
    optimiser: torch.optim.Optimizer,
    shares: Sequence[Named],
    recipe: AnyRecipe,
    moment: Moment,
    *,
    world: World = ALONE,
) -> Taken:
    """One update of the weights by the losses of all shares of a batch."""
    number = moment.number
    # Streams of their own, or what an objective draws would follow the pattern of the dropout.
    seeds = np.random.SeedSequence([recipe.seed, number]).generate_state(2 + world.size)
    torch.manual_seed(int(seeds[0] if world.leads else seeds[1 + world.rank]))  # for dropout
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(recipe.optimiser, number, moment.steps)
    weights = [parameter for parameter in step.parameters() if parameter.requires_grad]
    optimiser.zero_grad(set_to_none=True)
    tally = Tally()
    with products(fast=recipe.training.precision == "fast"):
        for share in shares:
            context = Context(number, torch.Generator().manual_seed(int(seeds[1])), recipe.seed)
            with precision(recipe, world):
                loss: Loss = step(share, context)
            tally.take(loss, weights, by_term=moment.by_term)
    taken = tally.together(weights, world)
    limit = recipe.optimiser.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(weights, limit)
    if not (math.isfinite(taken.loss) and math.isfinite(norm.item())):
        names = ", ".join(name for share in shares for name in share.image_ids)
        raise TellapartError(
            f"step {number + 1}: the loss is {taken.loss} and its gradient's norm {norm.item()}; "
            f"images of the batch, or of this process's share: {names}",
            hint="lower optimiser.learning_rate or optimiser.clip_norm, and look at these images' captions",
        )
    optimiser.step()
    return taken


class Tally:
    """Losses and gradients of the shares of a batch, added up as they come."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._total = 0.0
        self._by_term: dict[str, list[Tensor | None]] = {}

    def take(self, loss: Loss, weights: Sequence[Tensor], *, by_term: bool) -> None:
        """One share: its gradient is added to that of the weights."""
        self._total += loss.total.item()
        for name, value in loss.parts.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        if not (by_term and len(loss.terms) > 1):
            if loss.total.requires_grad:
                loss.total.backward()  # type: ignore[no-untyped-call]
            return
        for name, term in loss.terms.items():
            found: Sequence[Tensor | None] = [None] * len(weights)
            if term.requires_grad:
                found = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True)
            before = self._by_term.setdefault(name, [None] * len(weights))
            self._by_term[name] = [_plus(old, new) for old, new in zip(before, found, strict=True)]
            for weight, gradient in zip(weights, found, strict=True):
                weight.grad = _plus(weight.grad, gradient)

    def together(self, weights: Sequence[Tensor], world: World) -> Taken:
        """What all processes have found; every weight then has the gradient of the whole batch."""
        names = world.agree(sorted(self._sums))  # a process without a share has none
        values = torch.tensor(
            [self._total, *(self._sums.get(name, 0.0) for name in names)], dtype=torch.float64
        )
        values = values.to(world.device)
        world.add_up([values])
        norms = self._norms(weights, world)  # first: a term's gradient may be that of a weight itself
        _add_up_gradients(weights, world)
        total, *rest = values.tolist()
        return Taken(total, dict(zip(names, rest, strict=True)), norms)

    def _norms(self, weights: Sequence[Tensor], world: World) -> dict[str, float]:
        """Of the gradient of each of several terms."""
        norms = {}
        for name in world.agree(sorted(self._by_term)):
            mine = self._by_term.get(name, [None] * len(weights))
            gradients = [
                torch.zeros_like(weight) if found is None else found.clone()
                for weight, found in zip(weights, mine, strict=True)
            ]
            world.add_up(gradients)
            norms[name] = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
        return norms


def _add_up_gradients(weights: Sequence[Tensor], world: World) -> None:
    """Over all processes; a weight that has a gradient in none is left without: Adam passes over it."""
    if world.size == 1:
        return
    there = torch.tensor([float(weight.grad is not None) for weight in weights], device=world.device)
    world.add_up([there])
    for weight, count in zip(weights, there.tolist(), strict=True):
        if count and weight.grad is None:
            weight.grad = torch.zeros_like(weight)
    world.add_up(weight.grad for weight in weights if weight.grad is not None)


def _plus(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    """The sum, in memory of its own: what autograd gives may be one number seen as many."""
    if old is None or new is None:
        return old if new is None else new.clone()
    return old + new


@contextmanager
def products(*, fast: bool) -> Iterator[None]:
    """Within the block, forward and backward, products of 32-bit matrices are rounded to 16 bits if `fast`.

    A processor that has no products in 16 bits computes them in 32, as ever.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if fast else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def precision(recipe: AnyRecipe, world: World) -> AbstractContextManager[object]:
    """Within the block, the forward pass alone, torch computes in 16 bits what it can, if that is wanted."""
    if recipe.training.precision == "bf16":
        return torch.autocast(world.device.type, torch.bfloat16)
    return nullcontext()


def learning_rate(config: OptimiserConfig, number: int, steps: int) -> float:
    """Linear warm-up, then constant or down to 0 along half a cosine."""
    if number < config.warmup_steps:
        return config.learning_rate * (number + 1) / config.warmup_steps
    if config.decay == "constant":
        return config.learning_rate
    done = (number - config.warmup_steps) / max(1, steps - config.warmup_steps)
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def build_optimiser(config: OptimiserConfig, module: nn.Module) -> torch.optim.Optimizer:
    """The optimiser a recipe names, of all that is trained."""
    weights = [parameter for parameter in module.parameters() if parameter.requires_grad]
    rate, decay = config.learning_rate, config.weight_decay
    if config.name == "sgd":
        return torch.optim.SGD(weights, lr=rate, weight_decay=decay, momentum=config.momentum)
    kind = torch.optim.AdamW if config.name == "adamw" else torch.optim.Adam
    return kind(weights, lr=rate, weight_decay=decay, betas=(config.momentum, config.beta2))
