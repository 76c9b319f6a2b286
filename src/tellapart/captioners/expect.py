"""Features of another size than a captioner was built for, said in one line instead of in matrix products."""

from __future__ import annotations

from torch import Tensor

from tellapart.arrays import Float
from tellapart.errors import TellapartError

_HINT = "use the encoder that the captioner was trained with"


def expect_grid(grid: Float[Tensor, "b n d"], *, places: int, width: int) -> None:
    """An error unless the grid has these places, of this width."""
    if grid.shape[1:] != (places, width):
        found = " x ".join(map(str, grid.shape[1:]))
        raise TellapartError(
            f"a grid of {found} (places x features) was given to a captioner built for {places} x {width}",
            hint=_HINT,
        )


def expect_pooled(pooled: Float[Tensor, "b p"], *, width: int) -> None:
    """An error unless the pooled feature has this width."""
    if pooled.size(1) != width:
        raise TellapartError(
            f"pooled features of {pooled.size(1)} numbers were given to a captioner built for {width}",
            hint=_HINT,
        )
