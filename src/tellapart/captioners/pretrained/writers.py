"""The part of a checkpoint that writes, whatever its make: shown an image, it continues sequences of tokens.

Two ways of being shown an image: beside the sequence, by cross-attention (BLIP, vision-encoder-decoders), or
at its head, as tokens (GIT, BLIP-2, image-text models).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of embedded sequences, and what they are read with."""

    embedded: Float[Tensor, "b q e"]
    positions: Int[Tensor, "1 q"]
    bias: Float[Tensor, "m 1 q w"]  # added to attention scores; m is b, or 1 where all images have the same
    shown: Float[Tensor, "b n d"] | None  # what is cross-attended to
    cache: Any = None  # of the library; grows by the passage


@dataclass(frozen=True, slots=True)
class Continuation:
    """What follows the last tokens of a passage."""

    logits: Float[Tensor, "b q v"]
    hidden: tuple[Float[Tensor, "b q e"], ...] = ()
    attention: tuple[Float[Tensor, "b h q n"], ...] = ()  # over what was shown


class Writer(nn.Module, ABC):
    """What a captioner needs of a network that writes."""

    crosses: bool  # whether images stand beside the sequence
    before: int  # tokens that stand before a caption's first: of the image, of the prompt
    unplaced: int = 0  # of those, the first so many have no position and see each other both ways
    longest: int  # positions there are

    @abstractmethod
    def show(self, grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e"] | None:
        """What of an image is cross-attended to; None where nothing is."""

    @abstractmethod
    def open(self, grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b p e"]:
        """What stands before a caption, embedded."""

    @abstractmethod
    def embed(self, tokens: Int[Tensor, "b q"], positions: Int[Tensor, "1 q"]) -> Float[Tensor, "b q e"]:
        """Tokens as the network takes them."""

    @abstractmethod
    def read(self, passage: Passage, *, last: int, watch: bool = False) -> Continuation:
        """What follows each of the last tokens; `watch`: and what the layers did there."""


class LibraryWriter(Writer):
    """A language model of transformers, through its own forward pass."""

    def __init__(
        self,
        network: Any,
        *,
        prompt: tuple[int, ...],
        crosses: bool,
        image_token: int = -1,
        project: Any = None,
    ) -> None:
        """Around a network.

        Args:
            network: with a language modelling head.
            prompt: what stands before a caption, its last token (the start sign) left out.
            crosses: whether it cross-attends to images.
            image_token: what holds the places of the image in the prompt, if any.
            project: from the encoder's width to the decoder's, where the checkpoint has such a layer.
        """
        super().__init__()
        self.network = network
        self.project = nn.Identity() if project is None else project
        self.crosses = crosses
        self.before = len(prompt)
        self.longest = network.config.get_text_config().max_position_embeddings
        self.prompt = nn.Buffer(torch.tensor(prompt, dtype=torch.long), persistent=False)
        self.image_token = image_token

    def show(self, grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e"] | None:
        """The grid, in the decoder's width."""
        return self.project(grid) if self.crosses else None

    def open(self, grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b p e"]:
        """The prompt, with the image in its places."""
        tokens = self.prompt.expand(len(grid), -1)
        embedded: Tensor = self.network.get_input_embeddings()(tokens)
        places = (tokens == self.image_token).unsqueeze(-1)
        return embedded if self.crosses else embedded.masked_scatter(places, grid.to(embedded.dtype))

    def embed(self, tokens: Int[Tensor, "b q"], positions: Int[Tensor, "1 q"]) -> Float[Tensor, "b q e"]:
        """Its word embedding; the network adds positions itself."""
        embedded: Tensor = self.network.get_input_embeddings()(tokens)
        return embedded

    def read(self, passage: Passage, *, last: int, watch: bool = False) -> Continuation:
        """One forward pass."""
        beside = {"encoder_hidden_states": passage.shown} if self.crosses else {}
        result = self.network(
            inputs_embeds=passage.embedded,
            position_ids=passage.positions,
            attention_mask=passage.bias,
            past_key_values=passage.cache,
            use_cache=passage.cache is not None,
            logits_to_keep=last,
            output_hidden_states=watch,
            output_attentions=watch and self.crosses,
            return_dict=True,
            **beside,
        )
        if not watch:
            return Continuation(result.logits)
        return Continuation(
            result.logits,
            tuple(states[:, -last:] for states in result.hidden_states[1:]),
            tuple(weights[:, :, -last:] for weights in result.cross_attentions) if self.crosses else (),
        )


class GitWriter(Writer):
    """GIT's text decoder: the projected image, without positions, then the prompt and the caption."""

    crosses = False

    def __init__(self, whole: Any, *, prompt: tuple[int, ...], places: int) -> None:
        super().__init__()
        self.embeddings = whole.git.embeddings
        self.project = whole.git.visual_projection
        self.layers = whole.git.encoder.layer
        self.output = whole.output
        self.unplaced = places
        self.before = places + len(prompt)
        self.longest = whole.config.max_position_embeddings
        self.prompt = nn.Buffer(torch.tensor(prompt, dtype=torch.long), persistent=False)

    def show(self, grid: Float[Tensor, "b n d"]) -> None:
        """Nothing: the image is part of the sequence."""

    def open(self, grid: Float[Tensor, "b n d"]) -> Float[Tensor, "b p e"]:
        """The projected image, then the prompt."""
        positions = torch.arange(len(self.prompt), device=grid.device).unsqueeze(0)
        words = self.embed(self.prompt.expand(len(grid), -1), positions)
        return torch.cat([self.project(grid), words], dim=1)

    def embed(self, tokens: Int[Tensor, "b q"], positions: Int[Tensor, "1 q"]) -> Float[Tensor, "b q e"]:
        """Words and positions, normalised."""
        embedded: Tensor = self.embeddings(input_ids=tokens, position_ids=positions)
        return embedded

    def read(self, passage: Passage, *, last: int, watch: bool = False) -> Continuation:
        """Layer by layer."""
        states = passage.embedded
        hidden = []
        for layer in self.layers:
            states = layer(states, passage.bias, passage.cache)
            hidden.append(states[:, -last:])
        return Continuation(self.output(hidden[-1]), tuple(hidden) if watch else ())
