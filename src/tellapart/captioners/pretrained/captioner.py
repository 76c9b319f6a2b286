"""A checkpoint of transformers as a captioner."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.captioners.expect import expect_grid
from tellapart.captioners.per_image import PerImage
from tellapart.captioners.pretrained.family import (
    FamilyState,
    as_bias,
    caption_mask,
    kept_of,
    make_cache,
    prompt_mask,
    step_mask,
    with_next,
)
from tellapart.captioners.pretrained.writers import Passage, Writer
from tellapart.captioners.tokenizer_text import TokenizerText
from tellapart.errors import TellapartError
from tellapart.types import Captioner, Prediction, Vision
from tellapart.vision.tower_encoder import Tower


class PretrainedCaptioner(Captioner[FamilyState]):
    """The writer of a checkpoint, and its tower where that is trained too.

    `Prediction.hidden` has one entry a decoder layer; `Prediction.attention` too where the writer
    cross-attends (over the rows of the grid), and none where the image is part of the sequence, since what a
    caption gives to it there is only a share of its attention.
    """

    needs = frozenset({"grid"})

    def __init__(
        self,
        writer: Writer,
        *,
        text: TokenizerText,
        grid: tuple[int, int],
        tower: Tower | None,
        sides: tuple[int, int],
    ) -> None:
        """Put together.

        Args:
            writer: what writes.
            text: the checkpoint's tokenizer.
            grid: places and features of the grids that it is given.
            tower: what sees; None: the grid holds what it saw.
            sides: height and width of the pixels that the tower is given.
        """
        super().__init__()
        self.text = text
        self.writer = writer
        self.grid = grid
        self.tower = tower
        self.sides = sides
        self.longest = writer.longest - writer.before + writer.unplaced

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """All captions of an image as one sequence: what stands before them is read once."""
        images, captions, length = tokens.shape
        self._expect_room(length)
        before, grid = self.writer.before, self._grid(vision)
        positions = self._positions(0, length).repeat(1, captions)
        words = self.writer.embed(tokens.reshape(images, -1), positions)
        embedded = torch.cat([self.writer.open(grid), words], dim=1)
        seen = caption_mask(before, self.writer.unplaced, captions, length, grid.device)
        passage = Passage(
            embedded,
            torch.cat([self._positions(-before, before), positions], dim=1),
            as_bias(seen.unsqueeze(0), embedded.dtype),
            self.writer.show(grid),
        )
        result = self.writer.read(passage, last=captions * length, watch=True)
        return Prediction(
            result.logits.view(*tokens.shape, -1),
            tuple(states.reshape(*tokens.shape, -1) for states in result.hidden),
            tuple(
                weights.reshape(images, weights.size(1), captions, length, -1).transpose(1, 2)
                for weights in result.attention
            ),
        )

    def begin(self, vision: Vision) -> FamilyState:
        """The image and all of the prompt but its last token, once an image."""
        grid = self._grid(vision)
        before, shown = self.writer.before, self.writer.show(grid)
        cache = make_cache((), own=0, crosses=self.writer.crosses)
        if before:
            embedded = self.writer.open(grid)
            seen = prompt_mask(before, self.writer.unplaced, grid.device)
            bias = as_bias(seen.unsqueeze(0), embedded.dtype)
            self.writer.read(Passage(embedded, self._positions(-before, before), bias, shown, cache), last=1)
        none = torch.zeros(len(grid), 0, dtype=torch.bool, device=grid.device)
        return self._state(shown, cache, none, length=0)

    def step(self, token: Int[Tensor, " r"], state: FamilyState) -> tuple[Float[Tensor, "r v"], FamilyState]:
        """One token a row, all rows of an image in one go."""
        self._expect_room(state.length + 1)
        crosses = self.writer.crosses
        shown, kept = (
            (state.kept.tensors[0], state.kept.tensors[1:]) if crosses else (None, state.kept.tensors)
        )
        cache = make_cache(kept, own=state.own, crosses=crosses)
        positions = self._positions(state.length, 1).repeat(1, state.kept.group)
        embedded = self.writer.embed(state.kept.grouped(token), positions)
        ancestors = with_next(state)
        seen = step_mask(self.writer.before, state.kept.grouped(ancestors))
        bias = as_bias(seen, embedded.dtype)
        passage = Passage(embedded, positions, bias, shown, cache)
        result = self.writer.read(passage, last=state.kept.group)
        after = self._state(shown, cache, ancestors, length=state.length + 1, group=state.kept.group)
        return result.logits.flatten(0, 1), after

    def _state(
        self,
        shown: Tensor | None,
        cache: Any,
        ancestors: Tensor,
        *,
        length: int,
        group: int = 1,
    ) -> FamilyState:
        own, crossed = kept_of(cache, crosses=self.writer.crosses)
        tensors = (*own, *crossed) if shown is None else (shown, *own, *crossed)
        return FamilyState(PerImage(tensors, group), len(own), ancestors, length)

    def _grid(self, vision: Vision) -> Float[Tensor, "b n d"]:
        places, width = self.grid
        expect_grid(vision.grid, places=places, width=width)
        if self.tower is None:
            return vision.grid
        grid: Tensor = self.tower(vision.grid.reshape(len(vision.grid), 3, *self.sides))
        return grid

    def _positions(self, start: int, count: int) -> Int[Tensor, "1 q"]:
        """Of tokens that begin so many places behind the first of a caption."""
        first = self.writer.before - self.writer.unplaced + start
        device = next(self.parameters()).device
        return torch.arange(first, first + count, device=device).clamp(min=0).unsqueeze(0)

    def _expect_room(self, length: int) -> None:
        if self.longest is not None and length > self.longest:
            raise TellapartError(
                f"a caption of {length} tokens is too long for this checkpoint, which reads {self.longest}",
                hint="ask for fewer words: --max-words, or decoding.max_words in a recipe",
            )
