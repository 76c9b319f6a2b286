"""Vision towers of OpenCLIP as encoders."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor

from tellapart.arrays import Float
from tellapart.errors import TellapartError
from tellapart.registry import suggest
from tellapart.vision.torch_encoder import Pixels, TorchEncoder, View, make_encoder, no_classes, row_by_row


def load(open_clip: ModuleType, model: str) -> TorchEncoder:
    """Load the vision tower of `MODEL/TAG` or `hf-hub:NAME`, or of a folder without touching the network."""
    architecture, tag = _source(open_clip, model)
    tower = open_clip.create_model(architecture, pretrained=tag, require_pretrained=True).visual
    about: dict[str, Any] = tower.preprocess_cfg

    def see(pixels: Float[Tensor, "b 3 h w"]) -> View:
        seen = tower.forward_intermediates(pixels, indices=1, output_fmt="NCHW")
        grid = row_by_row(seen["image_intermediates"][-1])
        return View(grid=grid, pooled=seen["image_features"], classes=no_classes(grid))

    size = about["size"]
    height, width = (size, size) if isinstance(size, int) else size
    return make_encoder(
        f"open-clip:{model}",
        tower,
        see,
        pixels=Pixels(height=height, width=width, mean=tuple(about["mean"]), std=tuple(about["std"])),
        settings={"tower": repr(tower)},
    )


def _source(open_clip: ModuleType, model: str) -> tuple[str, str | None]:
    folder = Path(model).expanduser()
    if folder.is_dir():
        return f"local-dir:{folder}", None
    if model.startswith(("hf-hub:", "local-dir:")):
        return model, None
    architecture, _, tag = model.partition("/")
    tags: list[str] = open_clip.list_pretrained_tags_by_model(architecture)
    if not tags:
        known = sorted({name for name, _ in open_clip.list_pretrained()})
        raise TellapartError(
            f"OpenCLIP has no weights for {architecture!r}", hint=suggest(architecture, known)
        )
    if tag in tags or (len(tags) == 1 and not tag):
        return architecture, tag or tags[0]
    problem = (
        f"OpenCLIP has no weights {tag!r} for {architecture}"
        if tag
        else f"{architecture} has several weights"
    )
    raise TellapartError(
        problem, hint=f"name one of them: {', '.join(f'{architecture}/{tag}' for tag in tags)}"
    )
