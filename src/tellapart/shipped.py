"""What ships with the package, by name."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path


def find_shipped(name: str | os.PathLike[str]) -> Path | None:
    """The folder that ships under that name, if any.

    By comparing names: "." and ".." are the user's own folders.
    """
    zoo = Path(str(resources.files("tellapart") / "zoo"))
    return next((folder for folder in zoo.glob("*/") if folder.name == str(name)), None)
