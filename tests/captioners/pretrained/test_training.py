"""What is trained and what is saved: the text decoder, adapters alone, or the vision tower as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tellapart.captioners.folder import SavedCaptioner, load_captioner, save_captioner
from tellapart.captioners.pretrained.family import caption_mask
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe


def names(captioner: Any, *, trained: bool) -> set[str]:
    return {name for name, weight in captioner.named_parameters() if weight.requires_grad == trained}


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2", "blip2", "image-text", "smolvlm"])
def test_only_adapters_are_trained_and_saved_with_lora(kind: str, tiny: Callable[..., Any]) -> None:
    captioner = tiny(kind, "lora").captioner
    trained = names(captioner, trained=True)
    assert trained
    assert all(".lora_A." in name or ".lora_B." in name for name in trained)
    assert not any(".lora_" in name for name in names(captioner, trained=False))
    assert set(captioner.state_dict()) == trained | {"frozen_hash"}
    assert any("att" in name for name in trained)


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2", "blip2", "image-text"])
def test_the_tower_is_neither_held_nor_saved_while_it_is_frozen(kind: str, tiny: Callable[..., Any]) -> None:
    decoder, whole = tiny(kind).captioner, tiny(kind, "all").captioner
    assert decoder.tower is None
    assert not any("vision" in name or "qformer" in name for name, _ in decoder.named_parameters())
    seen = sum(weight.numel() for weight in whole.parameters())
    assert sum(weight.numel() for weight in decoder.parameters()) < seen
    assert any(name.startswith("tower.") for name in whole.state_dict()) or kind == "image-text"
    assert set(whole.state_dict()) - {"frozen_hash"} == names(whole, trained=True)


def test_what_no_caption_depends_on_stays_frozen(tiny: Callable[..., Any]) -> None:
    frozen = names(tiny("vit-gpt2", "all").captioner, trained=False)
    assert frozen
    assert all(".pooler." in name for name in frozen)
    # LLaVA looks at the last layer but one of its tower.
    frozen = names(tiny("image-text", "all").captioner, trained=False)
    assert all(".layers.1." in name or "post_layernorm" in name for name in frozen)


@pytest.mark.parametrize(("kind", "train"), [("blip", "lora"), ("git", "decoder"), ("blip2", "all")])
def test_trained_saved_and_loaded_it_says_the_same(
    kind: str, train: str, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    made = tiny(kind, train)
    captioner = made.captioner.float()
    before = {name: weight.clone() for name, weight in captioner.state_dict().items()}
    try:
        with torch.no_grad():
            for weight in captioner.parameters():
                if weight.requires_grad:
                    weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
        save_captioner(tmp_path / "kept", SavedCaptioner(captioner, made.settings), dtype=torch.float32)
        loaded = load_captioner(tmp_path / "kept").captioner
        vision = type(made.vision)(made.vision.grid.float(), torch.zeros(4, 0), torch.zeros(4, 0))
        one, other = (beam(each, vision, width=3, max_words=6) for each in (captioner, loaded))
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.log_probabilities, other.log_probabilities)
    finally:
        captioner.load_state_dict(before)
        captioner.double()


def test_weights_of_another_way_of_training_are_refused(tiny: Callable[..., Any], tmp_path: Path) -> None:
    adapters, decoder = tiny("blip", "lora"), tiny("blip")
    with pytest.raises(RuntimeError, match="Missing key"):
        adapters.captioner.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        decoder.captioner.load_state_dict({**decoder.captioner.state_dict(), "more": torch.zeros(1)})
    save_captioner(
        tmp_path / "kept", SavedCaptioner(decoder.captioner, adapters.settings), dtype=torch.float32
    )
    with pytest.raises(TellapartError, match="not of this captioner"):
        load_captioner(tmp_path / "kept")


def test_others_cannot_take_its_tokens_for_words(tiny: Callable[..., Any], tmp_path: Path) -> None:
    made = tiny("blip")
    save_captioner(tmp_path / "kept", SavedCaptioner(made.captioner, made.settings), dtype=torch.float32)
    recipe = load_recipe("mrnn-shapes", changes=["data.scenes=60", f"training.words_of={tmp_path / 'kept'}"])
    with pytest.raises(TellapartError, match=r"training\.words_of: .* reads no whole words"):
        prepare(recipe, watch=lambda done, total: None)


@pytest.mark.parametrize("train", ["decoder", "lora", "all"])
def test_a_few_steps_make_a_caption_likelier(train: str, tiny: Callable[..., Any]) -> None:
    made = tiny("blip", train)
    captioner = made.captioner
    before = {name: weight.clone() for name, weight in captioner.state_dict().items()}
    tokens = torch.tensor(captioner.text.encode("a red dog runs")).expand(4, 1, -1)
    optimiser = torch.optim.Adam([w for w in captioner.parameters() if w.requires_grad], lr=0.01)
    losses = []
    try:
        for _ in range(12):
            logits = captioner.predict(made.vision, tokens[:, :, :-1]).logits
            loss = -logits.log_softmax(-1).gather(3, tokens[:, :, 1:, None]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    finally:
        captioner.load_state_dict(before)
    assert losses[-1] < losses[0] - 0.3


def test_who_sees_whom() -> None:
    """Three before, of which two see each other; then two captions of two tokens."""
    seen = caption_mask(3, 2, 2, 2, torch.device("cpu"))
    assert seen.long().tolist() == [
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 1, 0],
        [1, 1, 1, 0, 0, 1, 1],
    ]


@pytest.mark.parametrize("kind", ["blip", "git"])
def test_beams_share_what_belongs_to_the_image(kind: str, tiny: Callable[..., Any]) -> None:
    """After a choice among beams the very same keys and values are used: nothing was copied."""
    made = tiny(kind, "decoder", "a picture of")
    captioner, rows = made.captioner, torch.arange(4).repeat_interleave(5)
    with torch.no_grad():
        state = captioner.begin(made.vision).select(rows)
        for _ in range(3):
            _, state = captioner.step(torch.full((20,), captioner.text.start), state)
    chosen = state.select(rows * 5 + torch.tensor([4, 0, 0, 3, 1] * 4))
    assert all(len(tensor) == 4 for tensor in state.kept.tensors)
    assert all(a is b for a, b in zip(state.kept.tensors, chosen.kept.tensors, strict=True))


def test_keys_and_values_of_the_picture_are_computed_once_an_image(tiny: Callable[..., Any]) -> None:
    """However many beams there are and words they write: the layers that project it see it once."""
    made = tiny("vit-gpt2")
    captioner, seen = made.captioner, list[torch.Size]()
    hooks = [
        module.register_forward_hook(lambda module, given, found: seen.append(given[0].shape[:2]))
        for name, module in captioner.named_modules()
        if name.rpartition(".")[2] == "c_attn" and "cross" in name.lower()
    ]
    try:
        beam(captioner, made.vision, width=3, max_words=4)
    finally:
        for hook in hooks:
            hook.remove()
    assert hooks
    assert seen == [made.vision.grid.shape[:2]] * len(hooks)


@pytest.mark.parametrize("train", ["decoder", "all"])
@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2", "blip2", "image-text"])
def test_a_grid_of_another_size_is_one_clear_line(kind: str, train: str, tiny: Callable[..., Any]) -> None:
    made = tiny(kind, train)
    seen = made.vision.grid
    tokens = torch.full((len(seen), 1, 2), made.captioner.text.start)
    for wrong in (seen[:, 1:], torch.cat([seen, seen], 1), seen[:, :, 1:]):
        vision = replace(made.vision, grid=wrong)
        for call in (made.captioner.begin, lambda shown: made.captioner.predict(shown, tokens)):
            with pytest.raises(TellapartError, match="was given to a captioner built for"):
                call(vision)


def test_a_caption_longer_than_the_positions_is_refused(tiny: Callable[..., Any]) -> None:
    made = tiny("blip", "decoder", "a picture of")
    tokens = torch.full((4, 1, 126), made.captioner.text.start)
    with pytest.raises(TellapartError, match="126 tokens is too long for this checkpoint, which reads 125"):
        made.captioner.predict(made.vision, tokens)
    assert made.captioner.predict(made.vision, tokens[:, :, 1:]).logits.shape[2] == 125
