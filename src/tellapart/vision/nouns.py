"""Plain nouns for the names of an encoder's classes: what people write where it says "golden retriever"."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def everyday_words() -> Mapping[str, str]:
    """The noun of each class of the default encoder."""
    text = resources.files("tellapart.vision").joinpath("everyday_words.json").read_text(encoding="utf-8")
    words: Mapping[str, str] = json.loads(text)
    return words


def name_in_words(name: str) -> str:
    """The noun of a class by our list, or else the last word of its name, without what brackets add to it."""
    plain = re.sub(r"\(.*?\)", "", name).lower().split()
    return everyday_words().get(name, plain[-1] if plain else name)
