"""Captions of pictures of a collection that are drawn by chance; a picture's do not depend on its company."""

from __future__ import annotations

from collections.abc import Sequence

from tellapart.collection.speaker import Speaker
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.types import Decoded, Vision

TEMPERATURE = 0.8


def draw(speaker: Speaker, vision: Vision, names: Sequence[str], count: int) -> Decoded:
    """So many captions of each picture; the draw hangs on the name, which is to tell its purpose too."""
    return sample(
        speaker.describer.saved.captioner,
        vision,
        Sampling(count, temperature=TEMPERATURE),
        generators=image_generators(names, seed=speaker.plan.seed),
        max_words=speaker.wish.max_words,
        rules=speaker.wish.rules,
    )
