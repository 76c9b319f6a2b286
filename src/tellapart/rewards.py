"""How good captions of training images are, for objectives that learn from rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tellapart.arrays import Float32
from tellapart.errors import TellapartError
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.metrics.embedding_score import WEIGHT
from tellapart.objectives.finding import build_finder
from tellapart.objectives.settings.rewards import CiderReward, ClipReward, RetrievalReward, RewardConfig
from tellapart.objectives.supplies import Reward, Supplies
from tellapart.types import Text

END = "\n"  # the end sign as a word: no word is spelt so

Captions = Sequence[Sequence[Sequence[int]]]  # tokens of some captions of each image, as many of each


def build_reward(config: RewardConfig, supplies: Supplies) -> Reward:
    """The reward that these settings name; its weight is for those who mix."""
    if isinstance(config, CiderReward):
        return cider_reward(supplies)
    if isinstance(config, RetrievalReward):
        return retrieval_reward(config, supplies)
    return clip_reward(config, supplies)


def cider_reward(supplies: Supplies) -> Reward:
    """CIDEr-D against the image's own captions, document frequencies from all training captions.

    The end sign is a word of caption and reference alike. An image without captions has no reward.
    """
    text, images = supplies.text, supplies.training_set
    known = CountedCaptions.count(
        [[spelt(text, caption) for caption in images.captions(row)] for row in range(len(images))]
    )
    if known.documents < 2:
        raise TellapartError(
            "the reward cider-d takes the rarity of words from the training captions, and "
            f"{known.documents} training image has any: every word would be worth nothing",
            hint="train on two images with captions or more, or take another reward",
        )

    def reward(rows: Sequence[int], captions: Captions) -> Float32[np.ndarray, "n k"]:
        written = known.read([[spelt(text, tokens) for tokens in group] for group in captions])
        return _table(known.cider_d(written, known.of([[row] for row in rows])), rows)

    return reward


def spelt(text: Text, tokens: Sequence[int]) -> list[str]:
    """The words of a caption, and its end sign where it has one."""
    return [*text.decode(tokens).split(), *([END] if text.end in tokens else [])]


def retrieval_reward(config: RetrievalReward, supplies: Supplies) -> Reward:
    """How well a caption finds its picture among those most like it.

    rank    1 / rank, counted from 1; another picture that is as close stands before it.
    margin  its cosine with its picture, less that with the closest of the others.
    """
    finder = build_finder(config.retriever, config.neighbours, supplies)

    def reward(rows: Sequence[int], captions: Captions) -> Float32[np.ndarray, "n k"]:
        ranks, margins = finder(rows, captions)
        return margins if config.form == "margin" else np.asarray(1 / (1 + ranks), np.float32)

    return reward


def clip_reward(config: ClipReward, supplies: Supplies) -> Reward:
    """CLIPScore of a caption and its picture."""
    from tellapart.metrics.clipscore import PREFIX  # those who have no CLIP need none of that

    places, text = supplies.places(f"clip:{config.model}"), supplies.text

    def reward(rows: Sequence[int], captions: Captions) -> Float32[np.ndarray, "n k"]:
        said = places.embed([[PREFIX + text.decode(tokens) for tokens in group] for group in captions])
        cosines = np.einsum("nkd,nd->nk", said, places.pictures[list(rows)])
        return np.asarray(WEIGHT * np.maximum(cosines, 0), np.float32)

    return reward


def _table(values: np.ndarray, rows: Sequence[int]) -> Float32[np.ndarray, "n k"]:
    return np.asarray(values.reshape(len(rows), -1), np.float32)
