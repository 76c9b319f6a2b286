"""A captioner on disk: config.json, model.safetensors, vocabulary.json, card.md where it ships. No pickle.

A captioner whose checkpoint brings the tokenizer has no vocabulary.json: it reads its text from there again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.text import TextRules
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.registry import Config
from tellapart.storage import new_folder, write_text
from tellapart.types import AnyCaptioner, Text
from tellapart.vision.traits import EncoderTraits

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocabulary.json", "card.md"
FORMAT = 2  # raised when a folder written now could no longer be read by older code


class CaptionerSettings(Config):
    """All that it takes to use a captioner, apart from weights and words."""

    format: int = FORMAT
    captioner: dict[str, Any]  # name and settings of the registered part
    encoder: EncoderTraits
    text: TextRules | None  # None: its checkpoint brings the tokenizer
    width: PositiveInt  # of the beam it is meant to be used with
    max_words: PositiveInt
    fingerprint: str  # of its text: weights and words of two captioners never mix


@dataclass(frozen=True, slots=True)
class SavedCaptioner:
    """A captioner together with its settings."""

    captioner: AnyCaptioner
    settings: CaptionerSettings


def build_captioner(
    name: str, config: Config, *, text: WordText | None, traits: EncoderTraits
) -> AnyCaptioner:
    """An untrained captioner of a registered kind; one that brings its own text does not look at `text`."""
    part = CAPTIONERS.get(name)
    captioner: AnyCaptioner
    if part.own_text:
        captioner = part.builder()(config, traits=traits)
    else:
        captioner = part.builder()(config, text=text, traits=traits)
    return captioner


def describe_captioner(
    captioner: AnyCaptioner, *, section: dict[str, Any], traits: EncoderTraits, width: int, max_words: int
) -> CaptionerSettings:
    """The settings under which a captioner is kept; `section` is its name and settings in a recipe."""
    text = captioner.text
    nouns = traits.nouns if "classes" in captioner.needs else ()
    return CaptionerSettings(
        captioner=section,
        encoder=traits.model_copy(update={"nouns": nouns}),
        text=text.rules if isinstance(text, WordText) else None,
        width=width,
        max_words=max_words,
        fingerprint=text.fingerprint,
    )


def save_captioner(folder: Path, saved: SavedCaptioner, *, dtype: torch.dtype, card: str = "") -> None:
    """Write the whole folder or nothing."""
    weights = {name: _kept(tensor, dtype) for name, tensor in saved.captioner.state_dict().items()}
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise _not_numbers("the captioner")
    with new_folder(folder) as temporary:
        write_text(temporary / CONFIG, saved.settings.model_dump_json(indent=2) + "\n")
        if isinstance(saved.captioner.text, WordText):
            words = saved.captioner.text.vocabulary.to_json()
            write_text(temporary / WORDS, json.dumps(words, ensure_ascii=False) + "\n")
        save_file(weights, temporary / WEIGHTS)
        # safetensors closes its file to other users; who may read the settings may read the weights.
        (temporary / WEIGHTS).chmod((temporary / CONFIG).stat().st_mode)
        if card:
            write_text(temporary / CARD, card)


def _kept(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor as it is written: whole numbers stay what they are; a copy, for two names may share one."""
    return tensor.detach().to(dtype if tensor.is_floating_point() else tensor.dtype).contiguous().clone()


def load_captioner(folder: Path) -> SavedCaptioner:
    """Read a captioner, ready to use (evaluation mode, single precision)."""
    settings = read_settings(folder)
    text = WordText(Vocabulary.read(folder / WORDS), settings.text) if settings.text else None
    if text is not None:
        _check_text(text, settings, folder / WORDS)
    captioner = _untrained(settings, text, folder / CONFIG)
    _check_text(captioner.text, settings, folder / CONFIG)
    _load_weights(captioner, folder / WEIGHTS)
    return SavedCaptioner(captioner.eval(), settings)


def _check_text(text: Text, settings: CaptionerSettings, path: Path) -> None:
    if text.fingerprint != settings.fingerprint:
        raise TellapartError(
            f"{path}: not the vocabulary that this captioner was trained with",
            hint="copy the whole folder again; its files belong together"
            if settings.text
            else "restore the checkpoint it was trained from: its tokenizer has changed",
        )


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
        if isinstance(content, dict) and (written := content.get("format", FORMAT)) != FORMAT:
            if type(written) is not int:
                raise _not_settings(path)
            raise TellapartError(
                f"{path}: written in format {written}, this version reads {FORMAT}",
                hint="upgrade tellapart" if written > FORMAT else "train it again",
            )
        return CaptionerSettings.model_validate_json(text)
    except (json.JSONDecodeError, ValidationError) as error:
        raise _not_settings(path) from error


def _not_settings(path: Path) -> TellapartError:
    return TellapartError(f"{path}: not the settings of a captioner", hint="copy the whole folder again")


def _untrained(settings: CaptionerSettings, text: WordText | None, path: Path) -> AnyCaptioner:
    part = dict(settings.captioner)
    try:
        name = str(part.pop("name"))
        config = CAPTIONERS.get(name).config.model_validate(part)
        return build_captioner(name, config, text=text, traits=settings.encoder)
    except (KeyError, ValueError) as error:  # a key that is missing, or a value that does not fit
        raise _not_settings(path) from error
    except TellapartError as error:
        raise TellapartError(f"{path}: {error.problem}", hint=error.hint) from error


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
        weights = {name: _kept(tensor, torch.float32) for name, tensor in load_file(path).items()}
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
