"""Best and average candidate of each image, as a curve over how many candidates there are.

Each measure picks its own best candidate of an image (UNKT, Table 1, as self-critical's evaluation does):
the value of the best of the first N candidates, and their mean value, averaged over images. BLEU is that of
single captions, so that of one candidate an image it is not the corpus BLEU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tellapart.errors import TellapartError
from tellapart.metrics.bleu import bleu_statistics, bleu_values
from tellapart.metrics.cider import cider_pairs
from tellapart.metrics.frequencies import CorpusFrequencies, find_frequencies
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import METRICS, CiderConfig, OracleConfig
from tellapart.metrics.rouge import rouge_values
from tellapart.metrics.score import Floats, Score
from tellapart.metrics.sentences import Sentences
from tellapart.metrics.sets import expect_several
from tellapart.registry import Config

SIZES = (1, 2, 5, 10, 20, 50, 100)

_TEXTS = 50_000  # that are scored at a time: what bounds memory
_ONE_BY_ONE = ("meteor", "spice")  # measures for which an image's value depends on nothing but the image
_NO_CHOICE = ("detail", "diversity", "fluency", "form", "oracle", "retrieval", "sets")
_HINT = "name measures of how good a caption is: bleu, rouge, cider, meteor, spice, clipscore"
_SPICE_TEXTS = 10_000  # SPICE parses about 15 texts a second: more would take over ten minutes


def build_oracle(config: OracleConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: oracle(material, config)


def oracle(material: Material, config: OracleConfig) -> list[Score]:
    """Best and average of the first N candidates, for each measure and each N."""
    width = expect_several(material, "the oracle")
    sizes = _sizes(config.sizes, width)
    if sizes[-1] < width:
        material = replace(material, candidates=tuple(texts[: sizes[-1]] for texts in material.candidates))
    for name in config.metrics:
        _refuse_what_has_no_oracle(material, name, sizes[-1])
    measured = chain.from_iterable(_measured(material, name, config) for name in config.metrics)
    return [score for one in measured for score in _curve(one, sizes)]


def candidate_values(material: Material, name: str) -> dict[str, Floats]:
    """Every score that a measure gives of every candidate, (images, width); NaN where it gives none."""
    _refuse_what_has_no_oracle(material, name, material.width)
    return {one.score.name: one.values for one in _measured(material, name, OracleConfig())}


def _sizes(wanted: Sequence[int], width: int) -> list[int]:
    """Numbers of candidates in ascending order, each once."""
    for size in wanted:
        if not 1 <= size <= width:
            raise TellapartError(
                f"the oracle cannot choose among {size} candidates: every image has {width}",
                hint=f"ask for sizes from 1 to {width}",
            )
    return sorted({*wanted} or {*(size for size in SIZES if size < width), width})


def _refuse_what_has_no_oracle(material: Material, name: str, width: int) -> None:
    if name in _NO_CHOICE:
        raise TellapartError(
            f"the oracle cannot choose by {name!r}: the greater value is not the better caption", hint=_HINT
        )
    texts = len(material) * width + sum(map(len, material.references or ()))
    if name == "spice" and texts > _SPICE_TEXTS:
        raise TellapartError(
            f"SPICE would have to parse {texts:,} texts for {width} candidates of {len(material):,} images,"
            f" about {texts / _SPICE_TEXTS * 11:.0f} minutes",
            hint=f"ask for fewer candidates (sizes) or give fewer images, {_SPICE_TEXTS:,} texts at most",
        )


@dataclass(frozen=True, slots=True)
class _Measured:
    """One measure of every candidate; signature and notes are those of the measure itself."""

    score: Score
    values: Floats  # (images, width); NaN where the measure has no value


def _curve(measured: _Measured, sizes: Sequence[int]) -> Iterator[Score]:
    known = np.cumsum(np.isfinite(measured.values), axis=1)
    best = np.fmax.accumulate(measured.values, axis=1)
    sums = np.nancumsum(measured.values, axis=1)
    for size in sizes:
        count = known[:, size - 1]
        mean = np.divide(sums[:, size - 1], count, out=np.full(len(count), np.nan), where=count > 0)
        yield _scored("oracle", "best", measured.score, size, best[:, size - 1])
        yield _scored("average", "mean", measured.score, size, mean)


def _scored(kind: str, choice: str, score: Score, size: int, each: Floats) -> Score:
    has_value = np.isfinite(each)
    notes = score.notes
    if not has_value.all():
        lost = int(np.count_nonzero(~has_value))
        notes += (f"{score.name}: {lost} of {len(each)} images have no candidate with a value; left out",)
    return Score(
        f"{kind} {score.name}@{size}",
        float(each[has_value].mean()) if has_value.any() else float("nan"),
        f"{score.signature}|level:image|candidates:{size}|choice:{choice}",
        each,
        notes=notes,
    )


def _measured(material: Material, name: str, config: OracleConfig) -> list[_Measured]:
    """Every score that a measure gives, for every candidate."""
    part = METRICS.get(name)
    settings = _settings(part.config, config)
    metric: Metric = part.builder()(settings)
    if name in _ONE_BY_ONE:
        return [
            _Measured(score, _each(score).reshape(len(material), -1))
            for score in metric(_flattened(material))
        ]
    if name in _AT_ONCE:
        values = _AT_ONCE[name](material, settings).reshape(len(material), material.width, -1)
        # The measure of the captions alone costs little beside, and knows what to say about itself.
        return [_Measured(score, values[..., row]) for row, score in enumerate(metric(material))]
    columns = [metric(_column(material, column)) for column in range(material.width)]
    return [
        _Measured(scores[0], np.stack(list(map(_each, scores)), axis=1))
        for scores in zip(*columns, strict=True)
    ]


def _settings(kind: type[Config], config: OracleConfig) -> Config:
    return next((settings for settings in config.settings if type(settings) is kind), kind())


def _each(score: Score) -> Floats:
    if score.each is None:
        raise TellapartError(
            f"the oracle cannot choose by {score.name}, which has no value for a single image",
            hint=_HINT,
        )
    return score.each


def _flattened(material: Material) -> Material:
    """Every candidate as the caption of an image of its own."""
    width = material.width
    references = material.references or ()
    flat = replace(
        material,
        ids=tuple(f"{image_id}#{number}" for image_id in material.ids for number in range(width)),
        candidates=tuple((text,) for text in chain.from_iterable(material.candidates)),
        references=tuple(group for group in references for _ in range(width)) if references else None,
        pictures=None,
        similarity=None,
        features=None,
    )
    ends = np.cumsum(list(map(len, references))).tolist()
    tokens = material.reference_tokens
    groups = [tokens[end - len(group) : end] for end, group in zip(ends, references, strict=True)]
    return _tokenized(flat, material.candidate_tokens, [each for group in groups for each in group * width])


def _column(material: Material, column: int) -> Material:
    """The same images with one candidate each: a run of its own. What was told from the first one is not."""
    candidates = tuple((texts[column],) for texts in material.candidates)
    single = replace(material, candidates=candidates, similarity=None)
    return _tokenized(single, material.candidate_tokens[column :: material.width], material.reference_tokens)


def _tokenized(
    material: Material, candidate_tokens: list[list[str]], reference_tokens: list[list[str]]
) -> Material:
    """Material that need not tokenize again what has been: the same references come with every candidate."""
    vars(material).update(candidate_tokens=candidate_tokens, reference_tokens=reference_tokens)
    return material


def _bleu(material: Material, config: Config) -> Floats:
    def value(candidates: Sentences, references: Sentences) -> Floats:
        return bleu_values(bleu_statistics(candidates, references))

    material.expect_references("BLEU")
    return _in_blocks(material, (material.candidate_words, material.reference_words), value, "BLEU")


def _rouge(material: Material, config: Config) -> Floats:
    material.expect_references("ROUGE-L")
    empty = material.lexicon.number("")
    texts = material.whole_candidates.filled(empty), material.whole_references.filled(empty)
    return _in_blocks(material, texts, rouge_values, "ROUGE-L")


def _cider(material: Material, config: Config) -> Floats:
    assert isinstance(config, CiderConfig)
    material.expect_references("CIDEr")
    frequencies = find_frequencies(material, config.df)
    if isinstance(frequencies, CorpusFrequencies):
        # A block holds the references of some images, and frequencies are those of all.
        frequencies = replace(frequencies, are_references=False)

    def value(candidates: Sentences, references: Sentences) -> Floats:
        pairs = cider_pairs(candidates, references, frequencies)
        return np.stack([pairs.means(pairs.clipped), pairs.means(pairs.plain)], axis=1)

    return _in_blocks(material, (material.candidate_words, material.reference_words), value, "CIDEr")


_AT_ONCE: dict[str, Callable[[Material, Config], Floats]] = {
    "bleu": _bleu,
    "rouge": _rouge,
    "cider": _cider,
}
"""All candidates in one go, by measure; a column for each of its scores, in its order."""


def _in_blocks(
    material: Material,
    texts: tuple[Sentences, Sentences],
    value: Callable[[Sentences, Sentences], Floats],
    what: str,
) -> Floats:
    """Values of all candidates against their references, some images at a time."""
    candidates, references = texts
    size = max(1, _TEXTS // material.width)
    found = []
    for begin in range(0, len(material), size):
        material.watch(f"oracle {what}", begin, len(material))
        some = (begin, begin + size)
        found.append(value(_of_images(candidates, some), _of_images(references, some)))
    material.watch(f"oracle {what}", len(material), len(material))
    return np.concatenate(found)


def _of_images(sentences: Sentences, images: tuple[int, int]) -> Sentences:
    low, high = np.searchsorted(sentences.groups, images).tolist()
    return sentences.take(np.arange(low, high))
