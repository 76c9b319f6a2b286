"""Why a caption tells its picture apart, or does not: what `tellapart explain` does.

Three questions about each word. How much closer than to its strongest rival does the word bring the caption
to its picture (the drop of the margin when it is left out)? What does it cost the captioner, by MLE and by
SMILE? And where did the captioner look when it wrote it?
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tellapart.arrays import Float64
from tellapart.captioners.attention_maps import Looks, find_layout, read_looks
from tellapart.captioning import Candidate, Describer, describe, load
from tellapart.corpus import as_vision
from tellapart.errors import TellapartError
from tellapart.explanation import Explanation, Helpful, Look, Rival, Word
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.rivals import Rivals, find_rivals, margins
from tellapart.searching import NEAR, named_retriever
from tellapart.types import Prediction, Vision
from tellapart.vision.features import in_order
from tellapart.vision.looking import look
from tellapart.word_penalties import Spelled, predict_words, spell, unwritten, word_penalties

CANDIDATES = 10  # captions of a beam whose words might help
HELPFUL = 8  # words that are named at the most


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be explained.

    Attributes:
        image: the picture.
        among: folder of the pictures that it must be told apart from; None: its own.
        caption: None: one that the captioner writes by its own settings.
        neighbours: how many of the folder's pictures are rivals: those most like it.
    """

    image: Path
    among: Path | None = None
    caption: str | None = None
    neighbours: int = 10

    @property
    def folder(self) -> Path:
        """Where the rivals are."""
        return self.image.parent if self.among is None else self.among


def explain(
    image: str | os.PathLike[str],
    among: str | os.PathLike[str] | None = None,
    *,
    caption: str | None = None,
    captioner: str | Describer = "default",
    by: str | Retriever = "reranker",
    neighbours: int = 10,
) -> Explanation:
    """What makes a picture's caption distinctive, word by word.

    Args:
        image: a picture file.
        among: folder of pictures to tell it apart from (searched recursively); the one it lies in if None.
        caption: any sentence about it; one that the captioner writes if None.
        captioner: its name, as `load` takes it, or one that is loaded.
        by: the retriever that says how close sentences and pictures are: its name, or one that is loaded.
        neighbours: how many of the most similar pictures are rivals.
    """
    describer = captioner if isinstance(captioner, Describer) else load(captioner)
    folder = None if among is None else Path(among)
    return explain_picture(Asked(Path(image), folder, caption, neighbours), describer, named_retriever(by))


def explain_picture(
    asked: Asked, describer: Describer, retriever: Retriever, *, watch: Watch = unwatched
) -> Explanation:
    """Explain a picture's caption; `watch` is told of the folder's pictures that are looked at first."""
    vision = see_picture(asked.image, describer)
    saved, text = describer.saved, describer.saved.captioner.text
    spelled = spell(text, _written(describer, vision) if asked.caption is None else asked.caption)
    (candidates,) = describe(saved, vision, describer.wish(keep=CANDIDATES))
    rivals = find_rivals(asked.image, asked.folder, retriever, asked.neighbours, watch=watch)
    verdict = judge_words(spelled, rivals, retriever, new_words(spelled, candidates))
    prediction = predict_words(saved.captioner, vision, spelled)
    penalties, end = word_penalties(prediction, spelled, text)
    looks, about_looks = find_looks(prediction, describer)
    strange = unwritten(spelled, text)
    words = tuple(
        Word(word, word not in strange, penalty, *drops, _look(looks, places))
        for word, penalty, drops, places in zip(
            spelled.words, penalties, verdict.drops, spelled.places(), strict=True
        )
    )
    notes = (
        *_about_words(spelled, strange, retriever),
        *_about_rivals(asked, rivals),
        about_looks,
        *rivals.notes,
    )
    return Explanation(
        image=asked.image,
        caption=spelled.caption,
        is_given=asked.caption is not None,
        captioner=describer.name,
        retriever=retriever.name,
        folder=asked.folder,
        others=rivals.others,
        closeness=verdict.closeness,
        margin=verdict.margin,
        rivals=verdict.rivals,
        words=words,
        end=end,
        helpful=verdict.helpful,
        notes=tuple(note for note in notes if note),
        problems=rivals.problems,
    )


def see_picture(image: Path, describer: Describer) -> Vision:
    """What the captioner's encoder sees in one picture; one that cannot be read is an error."""
    parts = in_order(describer.saved.captioner.needs)
    seen = next(look([image], describer.encoder, parts=parts, cache=describer.cache, must_cache=False))
    if isinstance(seen, TellapartError):
        raise seen
    return as_vision(seen.features)


def _written(describer: Describer, vision: Vision) -> str:
    """The caption by the captioner's own settings."""
    ((best, *_),) = describe(describer.saved, vision, describer.wish())
    return best.caption


def new_words(spelled: Spelled, candidates: Sequence[Candidate]) -> list[str]:
    """Words of other captions that the captioner thought of, which this one does not hold."""
    said = {word.lower() for word in spelled.words}
    thought = (word for candidate in candidates for word in candidate.caption.split())
    return [word for word in dict.fromkeys(thought) if word.lower() not in said]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the retriever makes of a caption.

    Attributes:
        closeness: its cosine with its own picture.
        margin: how much that is above its cosine with the strongest rival; None without rivals.
        drops: by how much closeness and margin fall when each word is left out; None where there is none.
        rivals: most like the picture first.
        helpful: words that raise the margin where they are put behind the caption, best first.
    """

    closeness: float
    margin: float | None
    drops: tuple[tuple[float | None, float | None], ...]
    rivals: tuple[Rival, ...]
    helpful: tuple[Helpful, ...]


def judge_words(spelled: Spelled, rivals: Rivals, retriever: Retriever, further: Sequence[str]) -> Verdict:
    """Hold the caption, the caption without each of its words, and with each further word against the rivals.

    Without its only word nothing is left of a caption that could be close to anything: no drop is given.
    """
    count = len(spelled.words)
    shorter = [" ".join([*spelled.words[:place], *spelled.words[place + 1 :]]) for place in range(count)]
    shorter = shorter if count > 1 else []
    longer = [f"{spelled.caption} {word}" for word in further] if rivals.paths else []
    closeness = rivals.closeness(retriever.embed_texts([spelled.caption, *shorter, *longer]))
    without = _fall(closeness[:, 0])[: len(shorter)]
    apart: Sequence[float | None] = [None] * len(shorter)
    helpful: list[Helpful] = []
    margin = None
    if rivals.paths:
        margin = float(margins(closeness)[0])
        falls = _fall(margins(closeness))
        apart = falls[: len(shorter)]
        gains = [Helpful(word, -fall) for word, fall in zip(further, falls[len(shorter) :], strict=True)]
        helpful = sorted((each for each in gains if each.gain > 0), key=lambda each: -each.gain)
    drops = tuple(zip(without, apart, strict=True)) if shorter else ((None, None),) * count
    scored = zip(rivals.paths, rivals.likeness, closeness[0, 1:].tolist(), strict=True)
    return Verdict(
        float(closeness[0, 0]),
        margin,
        drops,
        tuple(Rival(path, likeness, score, likeness >= NEAR) for path, likeness, score in scored),
        tuple(helpful[:HELPFUL]),
    )


def _fall(values: Float64[np.ndarray, " n"]) -> list[float]:
    """By how much each value after the first is below it."""
    falls: list[float] = (values[0] - values[1:]).tolist()
    return falls


def find_looks(prediction: Prediction, describer: Describer) -> tuple[Looks | None, str]:
    """Where the captioner looked, in its last layer; where it cannot be drawn, why."""
    if not prediction.attention:
        return None, f"the captioner {describer.name!r} has no attention over the picture: no maps"
    attention = prediction.attention[-1][0, 0]  # (h, t, n)
    settings = describer.saved.settings
    attended = attention.shape[-1]
    # A captioner that trains its tower is given pixels: its grid is what it makes of them.
    places = attended if settings.encoder.name.startswith("pixels:") else settings.encoder.grid()[0]
    height, width = describer.encoder.prepare(Image.new("RGB", (8, 8))).shape[1:]
    layout = find_layout(
        attended,
        places,
        (height, width),
        concepts=settings.captioner.get("concepts", 0),
        sentinel=settings.captioner["name"] == "adaptive",
    )
    if layout is None:
        return (
            None,
            f"the {places} places that the captioner attends to are no grid over the picture: no maps",
        )
    return read_looks(attention, layout), ""


def _look(looks: Looks | None, places: range) -> Look | None:
    return Look(*looks.over(places)) if looks is not None and places else None


def _about_words(spelled: Spelled, strange: Sequence[str], retriever: Retriever) -> list[str]:
    notes = []
    if strange:
        notes.append(
            f"the captioner cannot write {_named(strange)}: it reads an unknown word there, and that is what "
            "the penalties are of"
        )
    unknown = list(dict.fromkeys(retriever.unknown_words(spelled.caption)))
    if unknown:
        notes.append(f"the retriever {retriever.name!r} does not know {_named(unknown)}")
    if len(spelled.words) == 1:
        notes.append(
            "without its only word nothing is left of the caption: what the word adds is not defined"
        )
    return notes


def _named(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in words)


def _about_rivals(asked: Asked, rivals: Rivals) -> list[str]:
    notes = []
    if rivals.copies:
        files = "1 other file" if rivals.copies == 1 else f"{rivals.copies:,} other files"
        notes.append(f"{files} in {asked.folder} hold the same picture, which no words tell apart: no rivals")
    if not rivals.paths:
        notes.append(f"{asked.folder} holds no other picture: without a rival the margin has no meaning")
    elif len(rivals.paths) < asked.neighbours:
        several = "1 other picture: it is the only rival"
        if rivals.others > 1:
            several = f"{rivals.others:,} other pictures: all are rivals"
        notes.append(f"{asked.folder} holds {several}")
    near = [path for path, likeness in zip(rivals.paths, rivals.likeness, strict=True) if likeness >= NEAR]
    notes += [f"{path} is nearly the same picture: perhaps no words tell them apart" for path in near]
    return notes
