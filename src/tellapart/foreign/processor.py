"""What preprocessor_config.json says of colours, filter and sizes, checked before a picture is looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from tellapart.errors import TellapartError


@dataclass(frozen=True, slots=True)
class Colours:
    """What colours are multiplied by, and their mean and deviation after that."""

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


def read_colours(settings: Mapping[str, Any], model: str) -> Colours:
    """As the checkpoint was trained; its file may leave out either step."""
    scale = settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale") is not False else 1.0
    if not (_is_number(scale) and scale > 0):
        raise _refused("rescale_factor", scale, "a number above 0", model)
    if settings.get("do_normalize") is False:
        return Colours(scale, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    return Colours(scale, _three("image_mean", settings, model), _three("image_std", settings, model))


def read_filter(settings: Mapping[str, Any], model: str, *, default: Image.Resampling) -> int:
    """The number that Pillow gives to the filter by which pictures are resized."""
    found = settings.get("resample")
    if found is None:
        return int(default)
    if found not in list(Image.Resampling):
        raise _refused("resample", found, f"a number from 0 to {max(Image.Resampling)}", model)
    return int(found)


def expect_side(found: object, key: str, model: str) -> int:
    """A number of pixels, or of patches."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise _refused(key, found, "a whole number above 0", model)
    return found


def expect_there(settings: Mapping[str, Any], key: str, model: str) -> Any:
    """A setting that nobody could guess."""
    if not settings.get(key):
        raise TellapartError(
            f"the checkpoint {model} does not say its {key}",
            hint=f"write {key}, as it was trained, in its preprocessor_config.json",
        )
    return settings[key]


def _three(key: str, settings: Mapping[str, Any], model: str) -> tuple[float, ...]:
    found = expect_there(settings, key, model)
    if not isinstance(found, list | tuple) or len(found) != 3 or not all(map(_is_number, found)):
        raise _refused(key, found, "three numbers, a colour each", model)
    if key == "image_std" and min(found) <= 0:
        raise _refused(key, found, "three numbers above 0", model)
    return tuple(found)


def _is_number(found: object) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)


def _refused(key: str, found: object, wanted: str, model: str) -> TellapartError:
    return TellapartError(
        f"the checkpoint {model}: {key} is {found!r}, where {wanted} should be",
        hint="copy preprocessor_config.json again from where the checkpoint came from",
    )
