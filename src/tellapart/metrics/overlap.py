"""What the texts of one image have in common: the n-grams that at least two of them hold.

Every measure of a set of candidates comes down to these. Most n-grams of a caption stand in it alone, above
all the longer ones, so that little is left to multiply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tellapart.metrics.score import Floats
from tellapart.metrics.sentences import Ints, NGrams, Sentences, runs, sort_with_places, spread

_PAIRS = 1 << 18  # of texts in a block of images, and
_CELLS = 1 << 20  # of the tables of a part of it: few enough to stay near the processor


@dataclass(frozen=True, slots=True)
class Candidates:
    """The texts of some images, the same number for each, image after image; and their n-grams."""

    words: Sentences
    width: int
    orders: list[NGrams]

    def __len__(self) -> int:
        return len(self.words) // self.width

    @property
    def lengths(self) -> Ints:
        """Words of each text: (images, width)."""
        return self.words.lengths.reshape(-1, self.width)


def image_blocks(images: int, width: int) -> Iterator[slice]:
    """All images, as many at a time as keep a table of all pairs of their texts small."""
    size = max(1, _PAIRS // width**2)
    for begin in range(0, images, size):
        yield slice(begin, min(begin + size, images))


def of_images(grams: NGrams, width: int, images: slice) -> NGrams:
    """The n-grams of some images, whose texts are numbered from 0."""
    first = images.start * width
    low, high = np.searchsorted(grams.sentence, [first, images.stop * width]).tolist()
    return NGrams(grams.sentence[low:high] - first, grams.gram[low:high], grams.count[low:high], grams.kinds)


@dataclass(frozen=True, slots=True)
class Shared:
    """N-grams that several texts of an image hold, a row a text; sorted by image, n-gram and count.

    The rows of one n-gram of one image are a run.
    """

    image: Ints
    text: Ints  # its number within the image
    gram: Ints
    count: Ints
    begin: Ints  # of the row's run
    end: Ints


def shared_ngrams(grams: NGrams, width: int) -> Shared:
    """Find them by one sort."""
    image = grams.sentence // width
    most = int(grams.count.max(initial=0)) + 1
    run_key = image * grams.kinds + grams.gram
    _, order = sort_with_places(run_key * most + grams.count)
    _, sizes = runs(run_key[order])
    order = order[np.repeat(sizes > 1, sizes)]
    sizes = sizes[sizes > 1]
    ends = np.cumsum(sizes)
    return Shared(
        image[order],
        grams.sentence[order] % width,
        grams.gram[order],
        grams.count[order],
        np.repeat(ends - sizes, sizes),
        np.repeat(ends, sizes),
    )


def inner_products(shared: Shared, weight: Floats, *, images: int, width: int) -> Floats:
    """Sums of products of the weights of what two texts share: (images, width, width), the diagonal 0."""
    found = np.zeros((images, width, width))
    run = np.cumsum(shared.begin == np.arange(len(shared.begin))) - 1
    first = np.searchsorted(shared.image, np.arange(images + 1))
    column = run - run[first[shared.image]]
    columns = np.bincount(shared.image[np.unique(shared.begin)], minlength=images)
    for some in _alike(columns, width):
        place_of, place = spread(first[some], first[some + 1])
        table = np.zeros((len(some), width, int(columns[some[0]])))
        table[place_of, shared.text[place], column[place]] = weight[place]
        found[some] = table @ table.transpose(0, 2, 1)
    found[:, np.arange(width), np.arange(width)] = 0.0
    return found


def _alike(columns: Ints, width: int) -> Iterator[Ints]:
    """Images with similar numbers of columns together, the most first, so that little of a table is empty."""
    order = np.argsort(-columns)
    order = order[: np.count_nonzero(columns)]
    begin = 0
    while begin < len(order):
        size = max(1, _CELLS // (width * int(columns[order[begin]])))
        yield order[begin : begin + size]
        begin += size
