"""Captions measured: plain lists or dicts in, scores with signatures out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tellapart.data.readers.files import is_writable
from tellapart.errors import TellapartError
from tellapart.metrics.material import Material, Metric, Watch, unwatched
from tellapart.metrics.parts import METRICS
from tellapart.metrics.ptb.tokenizer import tokenize_all
from tellapart.metrics.score import Score, Scores, gathered
from tellapart.registry import Config, Part

Texts = Sequence[str] | str
Candidates = Sequence[Texts] | Mapping[str, Texts] | Mapping[int, Texts]
References = Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | Mapping[int, Sequence[str]]

_PLAIN = re.compile("[A-Za-z0-9]")

_AROUND = ".,;:!?\"'()"  # what may stand around a word that is said again

DEFAULT = ("bleu", "rouge", "cider", "meteor", "diversity", "form")
"""What is measured if nothing else is asked for: all that takes seconds and no model."""


def score(
    candidates: Candidates,
    references: References | None = None,
    *,
    metrics: Sequence[str | Config] | str | None = None,
    train: Sequence[Sequence[str]] | None = None,
    images: Sequence[str | Path] | None = None,
    drop_repeats: bool = False,
) -> Scores:
    """Measure captions.

    Args:
        candidates: a caption an image, or a list of several, of which the first is the caption proper; in a
            list, or in a dict by image id.
        references: a list of texts for each candidate, in the same order; or a dict by the same ids.
        metrics: names of measures or their configurations; "all" for every one that can run; None for those
            that take seconds and no model.
        train: the captions of each image that was trained on, for novelty and document frequencies.
        images: the picture of each candidate, in the same order.
        drop_repeats: remove words that repeat the word before them first, as Lindh et al. do.
    """
    material = gather(candidates, references)
    material = replace(
        material,
        training=None if train is None else _grouped(train, "training captions"),
        pictures=None if images is None else tuple(map(Path, images)),
    )
    if material.pictures is not None and len(material.pictures) != len(material):
        raise TellapartError(
            f"there are {len(material)} candidates and {len(material.pictures)} images",
            hint="give one image a candidate, in the same order",
        )
    unused = len(references) - len(material) if isinstance(references, Mapping) else 0
    remarks = (f"no candidate for {unused} of the images with references: left out",) if unused else ()
    return measure(material, choose(metrics), drop_repeats=drop_repeats, remarks=remarks)


def gather(candidates: Candidates, references: References | None) -> Material:
    """Plain values as material, or an error that names what does not fit together."""
    for role, values in (("candidates", candidates), ("references", references)):
        if isinstance(values, str):
            raise TellapartError(f"the {role} are one string", hint="give a list, with an entry an image")
    if references is not None and isinstance(candidates, Mapping) != isinstance(references, Mapping):
        raise TellapartError(
            "candidates and references are not both dicts", hint="give two lists, or two dicts by image id"
        )
    ours = _by_id(candidates, "candidates")
    theirs = None if references is None else _by_id(references, "references")
    if theirs is not None and isinstance(candidates, Mapping):
        theirs = _of_same_images(ours, theirs)
    if theirs is not None and len(theirs) != len(ours):
        raise TellapartError(
            f"there are {len(ours)} candidates and references of {len(theirs)}",
            hint="give a list of references for each candidate, in the same order",
        )
    return Material(
        tuple(ours),
        tuple(_texts(texts, image_id, "candidates") for image_id, texts in ours.items()),
        None
        if theirs is None
        else tuple(_texts(texts, image_id, "references") for image_id, texts in theirs.items()),
    )


def _by_id(values: Candidates | References, role: str) -> dict[str, object]:
    """By image id as a string; what is in a list is called by its place."""
    if not isinstance(values, Mapping):
        return {str(place): texts for place, texts in enumerate(values)}
    named: dict[str, object] = {}
    for key, texts in values.items():
        if str(key) in named:
            raise TellapartError(
                f"the {role} have image {str(key)!r} twice, as a number and as a text",
                hint="write all ids in the same way",
            )
        named[str(key)] = texts
    return named


def _of_same_images(ours: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, object]:
    missing = [image_id for image_id in ours if image_id not in theirs]
    if missing:
        raise TellapartError(
            f"image {missing[0]!r} has no references ({len(missing)} of {len(ours)} images have none)",
            hint="add its references, or drop its candidate",
        )
    return {image_id: theirs[image_id] for image_id in ours}


def _texts(texts: object, image_id: str, role: str) -> tuple[str, ...]:
    if isinstance(texts, str) and role == "candidates":
        texts = [texts]
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise TellapartError(
            f"the {role} of image {image_id!r} are {texts!r:.60}, which is no list of texts",
            hint="write a list even of a single text: ['a dog']",
        )
    for text in texts:
        if not isinstance(text, str):
            raise TellapartError(
                f"the {role} of image {image_id!r} hold {text!r:.60}, which is no text",
                hint="give captions as strings",
            )
        if not is_writable(text):
            raise TellapartError(
                f"the {role} of image {image_id!r} hold half a character (a lone surrogate)",
                hint="write the caption again",
            )
    if not texts:
        raise TellapartError(f"image {image_id!r} has no {role}", hint="give it at least one, or drop it")
    return tuple(texts)


def _grouped(groups: Sequence[Sequence[str]], role: str) -> tuple[tuple[str, ...], ...]:
    return tuple(_texts(group, str(number), role) for number, group in enumerate(groups))


@dataclass(frozen=True, slots=True)
class Choice:
    """Measures with their settings, and whether it is an error if one of them cannot run."""

    measures: Sequence[tuple[Part, Config]]
    must_run: bool


def choose(metrics: Sequence[str | Config] | str | None, settings: Sequence[Config] = ()) -> Choice:
    """The measures that are asked for; of those named, the settings are taken where there are some."""
    named = list(DEFAULT if metrics is None else metrics.split(",") if isinstance(metrics, str) else metrics)
    named = [each.strip().lower() if isinstance(each, str) else each for each in named]
    if not any(named):
        raise TellapartError("no measure is named", hint=f"there are: {', '.join(METRICS.names())}")
    must_run = metrics is not None and "all" not in named
    if "all" in named:
        named = [*METRICS.names(), *(each for each in named if each != "all")]
    chosen = {part.name: (part, config) for part, config in map(_part, named)}
    for part, config in map(_part, settings):
        if part.name in chosen:
            chosen[part.name] = (part, config)
    return Choice(list(chosen.values()), must_run)


def measure(
    material: Material,
    choice: Choice,
    *,
    drop_repeats: bool = False,
    remarks: tuple[str, ...] = (),
    watch: Watch = unwatched,
) -> Scores:
    """Run measures on material. One that cannot run is an error if it must; else it is said why."""
    if not len(material):
        raise TellapartError("there are no captions to measure", hint="give at least one image")
    material = replace(without_repeats(material) if drop_repeats else material, watch=watch)
    found: list[Score] = []
    skipped: dict[str, str] = {}
    for part, config in choice.measures:
        try:
            metric: Metric = part.builder()(config)
            found.extend(metric(material))
        except TellapartError as error:
            if choice.must_run:
                raise
            skipped[part.name] = f"{error.problem} ({error.hint})"
    scores = gathered(
        material.ids,
        found,
        skipped=skipped,
        remarks=(*remarks, *_remarks(material, found)),
        treatment="repeats:dropped" if drop_repeats else "",
    )
    return replace(scores, references=material.references_name)


def _part(wanted: str | Config) -> tuple[Part, Config]:
    if isinstance(wanted, str):
        part = METRICS.get(wanted)
        return part, part.config()
    for name in METRICS.names():
        if METRICS.get(name).config is type(wanted):
            return METRICS.get(name), wanted
    raise TellapartError(
        f"no metric is configured by {type(wanted).__name__}", hint=f"there are: {', '.join(METRICS.names())}"
    )


def without_repeats(material: Material) -> Material:
    """The same with candidates that say no word twice in a row (Lindh et al.; facts of their code)."""
    return replace(
        material,
        candidates=tuple(tuple(_without_repeats(text) for text in texts) for texts in material.candidates),
    )


def _without_repeats(text: str) -> str:
    words = text.split()
    said = [word.strip(_AROUND).lower() or word for word in words]
    return " ".join(
        word for word, before, now in zip(words, ["", *said], said, strict=False) if now != before
    )


def _remarks(material: Material, found: Sequence[Score]) -> list[str]:
    """What is odd about the texts themselves, and values that are none."""
    remarks = []
    for role, groups in (("candidate", material.candidates), ("reference", material.references or ())):
        empty = _images_with_empty_texts(material.ids, groups)
        if empty:
            remarks.append(
                f"{len(empty)} of {len(material)} images have a {role} without a word (first: {empty[0]!r}); "
                "it counts as an empty text"
            )
    silent = [score.name for score in found if not math.isfinite(score.corpus) and not score.notes]
    return [*remarks, *(f"{name} has no value on these captions" for name in silent)]


def _images_with_empty_texts(ids: Sequence[str], groups: Sequence[Sequence[str]]) -> list[str]:
    """Images with a text of which the tokenizer leaves nothing, such as dots or a smiley alone."""
    # A letter or digit always leaves a token: only the few texts without one are tokenized here.
    odd = [
        (image_id, text)
        for image_id, texts in zip(ids, groups, strict=False)
        for text in texts
        if not _PLAIN.search(text)
    ]
    tokens = tokenize_all([text for _, text in odd])
    return list(
        dict.fromkeys(image_id for (image_id, _), words in zip(odd, tokens, strict=True) if not words)
    )
