"""The multimodal recurrent network of Mao et al. (ICLR 2015), section 3.2, and the variants of its Figure 5.

Every one of them is the same five layers; they differ in the connections between those (`Wiring`):

    w1(t) = U_1 · word(t)                                          word embedding layer I
    w(t)  = U_2 · w1(t) [+ V_I(2) · I]                             word embedding layer II
    r(t)  = ReLU(U_r · r(t-1) + w(t))                              recurrent layer, Eq. 2
    m(t)  = g2([V_w · w(t) or w1(t)] + V_r · r(t) [+ V_I · I])     multimodal layer, Eq. 3 and 4
    y(t)  = softmax(U_M · m(t) + b)                                softmax layer

What stands in brackets is what a variant adds, takes from elsewhere or leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.expect import expect_pooled
from tellapart.captioners.per_image import PerImage
from tellapart.captioners.settings.mrnn import MRNNConfig, OneLayerConfig
from tellapart.errors import TellapartError
from tellapart.types import Captioner, Prediction, Text, Vision
from tellapart.vision.traits import EncoderTraits


def scaled_tanh(x: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """g2, Eq. 4."""
    return 1.7159 * torch.tanh(x * (2 / 3))


class ScaledTanh(nn.Module):
    """g2 as a layer."""

    def forward(self, x: Float[Tensor, ...]) -> Float[Tensor, ...]:
        """Eq. 4."""
        return scaled_tanh(x)


class Cut(nn.Module):
    """A connection that is not drawn: whatever goes in, nothing is added to the layer of that width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Float[Tensor, "*places d"]) -> Float[Tensor, "*places m"]:
        """Zeros, which take no memory."""
        return x.new_zeros(1).expand(*x.shape[:-1], self.width)


@dataclass(frozen=True, slots=True)
class Wiring:
    """Which connections of Figure 5 are drawn. As it stands: the m-RNN itself."""

    embeddings: Literal[1, 2] = 2  # word embedding layers
    word_to_multimodal: Literal["layer I", "layer II", "cut"] = "layer II"  # V_w
    image_to_multimodal: bool = True  # V_I, or V_I(1) where there are two
    image_to_embedding: Literal["cut", "own", "shared"] = "cut"  # V_I(2); shared: V_I(2) = V_I(1)
    output: Literal["own", "transposed"] = "own"  # U_M; transposed: made of the word embeddings

    @property
    def sees(self) -> bool:
        """Whether the image enters anywhere."""
        return self.image_to_multimodal or self.image_to_embedding != "cut"


@dataclass(frozen=True, slots=True)
class MRNNState:
    """The recurrent layer, and what the image adds to the multimodal layer and to word embedding layer II."""

    recurrent: Float[Tensor, "r d"]
    image: PerImage

    def select(self, rows: Int[Tensor, " r"]) -> MRNNState:
        """The state of these rows."""
        return MRNNState(self.recurrent[rows], self.image.select(rows))


class MRNN(Captioner[MRNNState]):
    """Word embedding, recurrent, multimodal and softmax layer, connected as the wiring says.

    `Prediction.hidden` is the multimodal layer; there is no attention. Dropout acts on what leaves the word
    embedding layers for the layers above, on what leaves the recurrent layer for the multimodal layer, and on
    the multimodal layer.
    """

    def __init__(
        self, config: MRNNConfig, *, text: Text, image_width: int, wiring: Wiring | None = None
    ) -> None:
        super().__init__()
        wiring = wiring or Wiring()
        self.text = text
        self.wiring = wiring
        self.image_width = image_width
        self.needs = frozenset({"pooled"} if wiring.sees else ())
        first, words, multimodal = config.embedding_one, config.embedding_two, config.multimodal
        self.embedding_one = nn.Embedding(len(text), first)
        two = wiring.embeddings == 2
        self.embedding_two = nn.Linear(first, words, bias=False) if two else nn.Identity()
        self.recurrence = nn.Linear(words, words, bias=False)  # U_r
        heard = first if wiring.word_to_multimodal == "layer I" else words
        self.from_word = _connection(heard, multimodal, wiring.word_to_multimodal != "cut")  # V_w
        self.from_recurrent = nn.Linear(words, multimodal, bias=False)  # V_r
        self.from_image = _connection(image_width, multimodal, wiring.image_to_multimodal)  # V_I
        self.image_to_embedding = (
            self.from_image
            if wiring.image_to_embedding == "shared"
            else _connection(image_width, words, wiring.image_to_embedding == "own")
        )
        self.output = (
            _transposed(self.embedding_one, multimodal)
            if wiring.output == "transposed"
            else nn.Linear(multimodal, len(text))
        )
        self.dropout = nn.Dropout(config.dropout)

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """Only the recurrence runs word by word; every other layer takes all words at once."""
        to_multimodal, to_embedding = self.look(vision)
        heard, word = self.embed(tokens, to_embedding[:, None, None])  # (b, k, t, ...)
        recurrent = torch.zeros_like(word[:, :, 0])
        states = []
        for at in word.unbind(dim=2):
            recurrent = self.recur(recurrent, at)
            states.append(recurrent)
        multimodal = self.meet(heard, torch.stack(states, dim=2), to_multimodal[:, None, None])
        return Prediction(self.output(self.dropout(multimodal)), hidden=(multimodal,))

    def begin(self, vision: Vision) -> MRNNState:
        """r(0) = 0, and what the image adds, once an image."""
        image = PerImage(self.look(vision))
        return MRNNState(self.recurrence.weight.new_zeros(len(vision), self.recurrence.in_features), image)

    def step(self, token: Int[Tensor, " r"], state: MRNNState) -> tuple[Float[Tensor, "r v"], MRNNState]:
        """One word a row."""
        to_multimodal, to_embedding = state.image.tensors
        heard, word = self.embed(state.image.grouped(token), to_embedding[:, None])  # (images, group, ...)
        recurrent = self.recur(state.image.grouped(state.recurrent), word)
        multimodal = self.meet(heard, recurrent, to_multimodal[:, None]).flatten(0, 1)
        return self.output(self.dropout(multimodal)), MRNNState(recurrent.flatten(0, 1), state.image)

    def look(self, vision: Vision) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"]]:
        """V_I · I for the multimodal layer and V_I(2) · I for word embedding layer II; zeros where cut."""
        if self.wiring.sees:
            expect_pooled(vision.pooled, width=self.image_width)
        return self.from_image(vision.pooled), self.image_to_embedding(vision.pooled)

    def embed(
        self, tokens: Int[Tensor, ...], image: Float[Tensor, "... d"]
    ) -> tuple[Float[Tensor, "... e"], Float[Tensor, "... d"]]:
        """The word as the multimodal layer takes it, and w(t), as the recurrent layer takes it."""
        one: Tensor = self.embedding_one(tokens)
        word: Tensor = self.dropout(self.embedding_two(one) + image)
        return (self.dropout(one) if self.wiring.word_to_multimodal == "layer I" else word), word

    def recur(
        self, recurrent: Float[Tensor, "... d"], word: Float[Tensor, "... d"]
    ) -> Float[Tensor, "... d"]:
        """r(t), Eq. 2: by addition, with ReLU."""
        return torch.relu(self.recurrence(recurrent) + word)

    def meet(
        self,
        word: Float[Tensor, "... e"],
        recurrent: Float[Tensor, "... d"],
        image: Float[Tensor, "... m"],
    ) -> Float[Tensor, "... m"]:
        """m(t), Eq. 3: word, recurrent layer and image in one space, added."""
        return scaled_tanh(self.from_words(word, recurrent) + image)

    def from_words(
        self, word: Float[Tensor, "... e"], recurrent: Float[Tensor, "... d"]
    ) -> Float[Tensor, "... m"]:
        """V_w · w(t) + V_r · r(t): what the words add to the multimodal layer."""
        added: Tensor = self.from_word(word) + self.from_recurrent(self.dropout(recurrent))
        return added

    @property
    def meets_late(self) -> bool:
        """Whether the image enters nowhere below the multimodal layer."""
        return self.wiring.image_to_embedding == "cut"

    @property
    def softmax(self) -> nn.Linear:
        """U_M; of transposed weights, U_D'."""
        last = self.output[-1] if isinstance(self.output, nn.Sequential) else self.output
        return cast("nn.Linear", last)

    def hear(
        self, token: Int[Tensor, " r"], before: Float[Tensor, "r d"] | None
    ) -> tuple[Float[Tensor, "r m"], Float[Tensor, "r d"]]:
        """One word a row without an image: what it adds to the multimodal layer, and r(t)."""
        nothing = self.recurrence.weight.new_zeros(len(token), self.recurrence.in_features)
        heard, word = self.embed(token, nothing)
        recurrent = self.recur(nothing if before is None else before, word)
        return self.from_words(heard, recurrent), recurrent

    def see(self, vision: Vision) -> Float[Tensor, "b m"]:
        """V_I · I."""
        return self.look(vision)[0]

    def join(self, heard: Float[Tensor, "*p #b m"], seen: Float[Tensor, "b m"]) -> Float[Tensor, "*p b d"]:
        """m(t); of transposed weights, g2(U_I · m(t))."""
        multimodal = self.dropout(scaled_tanh(heard + seen))
        below = self.output[:-1] if isinstance(self.output, nn.Sequential) else nn.Identity()
        read: Tensor = below(multimodal)
        return read

    def refined(self, vision: Vision) -> Float[Tensor, "b m"]:
        """g2(V_I · I), section 8.1: the image as this captioner has learnt to see it."""
        if not self.wiring.image_to_multimodal:
            raise TellapartError(
                "this captioner has no refined image feature: its multimodal layer takes no image",
                hint="take one whose multimodal layer does, such as mrnn",
            )
        expect_pooled(vision.pooled, width=self.image_width)
        return scaled_tanh(self.from_image(vision.pooled))


def _connection(width_in: int, width_out: int, drawn: bool) -> nn.Module:
    return nn.Linear(width_in, width_out, bias=False) if drawn else Cut(width_out)


def _transposed(embedding: nn.Embedding, multimodal: int) -> nn.Module:
    """Transposed weight sharing: y(t) = softmax(U_D' · g2(U_I · m(t)) + b), with U_D the word embeddings."""
    softmax = nn.Linear(embedding.embedding_dim, embedding.num_embeddings)
    # Vectors of length about 1: with torch's normal ones the first logits would be in the tens.
    nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    softmax.weight = embedding.weight
    return nn.Sequential(nn.Linear(multimodal, embedding.embedding_dim, bias=False), ScaledTanh(), softmax)


def build(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """An untrained m-RNN for the features of that encoder."""
    return MRNN(config, text=text, image_width=traits.pooled())


def build_no_emb_input(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-NoEmbInput: the multimodal layer has two inputs, the recurrent layer and the image."""
    wiring = Wiring(word_to_multimodal="cut")
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=wiring)


def build_one_layer_emb(config: OneLayerConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-OneLayerEmb: a single word embedding layer, as wide as the recurrent layer."""
    sizes = MRNNConfig(
        embedding_one=config.embedding,
        embedding_two=config.embedding,
        multimodal=config.multimodal,
        dropout=config.dropout,
    )
    return MRNN(sizes, text=text, image_width=traits.pooled(), wiring=Wiring(embeddings=1))


def build_emb_one_input(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-EmbOneInput: the multimodal layer takes word embedding layer I instead of II."""
    wiring = Wiring(word_to_multimodal="layer I")
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=wiring)


def build_vis_in_rnn(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-visInRnn: the image enters word embedding layer II and nothing else."""
    wiring = Wiring(image_to_multimodal=False, image_to_embedding="own")
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=wiring)


def build_vis_in_rnn_both(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-visInRnn-both: the image enters word embedding layer II and the multimodal layer."""
    wiring = Wiring(image_to_embedding="own")
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=wiring)


def build_vis_in_rnn_both_shared(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-visInRnn-both-shared: the same, by the same weights."""
    wiring = Wiring(image_to_embedding="shared")
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=wiring)


def build_shared(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """m-RNN-shared: the softmax layer shares its weights with the word embeddings."""
    return MRNN(config, text=text, image_width=traits.pooled(), wiring=Wiring(output="transposed"))


def build_rnn_base(config: MRNNConfig, *, text: Text, traits: EncoderTraits) -> MRNN:
    """RNN-Base: no image at all, whatever the encoder."""
    return MRNN(config, text=text, image_width=0, wiring=Wiring(image_to_multimodal=False))
