"""Several objectives as one."""

from __future__ import annotations

from collections import Counter

from tellapart.objectives.compose import Mixture
from tellapart.objectives.parts import OBJECTIVES
from tellapart.objectives.schedules import build_weight
from tellapart.objectives.settings.mix import MixConfig, WeightConfig
from tellapart.objectives.supplies import Supplies


def build_mix(config: MixConfig, supplies: Supplies) -> Mixture:
    """Each part built with its own settings; two of one name are told apart by a number."""
    seen: Counter[str] = Counter()
    parts = []
    for section in config.parts:
        settings = dict(section)
        name, weight = settings.pop("name"), WeightConfig(weight=settings.pop("weight"))
        part = OBJECTIVES.get(name)
        seen[name] += 1
        called = name if seen[name] == 1 else f"{name}-{seen[name]}"
        objective = part.builder()(part.config.model_validate(settings), supplies)
        parts.append((called, objective, build_weight(weight.weight, supplies.pace)))
    return Mixture(parts)
