"""How crowded a picture's surroundings are: whether many others of a pool look like it (Lindh et al. 2018).

A caption that would do for any picture of its kind is found out only where there are many of that kind.
Measures over the most and the least crowded pictures therefore say more than one over all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.score import Floats

Bools = NDArray[np.bool_]

NEIGHBOURS_PER_HUNDRED = 1
CROWD_PER_HUNDRED = 20
ROWS = 256  # pictures held against all others at a time


def neighbours(pictures: int) -> int:
    """How many of the nearest pictures tell the crowding of one: 1 % of the pool, and at least one."""
    return max(1, pictures * NEIGHBOURS_PER_HUNDRED // 100)


def crowding(
    features: NDArray[np.floating],
    *,
    rows: int = ROWS,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """Mean cosine of each picture to the nearest 1 % of the others, at least to one.

    The cosine with a feature that is all zeros is 0. Only `rows` rows of the matrix of cosines are ever held.

    Args:
        features: what pictures are compared by, (pictures, d).
        rows: how many pictures are held against all others at a time.
        progress: told how many pictures are done, and of how many.
    """
    directions = _directions(features)
    pictures = len(directions)
    nearest = neighbours(pictures)
    found = np.empty(pictures)
    for begin in range(0, pictures, rows):
        cosines = directions[begin : begin + rows] @ directions.T
        here = np.arange(len(cosines))
        cosines[here, begin + here] = -np.inf  # a picture is no neighbour of itself
        cosines.partition(pictures - nearest, axis=1)
        found[begin : begin + rows] = cosines[:, pictures - nearest :].mean(axis=1, dtype=np.float64)
        if progress is not None:
            progress(begin + len(cosines), pictures)
    return found


def most_and_least(values: Floats) -> tuple[Bools, Bools]:
    """Which pictures are among the 20 % most crowded and which among the 20 % least, at least one each.

    Pictures that are as crowded as the last of them belong to them too: two that are each other's nearest are
    equally crowded, and the order of files should not decide between them.
    """
    size = max(1, len(values) * CROWD_PER_HUNDRED // 100)
    ordered = np.sort(values)
    return values >= ordered[-size], values <= ordered[size - 1]


def _directions(features: NDArray[np.floating]) -> NDArray[np.floating]:
    """Features of length 1, in single precision at least."""
    values = np.asarray(features)
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.floating):
        raise TellapartError(
            f"picture features are {values.dtype} of shape {values.shape}",
            hint="crowding takes a matrix of floating-point numbers, one row a picture",
        )
    if len(values) < 2:
        raise TellapartError(
            f"crowding needs two pictures or more, and there are features of {len(values)}",
            hint="leave the features out, or give those of the whole pool",
        )
    values = values.astype(np.promote_types(values.dtype, np.float32))
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        raise TellapartError(
            f"the features of picture {bad[0]} (counted from 0) are not all finite",
            hint="NaN or an infinity usually means that the picture could not be encoded: encode it again",
        )
    # Divided by the greatest entry first: squares of great or tiny numbers leave the range of the type.
    values /= np.where((top := np.abs(values).max(axis=1, keepdims=True, initial=0)) > 0, top, 1)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(norms > 0, norms, 1))
