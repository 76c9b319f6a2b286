"""How special each training caption is to its image, to weigh captions by or to draw them by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tellapart.arrays import Float32, Float64
from tellapart.errors import TellapartError
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.objectives.supplies import Places, TrainingSet
from tellapart.retrievers.entropy import retrieval_entropy
from tellapart.types import Text

IMAGES = 256  # whose captions are compared together


def cider_between(
    training_set: TrainingSet, text: Text, neighbours: int
) -> Sequence[Float32[np.ndarray, " k"]]:
    """CIDErBtw of each caption of each training image (Wang et al. 2020, Eq. 2).

    The mean CIDEr-D against all captions of the images most like its own, with the document frequencies of
    all training captions: the lower, the more the caption says that would not fit those. 0 where none of
    them has a caption.
    """
    near = training_set.nearest(neighbours)
    known = CountedCaptions.count(
        [
            [text.decode(caption).split() for caption in training_set.captions(row)]
            for row in range(len(training_set))
        ]
    )
    found: list[Float32[np.ndarray, " k"]] = []
    for first in range(0, len(near), IMAGES):
        rows = range(first, min(first + IMAGES, len(near)))
        values = known.cider_d(known.of([[row] for row in rows]), known.of(near[first : rows.stop].tolist()))
        sizes = [len(training_set.captions(row)) for row in rows]
        found += np.split(values.astype(np.float32), np.cumsum(sizes)[:-1])
    return found


def caption_preferences(
    captions: Sequence[Sequence[str]], places: Places, *, temperature: float, spread: float
) -> Sequence[Float64[np.ndarray, " k"]]:
    """How much each caption of each training image is to be preferred: -H / τ, H its retrieval entropy.

    H is UNKT's Eq. 3 over the training pictures. A caption that fits many pictures about as well has a high
    one; drawn with probability in proportion to exp(-H/τ), it is trained on less often.

    Args:
        captions: of each training image.
        places: where a retriever places the training pictures and any sentence.
        temperature: what cosines are divided by in the softmax of Eq. 3.
        spread: τ; the greater, the more alike all captions are.
    """
    if len(places.pictures) < 2:
        raise TellapartError(
            "training.caption_draw is distinctive, and there is one training picture: whatever the caption, "
            "its retrieval entropy is 0",
            hint="train on more pictures, or set training.caption_draw = 'uniform'",
        )
    sentences = {text: place for place, text in enumerate(dict.fromkeys(t for g in captions for t in g))}
    entropy = retrieval_entropy(places.read(list(sentences)), places.pictures, temperature=temperature)
    return [-entropy[[sentences[text] for text in group]] / spread for group in captions]
