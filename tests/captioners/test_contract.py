"""What holds for every registered captioner, whatever its network."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tellapart.captioners.folder import (
    CaptionerSettings,
    SavedCaptioner,
    build_captioner,
    load_captioner,
    save_captioner,
)
from tellapart.captioners.parts import CAPTIONERS, MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.decoding.search import beam, greedy
from tellapart.registry import Config
from tellapart.types import AnyCaptioner, Vision

VOCABULARY = Vocabulary(("a", "dog", "cat", "runs", "sits", "here"), pad=4, start=2, end=0, unknown=7)
SHAPES = {"grid": (9, 5), "pooled": (5,), "classes": (3,)}
TINY: dict[str, Config] = {"mrnn": MRNNConfig(embedding_one=4, embedding_two=6, multimodal=8)}
NAMES = CAPTIONERS.names()


def make(name: str) -> AnyCaptioner:
    torch.manual_seed(1)
    return build_captioner(name, TINY[name], vocabulary=VOCABULARY, shapes=SHAPES).double().eval()


def see(count: int) -> Vision:
    generator = torch.Generator().manual_seed(2)
    grid, pooled, classes = (
        torch.rand(count, *SHAPES[part], generator=generator, dtype=torch.float64)
        for part in ("grid", "pooled", "classes")
    )
    return Vision(grid, pooled, classes)


def some_tokens(images: int, captions: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(len(VOCABULARY), (images, captions, length), generator=generator)
    tokens[:, :, 0] = VOCABULARY.start
    return tokens


def test_every_captioner_has_a_tiny_configuration_here() -> None:
    assert set(NAMES) == set(TINY)


@pytest.mark.parametrize("name", NAMES)
def test_predict_equals_repeated_step(name: str) -> None:
    captioner, vision, tokens = make(name), see(3), some_tokens(3, 2, 5)
    whole = captioner.predict(vision, tokens).logits
    state = captioner.begin(vision).select(torch.arange(3).repeat_interleave(2))
    for at in range(tokens.size(2)):
        logits, state = captioner.step(tokens[:, :, at].flatten(), state)
        torch.testing.assert_close(logits.view(3, 2, -1), whole[:, :, at], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_never_changes_what_came_before(name: str) -> None:
    captioner, vision, tokens = make(name), see(2), some_tokens(2, 2, 6)
    padded = tokens.clone()
    padded[:, :, 3:] = VOCABULARY.pad
    before, after = captioner.predict(vision, tokens).logits, captioner.predict(vision, padded).logits
    torch.testing.assert_close(before[:, :, :3], after[:, :, :3])
    assert not torch.allclose(before[:, :, 4], after[:, :, 4])


@pytest.mark.parametrize("name", NAMES)
def test_batch_order_and_grouping_do_not_change_logits(name: str) -> None:
    captioner, vision, tokens = make(name), see(3), some_tokens(3, 2, 5)
    together = captioner.predict(vision, tokens).logits
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(captioner.predict(vision.select(order), tokens[order]).logits, together[order])
    alone = captioner.predict(vision.select(torch.tensor([1])), tokens[1:2, 1:2]).logits
    torch.testing.assert_close(alone[0, 0], together[1, 1])


@pytest.mark.parametrize("name", NAMES)
def test_select_commutes_with_step(name: str) -> None:
    captioner = make(name)
    state = captioner.begin(see(3))
    token, rows = torch.tensor([1, 3, 5]), torch.tensor([2, 0, 0, 1])
    logits, after = captioner.step(token, state)
    selected_first, _ = captioner.step(token[rows], state.select(rows))
    torch.testing.assert_close(selected_first, logits[rows])
    again, _ = captioner.step(torch.ones(4, dtype=torch.long), after.select(rows))
    straight, _ = captioner.step(torch.ones(3, dtype=torch.long), after)
    torch.testing.assert_close(again, straight[rows])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_and_reach_every_parameter(name: str) -> None:
    captioner = make(name)
    loss = captioner.predict(see(2), some_tokens(2, 3, 5)).logits.square().mean()
    names = dict(captioner.named_parameters())
    for parameter_name, gradient in zip(names, torch.autograd.grad(loss, list(names.values())), strict=True):
        assert gradient.isfinite().all(), parameter_name
        assert gradient.abs().sum() > 0, parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_the_image_matters(name: str) -> None:
    captioner, tokens = make(name), some_tokens(1, 1, 3).expand(2, 1, 3)
    logits = captioner.predict(see(2), tokens).logits
    assert not torch.allclose(logits[0], logits[1])


@pytest.mark.parametrize("name", NAMES)
def test_beam_of_width_one_is_greedy(name: str) -> None:
    captioner, vision = make(name), see(4)
    narrow, plain = beam(captioner, vision, width=1, max_words=6), greedy(captioner, vision, max_words=6)
    assert torch.equal(narrow.tokens, plain.tokens)
    torch.testing.assert_close(narrow.log_probabilities, plain.log_probabilities)


@pytest.mark.parametrize("name", NAMES)
def test_a_captions_probability_is_the_product_of_its_steps(name: str) -> None:
    captioner, vision = make(name), see(3)
    decoded = beam(captioner, vision, width=4, max_words=5)
    start = torch.full((3, 4, 1), VOCABULARY.start)
    given = torch.cat([start, decoded.tokens[:, :, :-1]], dim=2)
    steps = captioner.predict(vision, given).logits.log_softmax(-1)
    picked = steps.gather(3, decoded.tokens.unsqueeze(3)).squeeze(3)
    torch.testing.assert_close((picked * decoded.mask).sum(2), decoded.log_probabilities)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_says_the_same(name: str, tmp_path: Path) -> None:
    captioner = make(name).float()
    settings = CaptionerSettings(
        captioner={"name": name, **TINY[name].model_dump()},
        encoder="patches",
        encoder_identity="none",
        shapes=SHAPES,
        text=PRESETS["mrnn"],
        width=2,
        max_words=5,
        vocabulary=VOCABULARY.fingerprint,
    )
    save_captioner(tmp_path / "kept", SavedCaptioner(captioner, settings), dtype=torch.float32)
    loaded = load_captioner(tmp_path / "kept")
    vision = see(3)
    single = Vision(vision.grid.float(), vision.pooled.float(), vision.classes.float())
    before, after = (beam(some, single, width=3, max_words=5) for some in (captioner, loaded.captioner))
    assert torch.equal(before.tokens, after.tokens)
    assert torch.equal(before.log_probabilities, after.log_probabilities)
    assert loaded.settings == settings
