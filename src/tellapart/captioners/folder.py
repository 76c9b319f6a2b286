"""A captioner on disk: config.json, model.safetensors, vocabulary.json, card.md where it ships. No pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.text import TextRules
from tellapart.data.vocabulary import Vocabulary
from tellapart.errors import TellapartError
from tellapart.registry import Config
from tellapart.storage import new_folder, write_text
from tellapart.types import AnyCaptioner

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocabulary.json", "card.md"
FORMAT = 1  # raised when a folder written now could no longer be read by older code


class CaptionerSettings(Config):
    """All that it takes to use a captioner, apart from weights and words."""

    format: int = FORMAT
    captioner: dict[str, Any]  # name and settings of the registered part
    encoder: str  # its full name
    encoder_identity: str
    shapes: dict[str, tuple[int, ...]]  # of the encoder's features
    text: TextRules
    width: PositiveInt  # of the beam it is meant to be used with
    max_words: PositiveInt
    vocabulary: str  # fingerprint: weights and words of two captioners never mix


@dataclass(frozen=True, slots=True)
class SavedCaptioner:
    """A captioner together with its settings."""

    captioner: AnyCaptioner
    settings: CaptionerSettings


def build_captioner(
    name: str, config: Config, *, vocabulary: Vocabulary, shapes: Mapping[str, tuple[int, ...]]
) -> AnyCaptioner:
    """An untrained captioner of a registered kind."""
    captioner: AnyCaptioner = CAPTIONERS.get(name).builder()(config, vocabulary=vocabulary, shapes=shapes)
    return captioner


def save_captioner(folder: Path, saved: SavedCaptioner, *, dtype: torch.dtype, card: str = "") -> None:
    """Write the whole folder or nothing."""
    weights = {
        name: tensor.detach().to(dtype).contiguous() for name, tensor in saved.captioner.state_dict().items()
    }
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise _not_numbers("the captioner")
    with new_folder(folder) as temporary:
        write_text(temporary / CONFIG, saved.settings.model_dump_json(indent=2) + "\n")
        write_text(
            temporary / WORDS, json.dumps(saved.captioner.vocabulary.to_json(), ensure_ascii=False) + "\n"
        )
        save_file(weights, temporary / WEIGHTS)
        # safetensors closes its file to other users; who may read the settings may read the weights.
        (temporary / WEIGHTS).chmod((temporary / CONFIG).stat().st_mode)
        if card:
            write_text(temporary / CARD, card)


def load_captioner(folder: Path) -> SavedCaptioner:
    """Read a captioner, ready to use (evaluation mode, single precision)."""
    settings = read_settings(folder)
    vocabulary = Vocabulary.read(folder / WORDS)
    if vocabulary.fingerprint != settings.vocabulary:
        raise TellapartError(
            f"{folder / WORDS}: not the vocabulary that this captioner was trained with",
            hint="copy the whole folder again; its files belong together",
        )
    captioner = _untrained(settings, vocabulary, folder / CONFIG)
    _load_weights(captioner, folder / WEIGHTS)
    return SavedCaptioner(captioner.eval(), settings)


def read_settings(folder: Path) -> CaptionerSettings:
    """The settings alone: light."""
    if not folder.is_dir():
        raise TellapartError(
            f"{folder}: no captioner folder here", hint="name a folder that holds a config.json"
        )
    path = folder / CONFIG
    try:
        text = _text(path)
        content = json.loads(text)
        # The format comes first: settings of another one may have other keys.
        if isinstance(content, dict) and content.get("format", FORMAT) != FORMAT:
            raise TellapartError(
                f"{path}: written in format {content['format']}, this version reads {FORMAT}",
                hint="upgrade tellapart",
            )
        return CaptionerSettings.model_validate_json(text)
    except (json.JSONDecodeError, ValidationError) as error:
        raise _not_settings(path) from error


def _not_settings(path: Path) -> TellapartError:
    return TellapartError(f"{path}: not the settings of a captioner", hint="copy the whole folder again")


def _untrained(settings: CaptionerSettings, vocabulary: Vocabulary, path: Path) -> AnyCaptioner:
    part = dict(settings.captioner)
    try:
        name = str(part.pop("name"))
        config = CAPTIONERS.get(name).config.model_validate(part)
        return build_captioner(name, config, vocabulary=vocabulary, shapes=settings.shapes)
    except (KeyError, ValueError) as error:  # a key that is missing, or a value that does not fit
        raise _not_settings(path) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TellapartError(
            f"{path}: missing or unreadable",
            hint="the captioner folder is incomplete: copy or train it again",
        ) from error


def _load_weights(captioner: AnyCaptioner, path: Path) -> None:
    try:
        weights = {name: tensor.float() for name, tensor in load_file(path).items()}
        captioner.load_state_dict(weights)
        if not all(tensor.isfinite().all() for tensor in weights.values()):
            raise _not_numbers(str(path))
    except (OSError, SafetensorError) as error:
        raise TellapartError(
            f"{path}: missing, unreadable, half-written or damaged",
            hint="copy the whole folder again, or train it again",
        ) from error
    except RuntimeError as error:
        raise TellapartError(
            f"{path}: these weights are not of this captioner",
            hint="config.json and weights must come together",
        ) from error


def _not_numbers(what: str) -> TellapartError:
    return TellapartError(
        f"{what}: some weights are not finite numbers",
        hint="train again with a lower optimiser.learning_rate",
    )
