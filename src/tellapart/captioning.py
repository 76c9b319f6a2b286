"""From image files to captions: the flow that `tellapart caption` and `tellapart.load()` share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from tellapart.captioners.folder import SavedCaptioner, load_captioner
from tellapart.corpus import as_vision
from tellapart.data.picture_files import find_pictures
from tellapart.data.text import words
from tellapart.decoding.search import beam, greedy
from tellapart.errors import TellapartError
from tellapart.run import Run
from tellapart.storage import cache_folder
from tellapart.types import Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder, in_order, stack
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder

TOGETHER = 8  # pictures decoded in one go: enough to be fast, few enough that captions stream


@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption and its log-probability under the captioner."""

    caption: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Captioned:
    """An image with its caption and, best first, all candidates that were asked for."""

    image: Path
    image_id: str
    candidates: tuple[Candidate, ...]

    @property
    def caption(self) -> str:
        """The best candidate."""
        return self.candidates[0].caption

    def to_json(self, *, model: str) -> dict[str, Any]:
        """One line of a predictions file."""
        return {
            "image": str(self.image),
            "image_id": self.image_id,
            "caption": self.caption,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "model": model,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """How captions are to be found: a beam (width 1: greedy), how many to keep, words to begin with."""

    width: int
    max_words: int
    keep: int = 1
    prefix: tuple[int, ...] = ()


def describe(saved: SavedCaptioner, vision: Vision, wish: Wish) -> list[tuple[Candidate, ...]]:
    """The captions of each image, best first."""
    captioner = saved.captioner
    if wish.width == 1:
        decoded = greedy(captioner, vision, max_words=wish.max_words, prefix=wish.prefix)
    else:
        decoded = beam(captioner, vision, width=wish.width, max_words=wish.max_words, prefix=wish.prefix)
    found = []
    for tokens, scores in zip(decoded.tokens.tolist(), decoded.log_probabilities.tolist(), strict=True):
        pairs = list(zip(tokens, scores, strict=True))[: wish.keep]
        found.append(
            tuple(
                Candidate(" ".join(captioner.vocabulary.decode(ids)), score)
                for ids, score in pairs
                if score > -float("inf")
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Describer:
    """A captioner with its encoder: takes image files, gives captions."""

    name: str
    saved: SavedCaptioner
    encoder: Encoder
    cache: FeatureCache | None

    def caption(self, image: str | os.PathLike[str]) -> str:
        """The caption of one image file."""
        if Path(image).is_dir():
            raise TellapartError(f"{image} is a folder, not a picture", hint="caption_each takes folders")
        (result,) = self.caption_each([Path(image)], self.wish())
        if isinstance(result, TellapartError):
            raise result
        return result.caption

    def caption_each(
        self, paths: Iterable[Path], wish: Wish, *, root: Path | None = None
    ) -> Iterator[Captioned | TellapartError]:
        """Captions of files and folders, as they come; a bad file gives its error in its place.

        An image's id is its path without the ending, inside `root` where that is given.
        """
        parts = in_order(self.saved.captioner.needs)
        results = look(find_pictures(paths), self.encoder, parts=parts, cache=self.cache, must_cache=False)
        while group := list(islice(results, TOGETHER)):
            good = [seen for seen in group if isinstance(seen, Seen)]
            captions = iter(self._describe(good, wish))
            for seen in group:
                if isinstance(seen, TellapartError):
                    yield seen
                else:
                    yield Captioned(seen.path, image_id(seen.path, root), next(captions))

    def wish(
        self, *, width: int | None = None, keep: int = 1, prefix: str = "", max_words: int | None = None
    ) -> Wish:
        """How to decode: the captioner's own settings unless said otherwise."""
        settings = self.saved.settings
        tokens = prefix_tokens(self.saved, prefix)
        longest = max_words or settings.max_words
        if len(tokens) > longest:
            raise TellapartError(
                f"the prefix has {len(tokens)} words, a caption at most {longest}",
                hint="shorten it, or raise --max-words",
            )
        return Wish(max(width or settings.width, keep), longest, keep, tokens)

    def _describe(self, seen: Sequence[Seen], wish: Wish) -> list[tuple[Candidate, ...]]:
        if not seen:
            return []
        return describe(self.saved, as_vision(stack([picture.features for picture in seen])), wish)


def image_id(path: Path, root: Path | None) -> str:
    """What a picture is called in a predictions file; unlike its name, it is the only one so called."""
    return (path.relative_to(root) if root else path).with_suffix("").as_posix()


def prefix_tokens(saved: SavedCaptioner, prefix: str) -> tuple[int, ...]:
    """The words a caption is to begin with, which the captioner must know."""
    vocabulary = saved.captioner.vocabulary
    found = words(prefix, saved.settings.text)
    for word in found:
        if word not in vocabulary:
            raise TellapartError(
                f"prefix: the captioner does not know the word {word!r}",
                hint=f"it knows {len(vocabulary.words)} words, listed in its vocabulary.json",
            )
    return tuple(vocabulary.id(word) for word in found)


def load(name: str | os.PathLike[str] = "default", *, cached: bool = True) -> Describer:
    """The captioner that ships ("default"), or the one in a captioner or run folder, ready to take images."""
    folder = find_captioner(name)
    saved = load_captioner(folder)
    encoder = load_encoder(saved.settings.encoder)
    if encoder.identity != saved.settings.encoder_identity:
        raise TellapartError(
            f"{folder}: trained on features of {saved.settings.encoder_identity}, "
            f"but the installed encoder is {encoder.identity}",
            hint="install the package versions it was trained with, or train it again",
        )
    cache = FeatureCache(cache_folder(), encoder) if cached else None
    return Describer(str(name), saved, encoder, cache)


def find_captioner(name: str | os.PathLike[str]) -> Path:
    """The folder of a captioner: one that ships by its name, a captioner folder, or the best of a run."""
    # By comparing names: "." and ".." are the user's own folders.
    for shipped in Path(str(resources.files("tellapart") / "zoo")).glob("*/"):
        if shipped.name == str(name):
            return shipped
    run = Run(Path(name))
    return run.captioner if run.captioner.is_dir() else run.folder
