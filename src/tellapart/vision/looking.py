"""From files to features: read, hash, decode and encode on all cores, in order, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from tellapart.arrays import Float32
from tellapart.data.images import decode
from tellapart.data.picture_files import read_bytes
from tellapart.data.views import WHOLE, view_digest, view_of
from tellapart.errors import TellapartError
from tellapart.vision.cache import FeatureCache, digest_of
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features

AHEAD = 4  # tasks a thread that wait while others run
WRITE_EVERY = 64  # pictures a transaction: what a kill can cost at the most


@dataclass(frozen=True, slots=True)
class Seen:
    """One picture's features (a batch of one)."""

    path: Path
    digest: bytes
    features: Features


@dataclass(frozen=True, slots=True)
class _Opened:
    """Ready to be encoded."""

    path: Path
    digest: bytes
    pixels: Float32[np.ndarray, "3 h w"]


@dataclass(frozen=True, slots=True)
class _Fresh:
    """Seen for the first time, not yet in the cache."""

    seen: Seen


_Outcome = Seen | _Fresh | TellapartError


def look(
    paths: Iterable[Path | TellapartError],
    encoder: Encoder,
    *,
    parts: Sequence[str],
    cache: FeatureCache | None,
    must_cache: bool = True,
    view: int = WHOLE,
) -> Iterator[Seen | TellapartError]:
    """What the encoder sees in each file, in the files' order; a bad file gives its error in its place.

    It looks at the whole picture, or at another view of it (`data.views`), which has a digest of its own.

    A cache that cannot be written to (a full disk) is an error where it must be filled; where it is only a
    convenience, the error stands among the results once, and no more is written.
    """
    unwritten: dict[bytes, Features] = {}
    writing = cache is not None
    try:
        for outcome in _in_parallel(
            paths, partial(_look_at, encoder=encoder, parts=parts, cache=cache, view=view), encoder
        ):
            if isinstance(outcome, _Fresh) and writing:
                unwritten[outcome.seen.digest] = outcome.seen.features
            yield outcome.seen if isinstance(outcome, _Fresh) else outcome
            if len(unwritten) >= WRITE_EVERY and (failure := _try_to_write(cache, unwritten, parts)):
                if must_cache:
                    raise failure
                writing = False
                yield failure
    finally:
        failure = _try_to_write(cache, unwritten, parts)
        if failure and must_cache:
            raise failure


def _try_to_write(
    cache: FeatureCache | None, unwritten: dict[bytes, Features], parts: Sequence[str]
) -> TellapartError | None:
    """Write all that waits, or tell why not; either way it waits no longer."""
    try:
        if cache is not None and unwritten:
            cache.write(unwritten, parts)
    except TellapartError as error:
        return error
    finally:
        unwritten.clear()
    return None


def _in_parallel(
    paths: Iterable[Path | TellapartError],
    look_at: Callable[[Sequence[Path | TellapartError]], list[_Outcome]],
    encoder: Encoder,
) -> Iterator[_Outcome]:
    source = iter(paths)
    running: deque[Future[list[_Outcome]]] = deque()
    pool = ThreadPoolExecutor(encoder.threads)
    try:
        while True:
            for _ in range(encoder.threads * AHEAD - len(running)):
                if group := list(islice(source, encoder.batch_size)):
                    running.append(pool.submit(look_at, group))
            if not running:
                return
            yield from running.popleft().result()
    finally:
        # No waiting: Ctrl-C may have come between taking a lock and saying so, and a thread that needs
        # that lock will wait for ever.
        pool.shutdown(wait=False, cancel_futures=True)


def _look_at(
    group: Sequence[Path | TellapartError],
    *,
    encoder: Encoder,
    parts: Sequence[str],
    cache: FeatureCache | None,
    view: int,
) -> list[_Outcome]:
    opened = [_open(path, encoder, parts, cache, view) for path in group]
    waiting = [picture for picture in opened if isinstance(picture, _Opened)]
    if waiting:
        features = encoder.encode(np.stack([picture.pixels for picture in waiting])).only(parts)
        rows = iter(range(len(waiting)))
    return [
        _Fresh(Seen(picture.path, picture.digest, features.row(next(rows))))
        if isinstance(picture, _Opened)
        else picture
        for picture in opened
    ]


def _open(
    path: Path | TellapartError,
    encoder: Encoder,
    parts: Sequence[str],
    cache: FeatureCache | None,
    view: int,
) -> Seen | TellapartError | _Opened:
    if isinstance(path, TellapartError):
        return path
    try:
        data = read_bytes(path)
        whole = digest_of(data)
        digest = view_digest(whole, view)
        if cache is not None and cache.holds(digest, parts):
            return Seen(path, digest, cache.read([digest], parts))
        # Of a part there must be as many pixels as of the whole.
        picture = decode(data, name=str(path), at_least=encoder.size * (1 if view == WHOLE else 2))
        return _Opened(path, digest, encoder.prepare(view_of(picture, whole, view)))
    except TellapartError as error:
        return error
