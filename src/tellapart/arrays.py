"""Array types with their sizes, for annotations.

They are jaxtyping's wherever somebody reads them: a type checker, or a test that has jaxtyping check each
call. Elsewhere nobody does, and importing jaxtyping takes as long as searching 500,000 pictures.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

__all__ = ["Bool", "Float", "Float16", "Float32", "Float64", "Int", "Int32", "Int64", "Integer", "Num"]
__all__ += ["UInt8", "UInt32"]

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import (
        Bool,
        Float,
        Float16,
        Float32,
        Float64,
        Int,
        Int32,
        Int64,
        Integer,
        Num,
        UInt8,
        UInt32,
    )
else:

    class _Unread:
        """Any array."""

        def __class_getitem__(cls, sizes: tuple[Any, str]) -> Any:
            kind, _ = sizes
            return kind

    Bool = Num = Float = Float16 = Float32 = Float64 = _Unread
    Int = Int32 = Int64 = Integer = UInt8 = UInt32 = _Unread
