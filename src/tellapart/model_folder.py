"""A trained network on disk: config.json, model.safetensors, vocabulary.json, and card.md where it ships.

No pickle. Written and read as NumPy arrays: a retriever must answer without torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, load_file, save_file

from tellapart.errors import TellapartError
from tellapart.registry import Config
from tellapart.storage import new_folder, write_text

# The key that names its network tells what a config.json is of, and what messages call that.
KINDS: Mapping[str, str] = {"captioner": "captioner", "retriever": "retriever", "tuning": "encoder"}
CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocabulary.json", "card.md"

S = TypeVar("S", bound=Config)
Weights = Mapping[str, NDArray[Any]]


def save_model(
    folder: Path, settings: Config, weights: Weights, *, what: str, words: object = None, card: str = ""
) -> None:
    """Write the whole folder or nothing; `what` is what messages call it, such as "captioner"."""
    if not _are_finite(weights):
        raise _not_numbers(f"the {what}")
    with new_folder(folder) as temporary:
        write_text(temporary / CONFIG, settings.model_dump_json(indent=2) + "\n")
        if words is not None:
            write_text(temporary / WORDS, json.dumps(words, ensure_ascii=False) + "\n")
        try:
            save_file(dict(weights), temporary / WEIGHTS)
        except SafetensorError as error:  # such as of a full disk
            raise OSError(f"{folder / WEIGHTS}: {error}") from error
        # safetensors closes its file to other users; who may read the settings may read the weights.
        (temporary / WEIGHTS).chmod((temporary / CONFIG).stat().st_mode)
        if card:
            write_text(temporary / CARD, card)


def read_model_settings(folder: Path, kind: type[S], *, version: int, what: str) -> S:
    """The settings alone, which must be of that kind and written in that format."""
    if not folder.is_dir():
        raise TellapartError(
            f"{folder}: no {what} folder here", hint="name a folder that holds a config.json"
        )
    path = folder / CONFIG
    try:
        text = _text(path, what)
        content = json.loads(text)
        _expect_kind(folder, content, what)
        # The format comes before all else: settings of another one may have other keys.
        if isinstance(content, dict) and (written := content.get("format", version)) != version:
            if type(written) is not int:
                raise not_settings(path, what)
            raise TellapartError(
                f"{path}: written in format {written}, this version reads {version}",
                hint="upgrade tellapart" if written > version else "train it again",
            )
        return kind.model_validate_json(text)
    except (json.JSONDecodeError, ValidationError) as error:
        raise not_settings(path, what) from error


def _expect_kind(folder: Path, content: object, what: str) -> None:
    other = next(
        (
            kind
            for key, kind in KINDS.items()
            if kind != what and isinstance(content, dict) and key in content
        ),
        "",
    )
    if other:
        raise TellapartError(f"{folder}: {_one(other)} stands there, no {what}", hint=f"name {_one(what)}")


def _one(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def not_settings(path: Path, what: str) -> TellapartError:
    """What is wrong with a config.json that says something else."""
    return TellapartError(f"{path}: not the settings of {_one(what)}", hint="copy the whole folder again")


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Every weight, all of them finite; what is not a whole number in single precision."""
    path = folder / WEIGHTS
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise _damaged(path) from error
    return _checked(weights, path)


def read_hashed_weights(folder: Path) -> tuple[dict[str, NDArray[Any]], bytes]:
    """The same, and the hash of the very bytes they were read from, whoever writes there meanwhile."""
    path = folder / WEIGHTS
    try:
        data = path.read_bytes()
        weights = load(data)
    except (OSError, SafetensorError) as error:
        raise _damaged(path) from error
    return _checked(weights, path), hashlib.sha256(data).digest()


def _damaged(path: Path) -> TellapartError:
    return TellapartError(
        f"{path}: missing, unreadable, half-written or damaged",
        hint="copy the whole folder again, or train it again",
    )


def _checked(weights: Weights, path: Path) -> dict[str, NDArray[Any]]:
    singles = {name: _single(values) for name, values in weights.items()}
    if not _are_finite(singles):
        raise _not_numbers(str(path))
    return singles


def not_its_weights(folder: Path, what: str) -> TellapartError:
    """What is wrong with weights that do not fit the settings beside them."""
    return TellapartError(
        f"{folder / WEIGHTS}: these weights are not of this {what}",
        hint="config.json and weights must come together",
    )


def _single(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float32) if values.dtype.kind == "f" else values


def _are_finite(weights: Weights) -> bool:
    return all(bool(np.isfinite(values).all()) for values in weights.values())


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TellapartError(
            f"{path}: missing or unreadable",
            hint=f"the {what} folder is incomplete: copy or train it again",
        ) from error


def _not_numbers(what: str) -> TellapartError:
    return TellapartError(
        f"{what}: some weights are not finite numbers",
        hint="train again with a lower optimiser.learning_rate",
    )
