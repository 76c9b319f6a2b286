"""The encoders there are. Names with a colon carry a model's name: "timm:resnet50"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tellapart.errors import TellapartError
from tellapart.registry import Config, Part, Registry

if TYPE_CHECKING:
    from tellapart.vision.encoder import Encoder
    from tellapart.vision.traits import EncoderTraits


class EncoderConfig(Config):
    """An encoder has no settings but its name: whatever changes the features changes the name."""


class ModelConfig(Config):
    """Which model of the library, as that library (or a local folder) names it."""

    model: str


def _lite(number: int, side: int, cells: int) -> Part:
    return Part(
        name=f"efficientnet-lite{number}",
        summary=f"ImageNet network of {side}x{side} pixels by onnxruntime; {cells}x{cells} grid, 1,000 names",
        config=EncoderConfig,
        build=f"tellapart.vision.efficientnet:build_lite{number}",
        paper="Tan & Le 2019, EfficientNet; the Lite variant",
    )


ENCODERS: Registry[Part] = Registry(
    "encoder",
    [
        _lite(0, 224, 7),
        _lite(1, 240, 8),
        _lite(2, 260, 9),
        Part(
            name="patches",
            summary="raw pixels of a 9x9 grid, no weights: for drawn scenes and quick tests",
            config=EncoderConfig,
            build="tellapart.vision.patches:build",
        ),
        Part(
            name="tuned",
            summary="a Lite network that was tuned to captions, as tuned:FOLDER, or tuned:eyes, which ships",
            config=ModelConfig,
            build="tellapart.vision.tuned:build",
        ),
        Part(
            name="timm",
            summary="any image model of timm (extra: timm), as timm:MODEL",
            config=ModelConfig,
            build="tellapart.vision.extras:build_timm",
        ),
        Part(
            name="open-clip",
            summary="an image tower of open_clip (extra: open-clip), as open-clip:MODEL[/TAG]",
            config=ModelConfig,
            build="tellapart.vision.extras:build_open_clip",
        ),
        Part(
            name="transformers",
            summary="a vision tower of transformers (extra: transformers), as transformers:FOLDER_OR_NAME",
            config=ModelConfig,
            build="tellapart.vision.extras:build_transformers",
        ),
        Part(
            name="tower",
            summary="the tower of a captioning checkpoint (extra: transformers), as tower:FOLDER_OR_NAME",
            config=ModelConfig,
            build="tellapart.vision.extras:build_tower",
        ),
        Part(
            name="pixels",
            summary="only pixels, as a checkpoint wants them (extra: transformers), as pixels:FOLDER_OR_NAME",
            config=ModelConfig,
            build="tellapart.vision.extras:build_pixels",
        ),
    ],
    group="tellapart.encoders",
    holds=Part,
)


def find_encoder(name: str) -> Part:
    """The part that a full name ("efficientnet-lite2", "timm:resnet50") stands for; loads nothing."""
    kind, _, model = name.partition(":")
    part = ENCODERS.get(kind)
    if ("model" in part.config.model_fields) != bool(model):
        raise TellapartError(
            f"{name!r} is not the full name of an encoder",
            hint=f"write {kind}:MODEL" if not model else f"write {kind!r} alone",
        )
    return part


def load_encoder(name: str) -> Encoder:
    """The encoder of that full name, ready to use."""
    build = find_encoder(name).builder()
    _, _, model = name.partition(":")
    encoder: Encoder = build(model) if model else build()
    return encoder


def load_same_encoder(
    traits: EncoderTraits, *, needed_by: str, load: Callable[[str], Encoder] = load_encoder
) -> Encoder:
    """The encoder of these traits, ready to use; one that sees otherwise is refused.

    Args:
        traits: of the encoder that something was trained with.
        needed_by: what that is, for the message.
        load: gives the encoder of a full name.
    """
    is_folder = find_encoder(traits.name).name == "tuned"
    mend = (
        f"let encoder.name in {needed_by}/config.json name the folder of the encoder it was trained with"
        if is_folder
        else "install the package versions it was trained with, or train it again"
    )
    try:
        encoder = load(traits.name)
    except TellapartError as error:
        if not is_folder:
            raise
        raise TellapartError(
            f"{needed_by} looks through {traits.name}: {error.problem}", hint=mend
        ) from error
    if encoder.identity != traits.identity:
        raise TellapartError(
            f"{needed_by}: trained on features of {traits.identity}, but {traits.name} is {encoder.identity}",
            hint=mend,
        )
    return encoder
