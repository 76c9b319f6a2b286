"""Checkpoints of transformers that measures run: where they lie, what may be wrong, which they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from tellapart.errors import TellapartError
from tellapart.extras import in_short
from tellapart.vision.torch_encoder import fingerprint


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is read from."""

    model: str
    name: str  # as signatures say it: the same weights in another folder of that name are the same
    local_files_only: bool


def find_source(model: str, *, hint: str) -> Source:
    """A folder with a checkpoint, which never touches the network, or a name on the hub."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise TellapartError(
                f"the folder {model} has no config.json", hint="name the folder that save_pretrained() wrote"
            )
        return Source(str(folder), folder.resolve().name, local_files_only=True)
    if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", model):
        return Source(model, model, local_files_only=False)
    raise TellapartError(f"there is no folder {model}", hint=hint)


@contextmanager
def loading(transformers: Any, model: str, *, hint: str) -> Iterator[None]:
    """Load without the library's own progress bars, and turn whatever it raises into one line."""
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    except TellapartError:
        raise
    except Exception as error:  # a foreign library raises nearly anything about a checkpoint
        raise TellapartError(f"the model {model} cannot be loaded: {in_short(error)}", hint=hint) from error
    finally:
        if shown:
            bars.enable_progress_bar()


def expect_whole(found: dict[str, Any], model: str) -> None:
    """An error where the file lacks weights: the library would draw them at random and merely log it."""
    if missing := sorted(found["missing_keys"]):
        raise TellapartError(
            f"the checkpoint {model} lacks {len(missing)} weights, such as {missing[0]}",
            hint="the file is incomplete, or its config.json names another architecture",
        )


def identity(source: Source, network: nn.Module, settings: dict[str, object]) -> str:
    """The model's name, and eight digits that change with any weight or setting."""
    return f"{source.name}@{fingerprint(network, settings)[:8]}"


def distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Each value once, in the order of first appearance, and the place of each original among them."""
    places: dict[Any, int] = {}
    where = [places.setdefault(value, len(places)) for value in values]
    return list(places), where
