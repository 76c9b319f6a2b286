"""A captioner on disk, in the files that `model_folder` names.

A captioner whose checkpoint brings the tokenizer has no vocabulary.json: it reads its text from there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.quick_linear import quicken
from tellapart.data.text import TextRules
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.model_folder import (
    CONFIG,
    WORDS,
    not_its_weights,
    not_settings,
    read_model_settings,
    read_weights,
    save_model,
)
from tellapart.registry import Config
from tellapart.types import AnyCaptioner, Text
from tellapart.vision.traits import EncoderTraits

WHAT = "captioner"
FORMAT = 2  # raised when a folder written now could no longer be read by older code


class CaptionerSettings(Config):
    """All that it takes to use a captioner, apart from weights and words."""

    format: int = FORMAT
    captioner: dict[str, Any]  # name and settings of the registered part
    encoder: EncoderTraits
    text: TextRules | None  # None: its checkpoint brings the tokenizer
    width: PositiveInt  # of the beam it is meant to be used with
    max_words: PositiveInt
    length_penalty: NonNegativeFloat = 0.0  # of that beam
    repeats: bool = True  # whether a caption may say a word twice, function words aside
    fingerprint: str  # of its text: weights and words of two captioners never mix
    taught_by: tuple[str, ...] = ()  # identities of the retrievers that it was trained to please


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
    quicken(captioner)
    return captioner


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a captioner is meant to be used: beam, words at the most, and whether it may repeat them."""

    width: int
    max_words: int
    length_penalty: float = 0.0
    repeats: bool = True


def describe_captioner(
    captioner: AnyCaptioner, *, section: dict[str, Any], traits: EncoderTraits, decoding: Decoding
) -> CaptionerSettings:
    """The settings under which a captioner is kept; `section` is its name and settings in a recipe."""
    text = captioner.text
    nouns = traits.nouns if "classes" in captioner.needs else ()
    return CaptionerSettings(
        captioner=section,
        encoder=traits.model_copy(update={"nouns": nouns}),
        text=text.rules if isinstance(text, WordText) else None,
        width=decoding.width,
        max_words=decoding.max_words,
        length_penalty=decoding.length_penalty,
        repeats=decoding.repeats,
        fingerprint=text.fingerprint,
    )


def save_captioner(folder: Path, saved: SavedCaptioner, *, dtype: torch.dtype, card: str = "") -> None:
    """Write the whole folder or nothing."""
    text = saved.captioner.text
    held = saved.captioner.state_dict(keep_vars=True)
    second = _second_names(held)
    save_model(
        folder,
        saved.settings,
        {name: _kept(tensor, dtype) for name, tensor in held.items() if name not in second},
        what=WHAT,
        words=text.vocabulary.to_json() if isinstance(text, WordText) else None,
        card=card,
    )


def _second_names(held: Mapping[str, Tensor]) -> dict[str, str]:
    """Names of weights that stand under an earlier one as well, with that one: they are written once."""
    first: dict[int, str] = {}
    return {
        name: first[id(tensor)] for name, tensor in held.items() if first.setdefault(id(tensor), name) != name
    }


def _kept(tensor: Tensor, dtype: torch.dtype) -> NDArray[Any]:
    """A tensor as it is written: whole numbers stay what they are."""
    kept = tensor.detach().to(dtype if tensor.is_floating_point() else tensor.dtype)
    array: NDArray[Any] = kept.cpu().contiguous().numpy()
    return array


def load_captioner(folder: Path) -> SavedCaptioner:
    """Read a captioner, ready to use (evaluation mode, single precision)."""
    settings = read_settings(folder)
    text = WordText(Vocabulary.read(folder / WORDS), settings.text) if settings.text else None
    if text is not None:
        _check_text(text, settings, folder / WORDS)
    captioner = _untrained(settings, text, folder / CONFIG)
    _check_text(captioner.text, settings, folder / CONFIG)
    _load_weights(captioner, folder)
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
    return read_model_settings(folder, CaptionerSettings, version=FORMAT, what=WHAT)


def _untrained(settings: CaptionerSettings, text: WordText | None, path: Path) -> AnyCaptioner:
    part = dict(settings.captioner)
    try:
        name = str(part.pop("name"))
        config = CAPTIONERS.get(name).config.model_validate(part)
        return build_captioner(name, config, text=text, traits=settings.encoder)
    except (KeyError, ValueError) as error:  # a key that is missing, or a value that does not fit
        raise not_settings(path, WHAT) from error
    except TellapartError as error:
        raise TellapartError(f"{path}: {error.problem}", hint=error.hint) from error


def _load_weights(captioner: AnyCaptioner, folder: Path) -> None:
    weights = {name: torch.from_numpy(values) for name, values in read_weights(folder).items()}
    for second, first in _second_names(captioner.state_dict(keep_vars=True)).items():
        if second not in weights and first in weights:
            weights[second] = weights[first]
    try:
        captioner.load_state_dict(weights)
    except RuntimeError as error:
        raise not_its_weights(folder, WHAT) from error
