"""The evaluator of the conditional GAN: did a person write this caption of this image?"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from tellapart.arrays import Bool, Float, Int
from tellapart.types import Vision


class Evaluator(nn.Module):
    """Dai et al. 2017, Eq. 1: the logistic function of the dot product of an image's and a caption's vector.

    An image is what the captioner's own encoder saw, and a caption is read by a GRU where they have an LSTM.
    """

    def __init__(self, *, words: int, picture: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.sentence = nn.Linear(width, width)
        self.picture = nn.Linear(picture, width)
        nn.init.normal_(self.picture.weight)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(
        self, vision: Vision, tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
    ) -> Float[Tensor, "b k"]:
        """The logit of "by a person, of this image"; of a caption that is not there it means nothing."""
        states, _ = self.reader(self.words(tokens.flatten(0, 1)))
        last = (mask.flatten(0, 1).sum(-1) - 1).clamp_min(0)
        read = states.take_along_dim(last[:, None, None], 1).view(*tokens.shape[:2], -1)
        seen = picture_of(vision)
        # Of length 1, with weights of size 1 to make up for it: a step of Adam, which moves all weights
        # alike, is then no leap where an image has thousands of features.
        seen = self.picture(layer_norm(seen, seen.shape[-1:]) / math.sqrt(seen.size(-1)))
        products: Tensor = (self.sentence(read) * seen.unsqueeze(1)).sum(-1)
        return products / math.sqrt(seen.size(-1)) + self.bias


def picture_of(vision: Vision) -> Float[Tensor, "b d"]:
    """One vector an image, of whatever the captioner looks at."""
    if vision.pooled.size(-1):
        return vision.pooled
    return vision.grid.mean(1) if vision.grid.size(1) else vision.classes
