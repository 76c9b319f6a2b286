"""An ensemble of captioners that are trained already, as a captioner folder of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from tellapart.captioners.ensemble import Ensemble
from tellapart.captioners.folder import (
    CaptionerSettings,
    Decoding,
    SavedCaptioner,
    describe_captioner,
    load_captioner,
    read_settings,
    save_captioner,
)
from tellapart.captioners.settings.ensemble import EnsembleConfig, Mean
from tellapart.captioning import find_captioner
from tellapart.errors import TellapartError


def join(folders: Sequence[str | os.PathLike[str]], *, mean: Mean = "probabilities") -> SavedCaptioner:
    """The captioners of these folders (or runs, or the one that ships) as one, ready to use.

    Their words and their encoder must be the same. The widest of their beams and the longest of their
    captions become the ensemble's.
    """
    if len(folders) < 2:
        raise TellapartError(
            f"an ensemble has at least two captioners, not {len(folders)}", hint="name more folders"
        )
    found = [find_captioner(folder) for folder in folders]
    settings = [read_settings(folder) for folder in found]
    for folder, other in zip(found[1:], settings[1:], strict=True):
        _refuse_stranger(found[0], settings[0], folder, other)
    ensemble = Ensemble([load_captioner(folder).captioner for folder in found], mean=mean).eval()
    config = EnsembleConfig(members=[each.captioner for each in settings], mean=mean)
    # Only who reads the names of the classes keeps them.
    traits = max((each.encoder for each in settings), key=lambda encoder: len(encoder.nouns))
    described = describe_captioner(
        ensemble,
        section={"name": "ensemble", **config.model_dump()},
        traits=traits,
        decoding=Decoding(
            max(each.width for each in settings),
            max(each.max_words for each in settings),
            sum(each.length_penalty for each in settings) / len(settings),
            all(each.repeats for each in settings),
        ),
    )
    return SavedCaptioner(ensemble, described)


def write_ensemble(
    folders: Sequence[str | os.PathLike[str]], out: Path, *, mean: Mean = "probabilities"
) -> SavedCaptioner:
    """Join captioners and write the ensemble, weights of all members included, into a new folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TellapartError(
            f"{out}: there is something at this place already", hint="name another folder with --out"
        )
    saved = join(folders, mean=mean)
    save_captioner(out, saved, dtype=_precision(saved))
    return saved


def _refuse_stranger(
    first: Path, settings: CaptionerSettings, folder: Path, other: CaptionerSettings
) -> None:
    if (settings.text is None) != (other.text is None):
        raise TellapartError(
            f"{first} and {folder}: one writes words of a vocabulary, the other pieces of a tokenizer",
            hint="an ensemble needs captioners with the same text",
        )
    if settings.fingerprint != other.fingerprint:
        raise TellapartError(
            f"{first} and {folder}: their vocabularies differ",
            hint="an ensemble needs captioners trained on the same captions with the same text rules",
        )
    one, another = settings.encoder, other.encoder
    if (one.identity, one.shapes) != (another.identity, another.shapes):
        raise TellapartError(
            f"{first} and {folder}: trained on features of different encoders "
            f"({one.identity} and {another.identity})",
            hint="an ensemble needs captioners that look through the same encoder",
        )


def _precision(saved: SavedCaptioner) -> torch.dtype:
    """Half precision where that is how all weights were kept, so that nothing is lost and no space wasted."""
    weights = (weight for weight in saved.captioner.state_dict().values() if weight.is_floating_point())
    return (
        torch.float16
        if all(torch.equal(weight, weight.half().float()) for weight in weights)
        else torch.float32
    )
