"""The m-RNN and its variants against a NumPy transcription of the paper's equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.mrnn import PARTS, MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = dict[str, Array]

TEXT = WordText(Vocabulary(tuple("abcdef")), PRESETS["mrnn"])
IMAGE = 4  # width of its features
SIZES: dict[str, dict[str, object]] = {
    "mrnn-one-layer-emb": {"embedding": 7, "multimodal": 9},
    "mrnn-vis-in-rnn-both-shared": {"embedding_one": 5, "embedding_two": 7, "multimodal": 7},
}
USUAL_SIZES: dict[str, object] = {"embedding_one": 5, "embedding_two": 7, "multimodal": 9}
WITHOUT_REFINED = ("mrnn-vis-in-rnn", "rnn-base")
NAMES = [part.name for part in PARTS]


def traits(width: int) -> EncoderTraits:
    return EncoderTraits(name="any", identity="any", shapes={"pooled": (width,)})


def make(name: str, *, dropout: float = 0.0) -> MRNN:
    torch.manual_seed(5)
    config = CAPTIONERS.get(name).configure({**SIZES.get(name, USUAL_SIZES), "dropout": dropout})
    model = build_captioner(name, config, text=TEXT, traits=traits(IMAGE))
    assert isinstance(model, MRNN)
    return model.double().eval()


def see(pooled: torch.Tensor) -> Vision:
    return Vision(pooled.new_zeros(len(pooled), 0, 4), pooled, pooled.new_zeros(len(pooled), 0))


def pictures(count: int, seed: int = 0) -> Vision:
    generator = torch.Generator().manual_seed(seed)
    return see(torch.randn(count, IMAGE, generator=generator, dtype=torch.float64))


def g2(x: Array) -> Array:
    return 1.7159 * np.tanh(2 / 3 * x)  # Eq. 4


# What each network adds up at one word. Arguments: its weights, the word's number, r(t-1), the image.
# Results: r(t) and the logits. Each is written out from the paper on its own, though most lines are the same.
Transcription = Callable[[Weights, int, Array, Array], tuple[Array, Array]]


def mrnn(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)  # Eq. 2
    heard = u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent
    multimodal = g2(heard + u["from_image.weight"] @ image)  # Eq. 3
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def no_emb_input(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    multimodal = g2(u["from_recurrent.weight"] @ recurrent + u["from_image.weight"] @ image)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def one_layer_emb(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    heard = u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent
    multimodal = g2(heard + u["from_image.weight"] @ image)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def emb_one_input(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    first = u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + u["embedding_two.weight"] @ first)
    heard = u["from_word.weight"] @ first + u["from_recurrent.weight"] @ recurrent
    multimodal = g2(heard + u["from_image.weight"] @ image)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def vis_in_rnn(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    word = word + u["image_to_embedding.weight"] @ image
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    multimodal = g2(u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def vis_in_rnn_both(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    word = word + u["image_to_embedding.weight"] @ image  # V_I(2)
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    heard = u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent
    multimodal = g2(heard + u["from_image.weight"] @ image)  # V_I(1)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


def vis_in_rnn_both_shared(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    shown = u["from_image.weight"] @ image  # V_I(1) = V_I(2)
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token] + shown
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    heard = u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent
    return recurrent, u["output.weight"] @ g2(heard + shown) + u["output.bias"]


def shared(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    heard = u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent
    multimodal = g2(heard + u["from_image.weight"] @ image)
    intermediate = g2(u["output.0.weight"] @ multimodal)  # U_I
    return recurrent, u["embedding_one.weight"] @ intermediate + u["output.2.bias"]


def rnn_base(u: Weights, token: int, before: Array, image: Array) -> tuple[Array, Array]:
    word = u["embedding_two.weight"] @ u["embedding_one.weight"][token]
    recurrent = np.maximum(0, u["recurrence.weight"] @ before + word)
    multimodal = g2(u["from_word.weight"] @ word + u["from_recurrent.weight"] @ recurrent)
    return recurrent, u["output.weight"] @ multimodal + u["output.bias"]


TRANSCRIPTIONS: dict[str, Transcription] = {
    "mrnn": mrnn,
    "mrnn-no-emb-input": no_emb_input,
    "mrnn-one-layer-emb": one_layer_emb,
    "mrnn-emb-one-input": emb_one_input,
    "mrnn-vis-in-rnn": vis_in_rnn,
    "mrnn-vis-in-rnn-both": vis_in_rnn_both,
    "mrnn-vis-in-rnn-both-shared": vis_in_rnn_both_shared,
    "mrnn-shared": shared,
    "rnn-base": rnn_base,
}


def by_hand(model: MRNN, name: str, image: torch.Tensor, tokens: list[int]) -> Array:
    """The logits after each token."""
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    recurrent, rows = np.zeros(7), []
    for token in tokens:
        recurrent, logits = TRANSCRIPTIONS[name](weights, token, recurrent, image.numpy())
        rows.append(logits)
    return np.stack(rows)


captions = st.lists(st.integers(0, len(TEXT) - 1), min_size=1, max_size=6)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(tokens=captions, seed=st.integers(0, 99))
@torch.no_grad()
def test_equations_2_to_4(name: str, tokens: list[int], seed: int) -> None:
    model, vision = make(name), pictures(2, seed)
    expected = by_hand(model, name, vision.pooled[1], tokens)
    whole = model.predict(vision, torch.tensor([[tokens], [tokens]])).logits[1, 0]
    np.testing.assert_allclose(whole.numpy(), expected, rtol=1e-9, atol=1e-12)
    # Two rows an image, as a beam has them.
    state = model.begin(vision).select(torch.tensor([0, 0, 1, 1]))
    for token, row in zip(tokens, expected, strict=True):
        logits, state = model.step(torch.full((4,), token), state)
        np.testing.assert_allclose(logits[3].numpy(), row, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_is_close_to_the_equations(name: str) -> None:
    model, vision, tokens = make(name), pictures(1), [1, 4, 7, 5, 9]
    expected = by_hand(model, name, vision.pooled[0], tokens)
    logits = model.float().predict(see(vision.pooled.float()), torch.tensor([[tokens]])).logits
    np.testing.assert_allclose(logits[0, 0].detach().numpy(), expected, atol=1e-6)


def test_default_sizes_are_the_papers() -> None:
    model = MRNN(MRNNConfig(), text=TEXT, image_width=4096)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes == {
        "embedding_one.weight": (10, 128),
        "embedding_two.weight": (256, 128),
        "recurrence.weight": (256, 256),
        "from_word.weight": (512, 256),
        "from_recurrent.weight": (512, 256),
        "from_image.weight": (512, 4096),
        "output.weight": (10, 512),
        "output.bias": (10,),
    }


def count(name: str, words: int) -> int:
    text = WordText(Vocabulary(tuple(f"w{number}" for number in range(words - 4))), PRESETS["mrnn"])
    assert len(text) == words
    model = build_captioner(name, CAPTIONERS.get(name).configure({}), text=text, traits=traits(4096))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("words", [100, 8000])
def test_each_variant_has_the_connections_of_figure_5(words: int) -> None:
    """Section 10.1 gives 256 · M against 128 · M + 128 · 256 for the embeddings; the rest is as drawn."""
    base = count("mrnn", words)
    assert count("mrnn-one-layer-emb", words) - base == 256 * words - (128 * words + 128 * 256)
    assert base - count("mrnn-no-emb-input", words) == 256 * 512
    assert base - count("mrnn-emb-one-input", words) == (256 - 128) * 512
    assert base - count("mrnn-vis-in-rnn", words) == 4096 * (512 - 256)
    assert count("mrnn-vis-in-rnn-both", words) - base == 4096 * 256
    assert base - count("rnn-base", words) == 4096 * 512
    assert base - count("mrnn-shared", words) == 512 * words - 512 * 128
    # 256 wide where the m-RNN has 512: V_w, V_r, V_I and the softmax layer have half the weights.
    narrower = (256 + 256 + 4096 + words) * 256
    assert base - count("mrnn-vis-in-rnn-both-shared", words) == narrower


@pytest.mark.parametrize("name", NAMES)
def test_the_recurrent_layer_sees_the_image_in_some_variants_only(name: str) -> None:
    model, token = make(name), torch.tensor([5])
    one, other = (model.step(token, model.begin(pictures(1, seed)))[1].recurrent for seed in (1, 2))
    assert torch.equal(one, other) == ("vis-in-rnn" not in name)


def test_rnn_base_asks_for_no_image_and_heeds_none() -> None:
    model, tokens = make("rnn-base"), torch.tensor([[[1, 4, 7]], [[1, 4, 7]]])
    assert model.needs == frozenset()
    logits = model.predict(pictures(2, seed=1), tokens).logits
    assert torch.equal(logits, model.predict(pictures(2, seed=2), tokens).logits)
    assert torch.equal(logits, model.predict(see(torch.zeros(2, 0, dtype=torch.float64)), tokens).logits)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rnn-base"])
def test_every_other_one_asks_for_the_image_and_heeds_it(name: str) -> None:
    model, tokens = make(name), torch.tensor([[[1, 4, 7]], [[1, 4, 7]]])
    assert model.needs == {"pooled"}
    logits = model.predict(pictures(2), tokens).logits
    assert not torch.allclose(logits[0], logits[1])


def test_an_encoder_without_pooled_features_is_refused_unless_no_image_is_seen() -> None:
    bare = EncoderTraits(name="blind", identity="blind", shapes={})
    with pytest.raises(TellapartError, match="blind gives no pooled feature"):
        build_captioner("mrnn-shared", MRNNConfig(), text=TEXT, traits=bare)
    assert build_captioner("rnn-base", MRNNConfig(), text=TEXT, traits=bare).needs == frozenset()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_REFINED])
def test_refined_feature(name: str) -> None:
    model, vision = make(name), pictures(3)
    seen = vision.pooled.numpy() @ model.state_dict()["from_image.weight"].numpy().T
    np.testing.assert_allclose(model.refined(vision).detach().numpy(), g2(seen), rtol=1e-12)


@pytest.mark.parametrize("name", WITHOUT_REFINED)
def test_no_refined_feature_without_its_weights(name: str) -> None:
    with pytest.raises(TellapartError, match="no refined image feature") as raised:
        make(name).refined(pictures(1))
    assert "mrnn" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("mrnn-shared", "embedding_one.weight", "output.2.weight"),
        ("mrnn-vis-in-rnn-both-shared", "from_image.weight", "image_to_embedding.weight"),
    ],
)
def test_shared_weights_stay_shared_while_training(name: str, one: str, other: str) -> None:
    model = make(name)
    before = model.state_dict()[one].clone()
    loss = model.predict(pictures(2), torch.tensor([[[1, 4]], [[1, 5]]])).logits[..., 3].sum()
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(0.1 * gradient)
    weights = model.state_dict()
    assert not torch.equal(weights[one], before)
    assert torch.equal(weights[one], weights[other])


def test_first_logits_of_shared_weights_are_small() -> None:
    """A fresh captioner has no opinion: its perplexity is about the number of words."""
    torch.manual_seed(0)
    text = WordText(Vocabulary(tuple(f"w{number}" for number in range(996))), PRESETS["mrnn"])
    model = build_captioner("mrnn-shared", MRNNConfig(), text=text, traits=traits(IMAGE))
    tokens = torch.randint(0, len(text), (2, 3, 10))
    logits = model.predict(see(torch.rand(2, IMAGE)), tokens).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :, :-1].flatten(0, 2), tokens[:, :, 1:].flatten())
    assert 0.8 * len(text) < float(loss.detach().exp()) < 1.25 * len(text)


def test_one_matrix_for_two_layers_wants_them_equally_wide() -> None:
    part = CAPTIONERS.get("mrnn-vis-in-rnn-both-shared")
    with pytest.raises(ValidationError, match=r"multimodal \(512\) must equal embedding_two \(256\)"):
        part.configure({"multimodal": 512})
    part.configure({"multimodal": 512, "embedding_two": 512})


@pytest.mark.parametrize("name", NAMES)
def test_dropout_acts_in_training_only(name: str) -> None:
    model = make(name, dropout=0.5)
    vision, tokens = pictures(1), torch.tensor([[[1, 4, 5]]])
    quiet = model.predict(vision, tokens).logits
    assert torch.equal(quiet, model.predict(vision, tokens).logits)
    assert not torch.equal(quiet, model.train().predict(vision, tokens).logits)


@pytest.mark.parametrize(("name", "layers"), [("mrnn", [7, 7, 9]), ("mrnn-emb-one-input", [7, 5, 7, 9])])
def test_dropout_acts_on_the_layers_it_says(name: str, layers: list[int]) -> None:
    model, seen = make(name, dropout=0.5), []
    model.dropout.register_forward_hook(lambda _module, _given, out: seen.append(out.size(-1)))
    model.predict(pictures(1), torch.tensor([[[1, 4, 5]]]))
    model.step(torch.tensor([1]), model.begin(pictures(1)))
    assert seen == 2 * layers
