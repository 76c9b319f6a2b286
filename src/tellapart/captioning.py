"""From image files to captions: the flow that `tellapart caption` and `tellapart.load()` share."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Float
from tellapart.captioners.folder import (
    Decoding,
    SavedCaptioner,
    build_captioner,
    describe_captioner,
    load_captioner,
)
from tellapart.captioners.parts import CAPTIONERS
from tellapart.corpus import Corpus, Watch, as_vision
from tellapart.data.picture_files import find_pictures
from tellapart.data.small_words import FUNCTION_WORDS
from tellapart.decoding.required import Required
from tellapart.decoding.rules import Rule, banned, begin_with, never, no_repeated_token
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.run import Run
from tellapart.shipped import find_shipped
from tellapart.storage import cache_folder
from tellapart.types import Decoded, Text, Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder, traits_of
from tellapart.vision.features import in_order, stack
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder, load_same_encoder

TOGETHER = 8  # pictures decoded in one go: enough to be fast, few enough that captions stream
CHUNK = 64  # the same where nobody waits for the first caption
PRETRAINED_WIDTH, PRETRAINED_LONGEST = 3, 40  # beam and tokens of captioners that bring no settings of ours


@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption and its log-probability under the captioner.

    Where it was held against other pictures: its closeness to its own, and by how much that exceeds its
    closeness to the nearest of the others; how far it agrees with captions drawn of its picture by chance;
    and by which attempt it came into question.
    """

    caption: str
    logprob: float
    closeness: float | None = None
    margin: float | None = None
    agreement: float | None = None
    by: str | None = None

    def to_json(self) -> dict[str, str | float]:
        """As plain values; what is not known is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Captioned:
    """An image with its caption and, best first, all candidates that were asked for."""

    image: Path
    image_id: str
    candidates: tuple[Candidate, ...]
    about: Mapping[str, Any] = field(default_factory=dict)  # what else its line in a file says

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
            "candidates": [candidate.to_json() for candidate in self.candidates],
            "model": model,
            **self.about,
        }


@dataclass(frozen=True, slots=True)
class Words:
    """What captions must and must not say."""

    prefix: str = ""  # that they begin with
    banned: tuple[str, ...] = ()  # words and phrases that are never written
    required: tuple[str, ...] = ()  # words and phrases that every caption holds
    # Whether a caption may say a word twice ("a sink and a sink"); None: as its captioner has it. Function
    # words always may, and what stands in the prefix or is required.
    repeats: bool | None = None

    def rules(self, text: Text, *, max_words: int) -> tuple[Rule, ...]:
        """The same as rules of decoding, the most important first; what cannot be is an error."""
        begun = text.beginning(self.prefix)
        if len(begun) > max_words:
            raise TellapartError(
                f"the prefix has {len(begun)} words, a caption at most {max_words}",
                hint="shorten it, or raise --max-words",
            )
        rules: list[Rule] = [begin_with(text, begun)] if begun else []
        if self.required:
            rules.append(Required.of(text, self.required, max_words=max_words, prefix=begun))
        if self.banned:
            rules.append(banned(text, self.banned))
            self._expect_writable(text, rules[-1])
        if self.repeats is False:
            wanted = " ".join([self.prefix, *self.required]).split()
            rules.append(no_repeated_token(text, free=FUNCTION_WORDS | set(wanted)))
        return tuple(rules)

    def _expect_writable(self, text: Text, ban: Rule) -> None:
        """Refuse what is both wanted and banned: of two rules that contradict, one would be set aside."""
        for wanted in (self.prefix, *self.required):
            tokens = text.beginning(wanted)
            for place, token in enumerate(tokens):
                if _allowed(text, ban, tokens[:place])[token] == -math.inf:
                    raise TellapartError(
                        f"{wanted!r} is wanted in every caption, and banned", hint="take back one of the two"
                    )
        if not self.prefix and _allowed(text, ban, ()).max() == -math.inf:
            raise TellapartError("every word is banned", hint="ban fewer words")


@dataclass(frozen=True, slots=True)
class Wish:
    """How captions are to be found: a beam (width 1: greedy), how many to keep, what they must say.

    With a length penalty, a beam compares captions by their log-probability over that power of their length.
    """

    width: int
    max_words: int
    keep: int = 1
    length_penalty: float = 0.0
    words: Words = field(default_factory=Words)
    rules: tuple[Rule, ...] = ()  # the same for the captioner; made once, as that may take a while


def describe(saved: SavedCaptioner, vision: Vision, wish: Wish) -> list[tuple[Candidate, ...]]:
    """The captions of each image, best first."""
    captioner = saved.captioner
    decoded = beam(
        captioner,
        vision,
        width=wish.width,
        max_words=wish.max_words,
        rules=wish.rules,
        length_penalty=wish.length_penalty,
    )
    return [found[: wish.keep] for found in candidates_of(captioner.text, decoded)]


def candidates_of(text: Text, decoded: Decoded) -> list[tuple[Candidate, ...]]:
    """What was decoded, in words; places of a beam that hold no caption are left out."""
    return [
        tuple(
            Candidate(text.decode(tokens), score)
            for tokens, score in zip(captions, scores, strict=True)
            if score > -float("inf")
        )
        for captions, scores in zip(decoded.tokens.tolist(), decoded.log_probabilities.tolist(), strict=True)
    ]


def describe_corpus(
    saved: SavedCaptioner, corpus: Corpus, wish: Wish, *, watch: Watch
) -> Iterator[tuple[Candidate, ...]]:
    """The captions of every image of a corpus, in its order."""
    count = len(corpus.examples)
    for first in range(0, count, CHUNK):
        rows = range(first, min(first + CHUNK, count))
        yield from describe(saved, corpus.vision(rows), wish)
        watch(rows.stop, count)


def draw_corpus(
    saved: SavedCaptioner, corpus: Corpus, sampling: Sampling, *, seed: int, watch: Watch
) -> Iterator[list[str]]:
    """Captions drawn by chance of every image of a corpus, in its order; the draw hangs on the image's id."""
    captioner, count = saved.captioner, len(corpus.examples)
    for first in range(0, count, CHUNK):
        rows = range(first, min(first + CHUNK, count))
        names = [corpus.examples[row].image_id for row in rows]
        drawn = sample(
            captioner,
            corpus.vision(rows),
            sampling,
            generators=image_generators(names, seed=seed),
            max_words=saved.settings.max_words,
        )
        for group in drawn.tokens.tolist():
            yield [captioner.text.decode(tokens) for tokens in group]
        watch(rows.stop, count)


@dataclass(frozen=True)
class Describer:
    """A captioner with its encoder: takes image files, gives captions."""

    name: str
    saved: SavedCaptioner
    encoder: Encoder
    cache: FeatureCache | None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the captioner's weights: another one of the same name says other things."""
        digest = hashlib.sha256()
        for name, tensor in self.saved.captioner.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

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
        results = self.look(find_pictures(paths))
        while group := list(islice(results, TOGETHER)):
            good = [seen for seen in group if isinstance(seen, Seen)]
            captions = iter(self.describe_seen(good, wish))
            for seen in group:
                if isinstance(seen, TellapartError):
                    yield seen
                else:
                    yield Captioned(seen.path, image_id(seen.path, root), next(captions))

    def look(
        self, paths: Iterable[Path | TellapartError], *, besides: Iterable[str] = ()
    ) -> Iterator[Seen | TellapartError]:
        """What the captioner's encoder sees in files, in order; a bad file gives its error in its place.

        Parts of what it sees that the captioner does not need, and somebody else does, are `besides`.
        """
        parts = in_order({*self.saved.captioner.needs, *besides})
        return look(paths, self.encoder, parts=parts, cache=self.cache, must_cache=False)

    def wish(
        self,
        *,
        width: int | None = None,
        keep: int = 1,
        words: Words | None = None,
        max_words: int | None = None,
        length_penalty: float | None = None,
    ) -> Wish:
        """How to decode: the captioner's own settings unless said otherwise."""
        settings = self.saved.settings
        longest = max_words or settings.max_words
        said = words or Words()
        if said.repeats is None:
            said = replace(said, repeats=settings.repeats)
        rules = said.rules(self.saved.captioner.text, max_words=longest)
        penalty = settings.length_penalty if length_penalty is None else length_penalty
        return Wish(max(width or settings.width, keep), longest, keep, penalty, said, rules)

    def describe_seen(self, seen: Sequence[Seen], wish: Wish) -> list[tuple[Candidate, ...]]:
        """The captions of pictures that the encoder has seen, best first."""
        if not seen:
            return []
        return describe(self.saved, as_vision(stack([picture.features for picture in seen])), wish)


def _allowed(text: Text, rule: Rule, tokens: Sequence[int]) -> Float[Tensor, " v"]:
    """What may follow these tokens in a caption: -inf where a token may not."""
    written = torch.tensor([tokens], dtype=torch.long)
    scores = torch.zeros(1, len(text))
    for each in (never((*text.silent, text.end)), rule):
        scores = each(scores, written)
    return scores[0]


def image_id(path: Path, root: Path | None) -> str:
    """What a picture is called in a predictions file; unlike its name, it is the only one so called."""
    return (path.relative_to(root) if root else path).with_suffix("").as_posix()


def load(name: str | os.PathLike[str] = "default", *, cached: bool = True) -> Describer:
    """A captioner, ready to take images.

    Args:
        name: the one that ships ("default"), a captioner or run folder, or a pretrained one as it is:
            "blip", or "blip:FOLDER_OR_HUB_NAME", and the same for git, vit-gpt2, blip2 and image-text.
        cached: whether features of pictures are remembered.
    """
    saved = _as_it_is(str(name)) or load_captioner(find_captioner(name))
    encoder = load_same_encoder(saved.settings.encoder, needed_by=str(find_captioner(name)))
    cache = FeatureCache(cache_folder(), encoder) if cached else None
    return Describer(str(name), saved, encoder, cache)


def _as_it_is(name: str) -> SavedCaptioner | None:
    """A captioner of a checkpoint that others trained, where that is what the name means."""
    kind, _, checkpoint = name.partition(":")
    if kind not in CAPTIONERS.names() or Path(name).exists():
        return None
    part = CAPTIONERS.get(kind)
    if part.own_encoder is None:
        raise TellapartError(
            f"{name!r} is a kind of captioner that has to be trained first",
            hint="name the folder of a trained one, or train one: tellapart list recipes",
        )
    config = part.configure({"checkpoint": checkpoint} if checkpoint else {})
    traits = traits_of(load_encoder(part.own_encoder(config)))
    captioner = build_captioner(kind, config, text=None, traits=traits).eval()
    section = {"name": kind, **config.model_dump()}
    longest = min(PRETRAINED_LONGEST, (captioner.longest or PRETRAINED_LONGEST + 1) - 1)
    settings = describe_captioner(
        captioner, section=section, traits=traits, decoding=Decoding(PRETRAINED_WIDTH, longest)
    )
    return SavedCaptioner(captioner, settings)


def find_captioner(name: str | os.PathLike[str]) -> Path:
    """The folder of a captioner: one that ships by its name, a captioner folder, or the best of a run."""
    if shipped := find_shipped(name):
        return shipped
    run = Run(Path(name))
    return run.captioner if run.captioner.is_dir() else run.folder
