"""Pictures seen through the encoder that a retriever was trained with; what it saw is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tellapart.errors import TellapartError
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder, load_same_encoder
from tellapart.vision.traits import EncoderTraits


def see(
    paths: Iterable[Path | TellapartError], traits: EncoderTraits, parts: Sequence[str], *, needed_by: str
) -> Iterator[Seen | TellapartError]:
    """What the encoder of these traits sees in each file, in the files' order.

    A cache that cannot be used costs time and no answer: the error stands among the results once.

    Args:
        paths: of pictures; errors are passed on.
        traits: of the encoder that is needed: one that sees otherwise is refused.
        parts: of its features that are wanted.
        needed_by: who needs it, for the message.
    """
    encoder = load_same_encoder(traits, needed_by=needed_by, load=_load)
    cache = None
    try:
        cache = FeatureCache(cache_folder(), encoder)
    except TellapartError as error:
        yield error
    except OSError as error:
        problem = f"{cache_folder()} cannot be used: {error.strerror}"
        yield TellapartError(problem, hint="let TELLAPART_CACHE name a folder that can be written")
    yield from look(paths, encoder, parts=parts, cache=cache, must_cache=False)


@cache
def _load(name: str) -> Encoder:
    return load_encoder(name)
