"""What the laws are tried on: a captioner, and features made up for it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from tellapart.arrays import Float
from tellapart.captioners.folder import CaptionerSettings, Decoding, build_captioner, describe_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Vision
from tellapart.vision.traits import EncoderTraits

# Special signs at odd places: who takes padding for 0 is found out.
TEXT = WordText(
    Vocabulary(
        ("a", "dog", "cat", "zebra", "bus", "bear", "runs", "sits", "here"), pad=4, start=2, end=0, unknown=7
    ),
    PRESETS["mrnn"],
)
# Two classes may share a noun ("cat", "bear"), and a class may have none that the text knows ("volcano").
NOUNS = ("cat", "cat", "zebra", "bus", "bear", "bear", "volcano")
TRAITS = EncoderTraits(
    name="testing",
    identity="testing",
    shapes={"grid": (9, 5), "pooled": (6,), "classes": (len(NOUNS),)},
    nouns=NOUNS,
)
PICTURES = 4
LONGEST = 5  # words of a decoded caption
NO_SETTINGS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Subject:
    """A captioner under test, pictures to show it, and how it is kept (None: keeping it is not tested)."""

    captioner: AnyCaptioner
    vision: Vision
    settings: CaptionerSettings | None = None
    tolerance: float = 1e-9  # relative and absolute


def prepare(name: str, *, preset: str = "tiny", settings: Mapping[str, object] = NO_SETTINGS) -> Subject:
    """An untrained captioner of a registered kind, the same each time, and made-up features for it."""
    part = CAPTIONERS.get(name)
    if part.own_encoder is not None:
        raise TellapartError(
            f"the captioner {name!r} brings its own encoder, so features cannot be made up for it",
            hint="build it from a checkpoint and call tellapart.testing.check_built",
        )
    if preset == "tiny" and preset not in part.presets:
        raise TellapartError(
            f"the captioner {name!r} has no preset called 'tiny', by which it would be small enough to test",
            hint='give its part such a preset, or pass preset="" and small settings to check_captioner',
        )
    config = part.configure(settings, preset=preset)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        captioner = build_captioner(name, config, text=None if part.own_text else TEXT, traits=TRAITS)
    section = {"name": name, **config.model_dump()}
    kept = describe_captioner(captioner, section=section, traits=TRAITS, decoding=Decoding(3, LONGEST))
    return prepare_built(captioner, _made_up_features(), settings=kept)


def prepare_built(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    settings: CaptionerSettings | None = None,
    tolerance: float = 1e-9,
) -> Subject:
    """A captioner at hand, copied and made ready for the laws."""
    if len(vision) < 3:
        raise TellapartError(
            f"the laws need features of at least 3 pictures, here are {len(vision)}",
            hint="encode more pictures, which differ",
        )
    return Subject(copy.deepcopy(captioner).double().eval(), cast(vision, torch.float64), settings, tolerance)


def _made_up_features() -> Vision:
    generator = torch.Generator().manual_seed(2)

    def some(*shape: int) -> Float[Tensor, ...]:
        return torch.randn(PICTURES, *shape, generator=generator, dtype=torch.float64)

    return Vision(
        some(*TRAITS.shapes["grid"]),
        some(*TRAITS.shapes["pooled"]),
        (3 * some(*TRAITS.shapes["classes"])).softmax(-1),
    )


def cast(vision: Vision, dtype: torch.dtype) -> Vision:
    """The same features in another precision."""
    return Vision(vision.grid.to(dtype), vision.pooled.to(dtype), vision.classes.to(dtype), vision.pictured)
