"""What pictures are called in files of captions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def picture_ids(pictures: Sequence[Path], root: Path | None = None) -> list[str]:
    """An id for each picture that no other has.

    It is the path without its ending, inside `root` where that is given. Pictures that differ only in their
    endings keep these, and bytes of a name that are no text are spelt out, so that the ids can be written.
    """
    whole = [_text((path.relative_to(root) if root else path).as_posix()) for path in pictures]
    bare = [name.removesuffix(path.suffix) for name, path in zip(whole, pictures, strict=True)]
    times = Counter(bare)
    taken = {name for name in bare if times[name] == 1}
    ids = []
    for name, short in zip(whole, bare, strict=True):
        free = short if times[short] == 1 else name
        # "a.jpg" with its ending may be the whole id of "a.jpg.png".
        while free != short and free in taken:
            free += "~"
        taken.add(free)
        ids.append(free)
    return ids


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
