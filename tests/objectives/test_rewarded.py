"""Training by rewards: the gradient is that of the expected reward, and baselines are what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.objectives.material import context, doubled, learner
from tests.objectives.three_words import (
    EVERY,
    MAX_WORDS,
    Fixed,
    assert_gradient_of_expected_reward,
    captioner,
    draw,
    gradients,
    one_image,
    probability,
)
from tests.retrievers.tiny_dual import write_tiny_dual
from torch import Tensor

from tellapart.captioner_learner import CaptionerLearner
from tellapart.decoding.search import greedy
from tellapart.errors import TellapartError
from tellapart.objectives.drawn import Drawing
from tellapart.objectives.rewarded import Rewarded, build_rewarded
from tellapart.objectives.settings.rewarded import RewardedConfig
from tellapart.objectives.settings.rewards import CiderReward, RetrievalReward
from tellapart.recipe import load_recipe
from tellapart.training import train


def worth(caption: Sequence[int]) -> float:
    """Some reward: unlike for all captions."""
    return float(np.float32(sum((place + 2) * (token % 7) for place, token in enumerate(caption)) / 5 - 1))


def judge(rows: Sequence[int], captions: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    return np.array([[worth(caption) for caption in group] for group in captions], np.float32)


def objective(config: RewardedConfig, drawn: Sequence[Sequence[int]]) -> Rewarded:
    drawing = drawing_of(drawn, config.temperature)
    return Rewarded(config, [("worth", 1.0, judge)], drawing, Fixed(drawn).greedy, lambda step: 0.0)


def drawing_of(drawn: Sequence[Sequence[int]], temperature: float = 1.0) -> Drawing:
    return Drawing(Fixed(drawn).sample, len(drawn), MAX_WORDS, temperature)


@settings(max_examples=4)
@given(st.integers(0, 1000), st.sampled_from([1.0, 0.6]))
def test_the_expected_gradient_is_that_of_the_expected_reward(seed: int, temperature: float) -> None:
    assert_expected_gradient("greedy", temperature, seed)


@pytest.mark.parametrize("baseline", ["running", "mean"])
def test_no_baseline_biases_the_gradient(baseline: str) -> None:
    assert_expected_gradient(baseline, 1.0, 3)


def assert_expected_gradient(baseline: str, temperature: float, seed: int) -> None:
    """Each draw's gradient weighed by its probability, against finite differences of Σ p(c) r(c)."""
    model, batch = captioner(seed), one_image()
    config = RewardedConfig.model_validate({"baseline": baseline, "temperature": temperature})
    config = config.model_copy(update={"samples": 2 if baseline == "mean" else 1})
    chances = {caption: probability(model, caption, temperature) for caption in EVERY}
    assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
    draws = list(product(EVERY, repeat=config.drawn))
    value = torch.zeros((), dtype=torch.float64)
    for drawn in draws:
        rewarded = objective(config, drawn)
        rewarded.running += torch.tensor([0.35, 0.5])  # after some steps: whatever the baseline, no bias
        chance = float(np.prod([chances[caption] for caption in drawn]))
        loss = rewarded(model, batch, context())
        value = value - chance * loss.total
    assert_gradient_of_expected_reward(model, gradients(model, value), worth, temperature)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_captions_are_drawn_as_often_as_their_log_probability_says(temperature: float) -> None:
    model, batch, count = captioner(3), one_image(), 6000
    generators = [torch.Generator().manual_seed(1)]
    drawing = Drawing(draw, count, MAX_WORDS, temperature)
    drawn = drawing(model, batch.vision, generators)
    found = drawing.log_probabilities(model, batch.vision, drawn)
    tokens = [tuple(caption) for caption in drawn.written()[0]]
    assert len(set(tokens)) > 5
    for caption in set(tokens):
        chance = probability(model, caption, temperature)
        assert found[0, tokens.index(caption)].exp().item() == pytest.approx(chance, rel=1e-9)
        spread = (chance * (1 - chance) / count) ** 0.5
        assert abs(tokens.count(caption) / count - chance) < 5 * spread + 1 / count


def test_baselines_by_hand() -> None:
    model, batch = captioner(1), one_image()
    drawn = [EVERY[0], EVERY[5], EVERY[9]]
    rewards = [worth(caption) for caption in drawn]
    logs = [float(np.log(probability(model, caption, 1.0))) for caption in drawn]
    likeliest = tuple(greedy(model, batch.vision, max_words=MAX_WORDS).tokens[0, 0].tolist())
    usual = {
        "greedy": [worth(likeliest)] * 3,
        "mean": [(sum(rewards) - own) / 2 for own in rewards],
        "running": [0.7] * 3,
    }
    for baseline, values in usual.items():
        rewarded = objective(RewardedConfig.model_validate({"baseline": baseline, "samples": 3}), drawn)
        rewarded.running += torch.tensor([0.35, 0.5])
        loss = rewarded(model, batch, context())
        gains = [reward - value for reward, value in zip(rewards, values, strict=True)]
        by_hand = -sum(gain * log for gain, log in zip(gains, logs, strict=True)) / 3
        assert loss.total.item() == pytest.approx(by_hand, abs=1e-7), baseline
        assert loss.parts["worth"] == pytest.approx(np.mean(rewards), abs=1e-6)
        assert loss.parts["gain"] == pytest.approx(np.mean(gains), abs=1e-6)
        assert loss.parts["words"] == pytest.approx(np.mean([len(caption) - 1 for caption in drawn]))


def test_the_running_mean_is_that_of_whole_batches_whoever_saw_their_shares() -> None:
    """Two processes with a share each, and one that saw both in two portions, remember the same."""
    config = RewardedConfig(baseline="running", momentum=0.8)
    model, batch = captioner(1), one_image()
    alone = objective(config, [EVERY[0]])
    pair = [objective(config, [EVERY[0]]) for _ in range(2)]
    means = []
    for step in range(3):
        shares = [[EVERY[step]], [EVERY[step + 4]]]
        means.append(np.mean([worth(share[0]) for share in shares]))
        for share, process in zip(shares, pair, strict=True):
            for each in (alone, process):
                each._drawing = drawing_of(share)
                each(model, batch, context(step))
        alone.after_step(step, lambda tensors: None)
        together = sum(process.pending.clone() for process in pair)
        assert isinstance(together, Tensor)
        for process in pair:

            def add_up(tensors: Iterable[Tensor], total: Tensor = together) -> None:
                for tensor in tensors:
                    tensor.copy_(total)

            process.after_step(step, add_up)
    weights = np.array([0.8**2, 0.8, 1.0])
    expected = (weights * np.array(means)).sum() / weights.sum()
    for each in (alone, *pair):
        assert (each.running[0] / each.running[1]).item() == pytest.approx(expected, abs=1e-7)
        assert (each.pending == 0).all()
    assert objective(config, [EVERY[0]])(model, batch, context()).parts["gain"] == pytest.approx(
        worth(EVERY[0])
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaptionerLearner]:
    folder = write_tiny_dual(tmp_path_factory.mktemp("dual") / "tiny", ["a red circle and a blue square"])
    rewards = (
        f'objective.rewards=[{{ name = "cider-d" }}, {{ name = "self-retrieval", weight = 0.5, '
        f'retriever = "{folder}", form = "margin", neighbours = 5 }}]'
    )
    found = {}
    for name in ("mrnn", "transformer"):
        found[name] = learner("objective.name=reward", rewards, captioner=name)
        torch.manual_seed(5)
        for weight in found[name].network.double().eval().parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return found


@pytest.mark.parametrize("captioner_name", ["mrnn", "transformer"])
@pytest.mark.parametrize("baseline", ["greedy", "mean", "running"])
def test_shares_of_a_batch_add_up_and_images_draw_the_same_in_any_company(
    made: dict[str, CaptionerLearner], captioner_name: str, baseline: str
) -> None:
    some = made[captioner_name]
    section = {key: value for key, value in some.recipe.objective.items() if key != "name"}
    config = RewardedConfig.model_validate(section | {"baseline": baseline, "mle_weight": 0.3})
    rewarded = build_rewarded(config, some.supplies)
    batch = some.batch(1)
    whole = rewarded(some.network, doubled(batch), context(1))
    shares = [
        rewarded(some.network, doubled(share), context(1))
        for rows in (batch.rows[:1], batch.rows[1:])
        for share in some.ready.train_set.shares(batch.rows, [rows], some._draw(0))
    ]
    assert whole.parts.keys() >= {"reward", "mle", "cider-d", "self-retrieval", "gain"}
    for name, value in whole.parts.items():
        assert sum(loss.parts[name] for loss in shares) == pytest.approx(value, abs=1e-6), name
    ours = gradients(some.network, whole.total)
    for place, parts in enumerate(
        zip(*(gradients(some.network, loss.total) for loss in shares), strict=True)
    ):
        torch.testing.assert_close(parts[0] + parts[1], ours[place], atol=1e-6, rtol=1e-5)
    assert any(gradient.abs().max() > 0 for gradient in ours)
    if baseline == "greedy":
        assert rewarded(some.network, doubled(batch), context(2)).total.item() != whole.total.item()


def test_a_mixture_of_rewards_is_their_weighed_sum(made: dict[str, CaptionerLearner]) -> None:
    some = made["mrnn"]
    batch = doubled(some.batch(0))
    folder = some.recipe.objective["rewards"][1]["retriever"]
    cider = CiderReward(weight=2.0)
    close = RetrievalReward(weight=0.5, retriever=folder, form="margin", neighbours=5)

    def loss(*rewards: CiderReward | RetrievalReward) -> float:
        config = RewardedConfig(rewards=list(rewards), baseline="mean", samples=4)
        value: float = build_rewarded(config, some.supplies)(some.network, batch, context()).total.item()
        return value

    assert loss(cider, close) == pytest.approx(loss(cider) + loss(close), abs=1e-6)
    assert loss(cider) == pytest.approx(2 * loss(CiderReward()), abs=1e-6)


def test_drawing_leaves_the_captioner_in_its_mode_and_is_done_without_dropout() -> None:
    made_with_dropout = learner("objective.name=reward", "captioner.dropout=0.5")
    network, batch = made_with_dropout.network.train(), made_with_dropout.batch(0)
    rewarded = build_rewarded(RewardedConfig(), made_with_dropout.supplies)
    torch.manual_seed(0)
    first = rewarded(network, batch, context())
    torch.manual_seed(1)
    second = rewarded(network, batch, context())
    assert network.training
    assert first.parts["cider-d"] == second.parts["cider-d"], "the same captions were drawn"
    assert first.total.item() != second.total.item() or first.parts["gain"] == 0


def test_captions_of_one_word_padding_and_extreme_logits_are_no_trouble(
    made: dict[str, CaptionerLearner],
) -> None:
    some = made["mrnn"]
    batch = doubled(some.batch(0))
    short = replace(some.supplies, recipe=some.recipe.model_copy(deep=True))
    object.__setattr__(short.recipe, "decoding", some.recipe.decoding.model_copy(update={"max_words": 1}))
    rewarded = build_rewarded(RewardedConfig(baseline="mean", mle_weight=1.0), short)
    found = rewarded(some.network, batch, context())
    assert found.parts["words"] == 1
    padded = replace(
        batch,
        tokens=torch.nn.functional.pad(batch.tokens, (0, 2, 0, 1), value=some.network.text.pad),
        mask=torch.nn.functional.pad(batch.mask, (0, 2, 0, 1)),
    )
    assert rewarded(some.network, padded, context()).parts == pytest.approx(found.parts, abs=1e-9)
    output = some.network.get_submodule("output")
    assert isinstance(output, torch.nn.Linear)
    kept = output.weight.detach().clone()
    whole = build_rewarded(RewardedConfig(), some.supplies)
    for scale in (1e4, -1e6):
        with torch.no_grad():
            output.weight.copy_(kept * scale)
        loss = whole(some.network, batch, context())
        assert loss.total.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients(some.network, loss.total))
    with torch.no_grad():
        output.weight.copy_(kept)


def test_the_running_mean_is_in_checkpoints_and_training_resumes_with_it(tmp_path: Path) -> None:
    """Stopped in mid-epoch and resumed, a run ends with the weights and mean of one that never stopped."""
    changes = [
        "objective.name=reward", "objective.baseline=running", "data.scenes=30", "captioner.preset=tiny",
        "training.epochs=1", "training.images_per_batch=4", "training.evaluate_every=2",
        "training.patience=0", "decoding.max_words=6",
    ]  # fmt: skip
    recipe = load_recipe("mrnn-shapes", changes=changes)
    whole = train(recipe, tmp_path / "whole")
    from tellapart.training import begin, train_steps

    run, some = begin(recipe, tmp_path / "halved", resume=False, watch=lambda done, total: None)
    for report in train_steps(recipe, run, some):
        if report.step == 4:
            break
    again = train(recipe, tmp_path / "halved", resume=True)
    states = [
        torch.load(each.latest_checkpoint() or "", weights_only=True)["step"] for each in (whole, again)
    ]
    assert states[0]["objective.running"][1] > 0
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValidationError, match="draw two or more"):
        RewardedConfig(baseline="mean", samples=1)
    with pytest.raises(ValidationError, match="at least 1 item"):
        RewardedConfig(rewards=[])
    assert RewardedConfig(baseline="mean").drawn == 5
    assert RewardedConfig().drawn == 1
    assert RewardedConfig(samples=3).drawn == 3


def test_a_running_mean_of_what_images_without_captions_cannot_have_is_refused(
    made: dict[str, CaptionerLearner],
) -> None:
    some = made["mrnn"]
    captions = [[], *some.ready.train_set.captions[1:]]
    ready = replace(some.ready, train_set=replace(some.ready.train_set, captions=captions))
    supplies = replace(some.supplies, ready=ready)
    with pytest.raises(TellapartError, match="training image 0 has no captions and so no CIDEr-D") as caught:
        build_rewarded(RewardedConfig(baseline="running"), supplies)
    assert "'greedy' or 'mean'" in caught.value.hint
    found = build_rewarded(RewardedConfig(baseline="mean"), supplies)
    loss = found(
        some.network, doubled(ready.train_set.batch([0], captions_per_image=2, seed=1, epoch=0)), context()
    )
    assert loss.total.item() == 0
