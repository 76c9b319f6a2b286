"""The objectives there are. Nothing here imports torch: recipes are checked with it."""

from __future__ import annotations

from tellapart.objectives.settings import (
    contrastive,
    likelihood,
    mix,
    negative_transfer,
    preference,
    rewarded,
    semipermeable,
    specificity,
)
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.registry import Registry

OBJECTIVES: Registry[ObjectivePart] = Registry(
    "objective",
    [
        *likelihood.PARTS,
        *semipermeable.PARTS,
        *contrastive.PARTS,
        *specificity.PARTS,
        *negative_transfer.PARTS,
        *rewarded.PARTS,
        *preference.PARTS,
        *mix.PARTS,
    ],
    group="tellapart.objectives",
    holds=ObjectivePart,
)
