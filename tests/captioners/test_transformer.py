"""The Transformer against torch's own layers and a NumPy transcription, and its cache of keys and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor, nn

from tellapart.captioners.attention import ROOM, Past
from tellapart.captioners.memory import FAINT
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.transformer import TransformerConfig
from tellapart.captioners.transformer import LONGEST, DecoderLayer, EncoderLayer, Transformer, sinusoids
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.recipe import load_recipe
from tellapart.testing import prepare
from tellapart.types import Vision

Array = np.ndarray[Any, np.dtype[np.float64]]
BOTH = pytest.mark.parametrize("name", ["transformer", "meshed"])
SIZES = TransformerConfig(width=8, heads=2, feed_forward=12, dropout=0.0)


def make(name: str, settings: Mapping[str, object] | None = None) -> tuple[Transformer, Vision]:
    subject = prepare(name, settings=settings or {})
    assert isinstance(subject.captioner, Transformer)
    return subject.captioner, subject.vision


def some_tokens(model: Transformer, *shape: int) -> Tensor:
    tokens = torch.randint(len(model.text), shape, generator=torch.Generator().manual_seed(3))
    tokens[..., 0] = model.text.start
    return tokens


def copy_attention(theirs: nn.MultiheadAttention, project: Tensor, output: nn.Linear) -> None:
    assert theirs.in_proj_weight is not None
    assert theirs.in_proj_bias is not None
    theirs.in_proj_weight.copy_(project)
    theirs.in_proj_bias.zero_()
    theirs.out_proj.load_state_dict(output.state_dict())


def copy_rest(theirs: Any, ours: EncoderLayer | DecoderLayer) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[2].state_dict())
    for number, norm in enumerate(ours.norms, 1):
        assert isinstance(norm, nn.LayerNorm)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


@torch.no_grad()
def test_an_encoder_layer_is_that_of_torch() -> None:
    torch.manual_seed(0)
    ours = EncoderLayer(SIZES).double()
    theirs = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    copy_attention(theirs.self_attn, ours.attention.project.weight, ours.attention.output)
    copy_rest(theirs, ours)
    x, bias = torch.randn(3, 5, 8, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    mask = bias[:, None, None].expand(3, 2, 5, 5).reshape(6, 5, 5)
    torch.testing.assert_close(ours(x, bias), theirs(x, src_mask=mask), rtol=1e-10, atol=1e-12)


@torch.no_grad()
def test_a_decoder_layer_is_that_of_torch() -> None:
    torch.manual_seed(0)
    ours = DecoderLayer(SIZES).double()
    theirs = nn.TransformerDecoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    copy_attention(theirs.self_attn, ours.words.project.weight, ours.words.output)
    both = torch.cat([ours.memory.query.weight, ours.memory.look.weight])
    copy_attention(theirs.multihead_attn, both, ours.memory.output)
    copy_rest(theirs, ours)
    x, rows = torch.randn(2, 3, 4, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    kept = ours.memory.keep(rows.unsqueeze(1))
    found, _, _ = ours(x, ours.words.empty(6), kept, torch.zeros(2, 5, dtype=torch.float64))
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    expected = theirs(x.flatten(0, 1), rows.repeat_interleave(3, dim=0), tgt_mask=causal)
    torch.testing.assert_close(found.flatten(0, 1), expected, rtol=1e-10, atol=1e-12)


def normed(x: Array, weights: Mapping[str, Array], at: str) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)
    result: Array = scaled * weights[f"{at}.weight"] + weights[f"{at}.bias"]
    return result


def attention(queries: Array, keys: Array, values: Array, *, causal: bool) -> Array:
    """Eq. 1, head by head."""
    heads = []
    for q, k, v in zip(*(np.split(x, 2, axis=1) for x in (queries, keys, values)), strict=True):
        scores = np.exp(q @ k.T / np.sqrt(q.shape[1]))
        if causal:
            scores = np.tril(scores)
        heads.append(scores / scores.sum(1, keepdims=True) @ v)
    return np.concatenate(heads, axis=1)


def feed_forward(x: Array, weights: Mapping[str, Array], at: str) -> Array:
    """Eq. 2."""
    hidden = np.maximum(0, x @ weights[f"{at}.0.weight"].T + weights[f"{at}.0.bias"])
    return hidden @ weights[f"{at}.2.weight"].T + weights[f"{at}.2.bias"]


def attended(x: Array, rows: Array, weights: Mapping[str, Array], at: str, *, causal: bool) -> Array:
    if f"{at}.query.weight" in weights:
        queries, both = x @ weights[f"{at}.query.weight"].T, rows @ weights[f"{at}.look.weight"].T
        keys, values = np.split(both, 2, axis=1)
    else:
        queries, keys, values = np.split(x @ weights[f"{at}.project.weight"].T, 3, axis=1)
    mixed = attention(queries, keys, values, causal=causal)
    return mixed @ weights[f"{at}.output.weight"].T + weights[f"{at}.output.bias"]


def test_the_whole_network_by_hand() -> None:
    model, vision = make("transformer")
    w = {name: value.numpy() for name, value in model.state_dict().items()}
    tokens = [2, 5, 1, 1, 9]
    x = np.maximum(
        0, vision.grid[1].numpy() @ w["remember.from_grid.weight"].T + w["remember.from_grid.bias"]
    )
    x = x + w["places"]
    for number in range(2):
        at = f"encoder.layers.{number}"
        inner = normed(x, w, f"{at}.norms.0")
        x = x + attended(inner, inner, w, f"{at}.attention", causal=False)
        x = x + feed_forward(normed(x, w, f"{at}.norms.1"), w, f"{at}.feed_forward")
    rows = normed(x, w, "encoder.norm")
    y = w["words.read"][tokens] * np.sqrt(8)
    for place in range(5):
        for pair in range(4):  # section 3.5
            angle = place / 10000 ** (2 * pair / 8)
            y[place, 2 * pair : 2 * pair + 2] += np.array([np.sin(angle), np.cos(angle)])
    for number in range(2):
        at = f"layers.{number}"
        inner = normed(y, w, f"{at}.norms.0")
        y = y + attended(inner, inner, w, f"{at}.words", causal=True)
        y = y + attended(normed(y, w, f"{at}.norms.1"), rows, w, f"{at}.memory", causal=False)
        y = y + feed_forward(normed(y, w, f"{at}.norms.2"), w, f"{at}.feed_forward")
    expected = normed(y, w, "norm") @ w["words.read"].T + w["words.bias"]
    found = model.predict(vision, torch.tensor(tokens).expand(4, 1, 5))
    np.testing.assert_allclose(found.hidden[-1][1, 0].detach().numpy(), y, atol=1e-6)  # float sinusoids
    np.testing.assert_allclose(found.logits[1, 0].detach().numpy(), expected, atol=1e-6)


def test_sinusoids_turn_by_the_same_angle_from_place_to_place() -> None:
    vectors = sinusoids(100, 8).double()
    torch.testing.assert_close(vectors.square().sum(1), torch.full((100,), 4.0, dtype=torch.float64))
    near = (vectors[:-7] * vectors[7:]).sum(1)
    torch.testing.assert_close(near, near[:1].expand_as(near), rtol=1e-5, atol=1e-5)


# A history is a list of acts on the pasts so far: (which past, rows to take) or (which past, words to add).
acts = st.lists(
    st.tuples(
        st.integers(0, 100),
        st.one_of(st.integers(1, ROOM + 1), st.lists(st.integers(0, 100), min_size=1, max_size=3)),
    ),
    max_size=12,
)


@torch.no_grad()
@given(acts)
def test_a_past_never_changes_whatever_is_done_with_it(history: list[tuple[int, int | list[int]]]) -> None:
    generator = torch.Generator().manual_seed(1)
    pasts, truths = [Past(torch.empty(2, 3, 1, 0, 2))], [torch.empty(2, 3, 1, 0, 2)]
    for which, act in history:
        past, truth = pasts[which % len(pasts)], truths[which % len(pasts)]
        if isinstance(act, int):
            new = torch.rand(2, truth.size(1), 1, act, 2, generator=generator)
            pasts.append(past.append(new))
            truths.append(torch.cat([truth, new], dim=3))
        else:
            rows = torch.tensor([row % truth.size(1) for row in act])
            pasts.append(past.select(rows))
            truths.append(truth[:, rows])
    for past, truth in zip(pasts, truths, strict=True):
        assert torch.equal(torch.stack([past.keys, past.values]), truth)


@torch.no_grad()
def test_a_past_that_goes_on_is_not_copied() -> None:
    past = Past(torch.empty(2, 3, 1, 0, 2))
    buffers = set()
    for _ in range(3 * ROOM):
        past = past.append(torch.rand(2, 3, 1, 1, 2))
        buffers.add(past.buffer.data_ptr())
    assert len(buffers) <= 3
    assert past.keys.shape == (3, 1, 3 * ROOM, 2)


@BOTH
@pytest.mark.parametrize("recorded", [True, False], ids=["with gradients", "without"])
def test_two_continuations_of_a_state_do_not_disturb_each_other(name: str, recorded: bool) -> None:
    model, vision = make(name)
    tokens = some_tokens(model, 4, ROOM + 2)
    with torch.set_grad_enabled(recorded):
        whole = model.predict(vision, tokens.unsqueeze(1)).logits[:, 0]
        state = model.begin(vision)
        for at in range(tokens.size(1)):
            logits, after = model.step(tokens[:, at], state)
            model.step(tokens[:, at].flip(0), state)  # another continuation, thrown away
            model.step(tokens[:2, at], state.select(torch.tensor([3, 1])))
            again, _ = model.step(tokens[:, at], state)
            assert torch.equal(again, logits)
            torch.testing.assert_close(logits, whole[:, at], rtol=1e-9, atol=1e-12)
            state = after


@BOTH
def test_gradients_through_steps_are_those_of_predict(name: str) -> None:
    model, vision = make(name, {"concepts": 2, "copy_words": True})
    tokens = some_tokens(model, 4, 5)
    parameters = [value for key, value in model.named_parameters() if key != "remember.absent"]
    whole = torch.autograd.grad(model.predict(vision, tokens.unsqueeze(1)).logits.square().sum(), parameters)
    state, total = model.begin(vision), torch.zeros((), dtype=torch.float64)
    for token in tokens.T:
        logits, state = model.step(token, state)
        total = total + logits.square().sum()
    for expected, found in zip(whole, torch.autograd.grad(total, parameters), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@BOTH
@pytest.mark.parametrize("use", ["predict", "beam"])
def test_keys_and_values_of_the_memory_are_computed_once_an_image(name: str, use: str) -> None:
    model, vision = make(name)
    rows: list[int] = []
    for layer in model.decoder:
        layer.memory.look.register_forward_hook(lambda _, given, __: rows.append(given[0][..., 0].numel()))
    run: Callable[[], object] = {
        "predict": lambda: model.predict(vision, some_tokens(model, 4, 5, 7)),
        "beam": lambda: beam(model, vision, width=5, max_words=6),
    }[use]
    run()
    levels = 2 if name == "meshed" else 1
    assert rows == [4 * levels * 9] * 2  # images, levels and places, once for each of two layers


@BOTH
def test_hidden_states_and_attention_of_every_layer(name: str) -> None:
    model, vision = make(name, {"concepts": 3})
    prediction = model.predict(vision, some_tokens(model, 4, 2, 5))
    assert [tuple(x.shape) for x in prediction.hidden] == [(4, 2, 5, 8)] * 2
    assert [tuple(x.shape) for x in prediction.attention] == [(4, 2, 2, 5, 9 + 3)] * 2
    for first, second in (prediction.hidden, prediction.attention):
        assert not torch.allclose(first, second)


@BOTH
def test_a_concept_word_is_attended_to_by_its_probability(name: str) -> None:
    model, vision = make(name, {"concepts": 3})
    for layer in model.decoder:  # a question that all rows answer alike leaves only the bias
        nn.init.zeros_(layer.memory.query.weight)
    assert model.remember.concepts is not None
    _, probability = model.remember.concepts(vision.classes)
    weights = torch.cat([torch.ones(4, 9, dtype=torch.float64), probability.clamp(min=FAINT)], dim=1)
    expected = (weights / weights.sum(1, keepdim=True))[:, None, None, None].expand(4, 2, 2, 5, 12)
    for attention_of_layer in model.predict(vision, some_tokens(model, 4, 2, 5)).attention:
        torch.testing.assert_close(attention_of_layer, expected, rtol=1e-9, atol=1e-12)


@BOTH
def test_an_unlikely_concept_hardly_changes_what_the_encoder_sees(name: str) -> None:
    model, _ = make(name, {"concepts": 1})
    layer = model.encoder.get_submodule("layers.0")
    x = torch.randn(4, 10, 8, dtype=torch.float64)
    bias = torch.zeros(4, 10, dtype=torch.float64)
    other = x.clone()
    other[:, -1] = 1 - other[:, 0]
    loud = (layer(other, bias) - layer(x, bias))[:, :-1].abs().max()
    bias[:, -1] = -20.0
    faint = (layer(other, bias) - layer(x, bias))[:, :-1].abs().max()
    assert faint < 1e-6 < 1e-3 < loud


@BOTH
def test_where_a_thing_stands_matters(name: str) -> None:
    model, vision = make(name)
    moved = Vision(vision.grid.flip(1), vision.pooled, vision.classes)
    tokens = some_tokens(model, 4, 1, 3)
    assert not torch.allclose(model.predict(vision, tokens).logits, model.predict(moved, tokens).logits)


@BOTH
def test_captions_may_be_long_but_not_without_end(name: str) -> None:
    model, vision = make(name)
    one = vision.select(torch.tensor([0]))
    assert model.predict(one, some_tokens(model, 1, 1, LONGEST)).logits.isfinite().all()
    assert LONGEST > 75
    with pytest.raises(TellapartError, match=f"a caption of {LONGEST + 1} tokens.*{LONGEST} at most"):
        model.predict(one, some_tokens(model, 1, 1, LONGEST + 1))


@BOTH
@pytest.mark.parametrize("shape", [(4, 5), (9, 6), (16, 5)])
def test_a_grid_of_another_shape_is_refused(name: str, shape: tuple[int, int]) -> None:
    model, vision = make(name)
    other = Vision(torch.zeros(4, *shape, dtype=torch.float64), vision.pooled, vision.classes)
    problem = re.escape(f"a grid of {shape[0]} x {shape[1]} (places x features) was given")
    with pytest.raises(TellapartError, match=problem):
        model.begin(other)


@BOTH
@pytest.mark.parametrize(("width", "heads"), [(10, 4), (6, 2), (512, 7)])
def test_heads_must_share_the_width(name: str, width: int, heads: int) -> None:
    with pytest.raises(ValidationError, match=f"a multiple of {2 * heads}"):
        CAPTIONERS.get(name).configure({"width": width, "heads": heads})


def test_default_sizes_are_the_papers() -> None:
    config = TransformerConfig()
    sizes = (config.encoder_layers, config.decoder_layers, config.width, config.heads, config.feed_forward)
    assert sizes == (6, 6, 512, 8, 2048)
    assert config.dropout == 0.1


@BOTH
def test_an_untied_table_writes_with_weights_of_its_own(name: str) -> None:
    tied, _ = make(name)
    untied, _ = make(name, {"tied": False})
    more = sum(x.numel() for x in untied.parameters()) - sum(x.numel() for x in tied.parameters())
    assert more == len(tied.text) * 8


@BOTH
def test_it_learns_captions_by_heart(name: str) -> None:
    """In training mode, with dropout and no warm-up."""
    sizes = {"width": 32, "heads": 2, "feed_forward": 64, "dropout": 0.1}
    subject = prepare(name, settings=sizes)
    model, vision = subject.captioner.float().train(), subject.vision
    seen = Vision(vision.grid.float(), vision.pooled.float(), vision.classes.float())
    torch.manual_seed(0)
    tokens = torch.randint(8, 13, (4, 2, 6))
    tokens[:, :, 0] = model.text.start
    tokens[:, 1] = tokens[:, 0]
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        logits = model.predict(seen, tokens[:, :, :-1]).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 2), tokens[:, :, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    model.eval()
    written = model.predict(seen, tokens[:, :, :-1]).logits.argmax(-1)
    assert torch.equal(written, tokens[:, :, 1:])


@BOTH
def test_its_recipe_is_whole(name: str, real_data: Path) -> None:
    recipe = load_recipe(f"{name}-flickr8k", changes=[f"data.root={real_data}"])
    assert recipe.captioner["width"] == 256
