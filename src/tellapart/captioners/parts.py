"""The captioners there are. Nothing here imports torch: recipes are checked with it."""

from __future__ import annotations

from tellapart.captioners.settings import ensemble, mrnn, prefix, pretrained, recurrent, transformer
from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.registry import Registry

FAMILIES = (mrnn, recurrent, transformer, prefix, pretrained, ensemble)

CAPTIONERS: Registry[CaptionerPart] = Registry(
    "captioner",
    [part for family in FAMILIES for part in family.PARTS],
    group="tellapart.captioners",
    holds=CaptionerPart,
)
