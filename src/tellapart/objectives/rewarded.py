"""Training by rewards: the policy gradient of captions that the captioner draws itself (Williams 1992).

∇ Σ_c p(c) r(c) = E[(r(c) - b) ∇ ln p(c)], whatever the baseline b that does not depend on the draw. With the
reward of the greedy caption as the baseline it is self-critical training (Rennie et al. 2017).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.errors import TellapartError
from tellapart.objectives.compose import add_up, image_mean, token_objective
from tellapart.objectives.drawn import Drawing, Drawn, token_lists
from tellapart.objectives.schedules import Weight, build_weight
from tellapart.objectives.settings.rewarded import RewardedConfig
from tellapart.objectives.supplies import Greedy, Reward, Supplies
from tellapart.objectives.tokens import mle
from tellapart.objectives.writing import as_used
from tellapart.types import AnyCaptioner, Batch, Context, Loss


def build_rewarded(config: RewardedConfig, supplies: Supplies) -> Rewarded:
    """All rewards at hand before the first step."""
    images = supplies.training_set
    by_captions = [reward for reward in config.rewards if reward.name == "cider-d" and reward.weight]
    if config.baseline == "running" and by_captions:
        bare = next((row for row in range(len(images)) if not images.captions(row)), None)
        if bare is not None:
            raise TellapartError(
                f"training image {bare} has no captions and so no CIDEr-D, and the baseline 'running' would "
                "take that for a bad caption",
                hint="set objective.baseline to 'greedy' or 'mean', which compare an image with itself",
            )
    seen: Counter[str] = Counter()
    rewards = []
    for reward in config.rewards:
        seen[reward.name] += 1
        called = reward.name if seen[reward.name] == 1 else f"{reward.name}-{seen[reward.name]}"
        rewards.append((called, reward.weight, supplies.reward(reward)))
    drawing = Drawing(supplies.sample, config.drawn, supplies.max_words, config.temperature)
    weight = build_weight(config.mle_weight, supplies.pace)
    return Rewarded(config, rewards, drawing, supplies.greedy, weight)


class Rewarded(nn.Module):
    """Draws captions of each image, asks how good they are, and makes the better ones likelier.

    They are drawn and written as the captioner is used, without dropout; learning has it. What it remembers
    is the running mean of rewards, where that is the baseline.
    """

    running: Tensor  # weighed sum of the mean rewards of the steps before, and of the weights
    pending: Tensor  # sum of the rewards of this step, and how many there were

    def __init__(
        self,
        config: RewardedConfig,
        rewards: Sequence[tuple[str, float, Reward]],
        drawing: Drawing,
        greedy: Greedy,
        mle_weight: Weight,
    ) -> None:
        super().__init__()
        self._config, self._rewards, self._mle_weight = config, rewards, mle_weight
        self._drawing, self._greedy = drawing, greedy
        self._likelihood = token_objective(mle, name="mle")
        self.register_buffer("running", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("pending", torch.zeros(2, dtype=torch.float64))

    def forward(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """Mean over images and samples of -(r - b) · ln p."""
        config = self._config
        drawn, captions = self._write(captioner, batch, context)
        judged = self._judge(batch, captions)
        rewards = torch.tensordot(judged.new_tensor([weight for _, weight, _ in self._rewards]), judged, 1)
        gain = rewards[:, : config.drawn] - self._baseline(rewards)
        likely = self._drawing.log_probabilities(captioner, batch.vision, drawn)
        terms = {"reward": image_mean(-(gain.to(likely) * likely).mean(1), batch)}
        amount = self._mle_weight(context.step)
        if amount:
            terms["mle"] = amount * self._likelihood(captioner, batch, context).total
        self._note(rewards[:, : config.drawn])
        words = drawn.mask.sum(-1).double().mean(1) - 2  # without start and end
        means = {"gain": gain.mean(1), "words": words}
        for (name, _, _), values in zip(self._rewards, judged, strict=True):
            means[name] = values[:, : config.drawn].mean(1)
        return add_up(terms, {name: image_mean(value, batch).item() for name, value in means.items()})

    def _write(
        self, captioner: AnyCaptioner, batch: Batch, context: Context
    ) -> tuple[Drawn, list[list[list[int]]]]:
        """The captions drawn; and those to be judged of each image, last the greedy one if it is wanted."""
        drawn = self._drawing(captioner, batch.vision, [context.of_image(row) for row in batch.rows])
        captions = drawn.written()
        if self._config.baseline == "greedy":
            with as_used(captioner):
                usual = self._greedy(captioner, batch.vision)
            captions = [
                one + other
                for one, other in zip(captions, token_lists(usual.tokens, usual.mask), strict=True)
            ]
        return drawn, captions

    def _judge(self, batch: Batch, captions: list[list[list[int]]]) -> Float[Tensor, "m b k"]:
        """What each reward says."""
        found = [torch.from_numpy(reward(batch.rows, captions)) for _, _, reward in self._rewards]
        return torch.stack(found).to(batch.tokens.device, torch.float64)

    def _baseline(self, rewards: Float[Tensor, "b k"]) -> Float[Tensor, "b j"]:
        """What is usual, of each image or of each sample; a greedy caption's reward stands last."""
        if self._config.baseline == "greedy":
            return rewards[:, -1:]
        if self._config.baseline == "mean":
            return (rewards.sum(1, keepdim=True) - rewards) / (rewards.size(1) - 1)
        weighed, weight = self.running
        return torch.where(weight > 0, weighed / weight.clamp_min(1e-9), 0.0).expand(len(rewards), 1)

    def _note(self, rewards: Float[Tensor, "b k"]) -> None:
        self.pending += torch.stack([rewards.sum(), rewards.new_tensor(rewards.numel())])

    def after_step(self, step: int, add_up: Callable[[Iterable[Tensor]], None]) -> None:
        """Take the mean reward of the whole batch, of all processes and portions, into the running mean."""
        add_up([self.pending])
        total, count = self.pending
        if count > 0:
            kept = self._config.momentum
            latest = torch.stack([total / count, torch.ones_like(count)])
            self.running.copy_(kept * self.running + (1 - kept) * latest)
        self.pending.zero_()
