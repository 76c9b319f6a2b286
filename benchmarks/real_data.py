"""The folder of real photographs and captions that TELLAPART_DATA names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tellapart.errors import TellapartError


def data_folder() -> Path:
    """It holds flickr8k/ and text/."""
    folder = os.environ.get("TELLAPART_DATA")
    if not folder:
        raise TellapartError(
            "TELLAPART_DATA is not set: no real photographs and captions to measure with",
            hint="set it to the folder that holds flickr8k/ and text/",
        )
    return Path(folder)


def all_photographs() -> list[Path]:
    """Those of Flickr8k, in the order of their names."""
    return sorted((data_folder() / "flickr8k" / "images").iterdir())


@contextmanager
def linked(photographs: Iterable[Path]) -> Iterator[Path]:
    """A folder that holds just these."""
    with tempfile.TemporaryDirectory() as name:
        for photograph in photographs:
            Path(name, photograph.name).symlink_to(photograph)
        yield Path(name)
