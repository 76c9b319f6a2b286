"""Encoders from other libraries, by name: `timm:MODEL`, `open-clip:MODEL/TAG`, `transformers:FOLDER_OR_NAME`.

`tower:FOLDER_OR_NAME` and `pixels:FOLDER_OR_NAME` belong to the captioners that are made from checkpoints.

Each library is an optional extra and is imported, as torch is, only when such an encoder is built. A model
may be a folder on disk, which never touches the network, or a name that the library fetches from its hub.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tellapart.errors import TellapartError
from tellapart.extras import import_extra, in_short
from tellapart.vision.encoder import Encoder


def build_timm(model: str) -> Encoder:
    """An image model of timm: a name such as `resnet50.a1_in1k`, or a folder with config.json and weights."""
    library = import_extra("timm", needed_by="this encoder", extra="timm")
    from tellapart.vision import timm_encoder

    with _explained(
        f"timm:{model}",
        hint="`timm.list_models(pretrained=True)` lists the names; the first use needs the network",
    ):
        return timm_encoder.load(library, model)


def build_open_clip(model: str) -> Encoder:
    """The vision tower of an OpenCLIP model: `MODEL/TAG`, `hf-hub:NAME`, or a folder."""
    library = import_extra("open_clip", needed_by="this encoder", extra="open-clip")
    from tellapart.vision import open_clip_encoder

    with _explained(
        f"open-clip:{model}",
        hint="`open_clip.list_pretrained()` lists models and tags; the first use needs the network",
    ):
        return open_clip_encoder.load(library, model)


def build_transformers(model: str) -> Encoder:
    """The vision tower of a checkpoint of transformers: a folder, or a name on the hub.

    Takes towers (CLIP, SigLIP, ViT, DINOv2 …), whole models that have one (CLIP, BLIP, LLaVA …) and image
    classifiers, whose classes it gives as well.
    """
    library = import_extra("transformers", needed_by="this encoder", extra="transformers")
    from tellapart.vision import transformers_encoder

    with _explained(
        f"transformers:{model}",
        hint="name a folder that holds a checkpoint, or a hub name, whose first use needs the network",
    ):
        return transformers_encoder.load(library, model)


def build_tower(model: str) -> Encoder:
    """What the text decoder of a captioning checkpoint is shown of a picture: a folder, or a hub name."""
    import_extra("transformers", needed_by="this encoder", extra="transformers")
    from tellapart.vision import tower_encoder

    return tower_encoder.build_tower(model)


def build_pixels(model: str) -> Encoder:
    """Pixels as the files of a captioning checkpoint want them: a folder, or a hub name."""
    import_extra("transformers", needed_by="this encoder", extra="transformers")
    from tellapart.vision import tower_encoder

    return tower_encoder.build_pixels(model)


@contextmanager
def _explained(name: str, *, hint: str) -> Iterator[None]:
    """Turn whatever a foreign library raises about a checkpoint into one line."""
    try:
        yield
    except TellapartError:
        raise
    except Exception as error:
        raise TellapartError(
            f"the encoder {name!r} cannot be loaded: {in_short(error)}", hint=hint
        ) from error
