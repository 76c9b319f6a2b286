"""Where a checkpoint of transformers is read from, and what may be wrong with it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tellapart.errors import TellapartError
from tellapart.extras import in_short

SETTINGS = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
"""Files that must be JSON objects where they exist: the library overlooks some that are not."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder, which never touches the network, or a name on the hub."""

    model: str
    name: str  # as signatures say it: the same weights in another folder of that name are the same
    local_files_only: bool


def find_source(model: str, *, hint: str, files: Sequence[Sequence[str]] = (("config.json",),)) -> Source:
    """The folder or hub name that a user means.

    Args:
        model: what the user wrote.
        hint: what to do where it is neither.
        files: what a folder must hold: one name of each group.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        for names in files:
            if not any((folder / name).is_file() for name in names):
                raise TellapartError(
                    f"the folder {model} has no {names[0]}",
                    hint="copy it from where the checkpoint came from: what save_pretrained() of the model, "
                    "its tokenizer and its image processor write",
                )
        _refuse_damage(folder, model)
        return Source(str(folder), folder.resolve().name, local_files_only=True)
    if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", model):
        return Source(model, model, local_files_only=False)
    raise TellapartError(f"there is no folder {model}", hint=hint)


def _refuse_damage(folder: Path, model: str) -> None:
    """An error that names the file which is no longer what it was: the library names none."""
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        try:
            if path.name in SETTINGS:
                _expect_settings(json.loads(path.read_bytes()))
            if path.suffix == ".safetensors":
                with safe_open(path, "numpy"):  # reads what it says of itself, and no weights
                    pass
        except (ValueError, OSError, SafetensorError) as error:
            raise TellapartError(
                f"the model {model} cannot be loaded: {path.name} is damaged: {in_short(error)}",
                hint="copy that file again from where the checkpoint came from",
            ) from error


def _expect_settings(found: object) -> None:
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")  # noqa: TRY004 - told as damage of other kinds is
    for key, value in found.items():
        numbers = value if isinstance(value, list) else [0 if value is None else value]
        if key.endswith("_token_id") and not all(type(number) is int for number in numbers):
            raise ValueError(f"{key} is {value!r}, which is no whole number")


@contextmanager
def loading(transformers: Any, model: str, *, hint: str) -> Iterator[None]:
    """Load without the library's own progress bars and remarks; whatever it raises becomes one line."""
    log, hub = transformers.utils.logging, logging.getLogger("huggingface_hub")
    shown, loud, hub_loud = log.is_progress_bar_enabled(), log.get_verbosity(), hub.level
    log.disable_progress_bar()
    log.set_verbosity_error()
    hub.setLevel(logging.ERROR)  # it would tell of every attempt to reach the network
    try:
        yield
    except TellapartError:
        raise
    except Exception as error:  # a foreign library raises nearly anything about a checkpoint
        said = in_short(error)
        if "ignore_mismatched_sizes" in str(error):  # the library refers to a report that it only logs
            said = "its weights have other sizes than its config.json says"
        raise TellapartError(f"the model {model} cannot be loaded: {said}", hint=hint) from error
    finally:
        log.set_verbosity(loud)
        hub.setLevel(hub_loud)
        if shown:
            log.enable_progress_bar()


def expect_whole(found: dict[str, Any], model: str) -> None:
    """An error where the file lacks weights: the library would draw them at random and merely log it."""
    if missing := sorted(found["missing_keys"]):
        raise TellapartError(
            f"the checkpoint {model} lacks {len(missing)} weights, such as {missing[0]}",
            hint="the file is incomplete, or its config.json names another architecture",
        )
