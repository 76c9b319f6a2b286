"""All that training needs, checked and loaded before the first step: data, pictures, captioner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from tellapart.captioners.folder import (
    CaptionerSettings,
    Decoding,
    SavedCaptioner,
    build_captioner,
    describe_captioner,
    load_captioner,
    read_settings,
)
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioning import find_captioner
from tellapart.corpus import Corpus, Pool, Watch, build_corpus, with_views
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe import Recipe
from tellapart.sources import Source, known_captions, read_sources, split_of
from tellapart.types import AnyCaptioner
from tellapart.vision.encoder import traits_of
from tellapart.vision.features import in_order
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class Ready:
    """A captioner to train, and what to train and validate it on."""

    saved: SavedCaptioner
    train_set: Corpus
    val_set: Corpus


def prepare(recipe: Recipe, *, watch: Watch) -> Ready:
    """Read the data, see every picture, build the captioner."""
    sources = read_sources(recipe.data, seed=recipe.seed)
    encoder = load_encoder(recipe.encoder.name)
    traits = traits_of(encoder)
    to_train = [source.split("train") for source in sources]
    captioner = _captioner(recipe, to_train, traits)
    settings = describe_captioner(
        captioner,
        section=recipe.captioner,
        traits=traits,
        decoding=Decoding(**recipe.decoding.model_dump()),
    )
    others = [load_beside(name, settings) for name in named_captioners(recipe)]
    settings = settings.model_copy(update={"taught_by": _teachers(recipe, others)})
    _refuse_blind(recipe, captioner, to_train)
    _refuse_uncaptioned(recipe, to_train)
    train_examples = [example for source in to_train for example in source.examples]
    split_of(train_examples, "train")  # there must be some
    val_examples = split_of(sources[0].examples, "val")
    both = build_corpus(
        [*train_examples, *val_examples],
        text=captioner.text,
        rules=recipe.data.rules(),
        encoder=encoder,
        parts=in_order(captioner.needs.union(*(beside.captioner.needs for beside in others))),
        watch=watch,
    )
    _refuse_long(recipe, captioner, both)
    count = len(train_examples)
    train_set = replace(both.rows(0, count), pools=pools_of(to_train))
    train_set = with_views(train_set, encoder, count=recipe.encoder.views, watch=watch)
    return Ready(SavedCaptioner(captioner, settings), train_set, both.rows(count, len(both.examples)))


def _captioner(recipe: Recipe, sources: Sequence[Source], traits: EncoderTraits) -> AnyCaptioner:
    """Untrained, or with the weights and words of the one to start from."""
    name, config = recipe.part("captioner")
    torch.manual_seed(recipe.seed)
    if recipe.training.start_from:
        return _started(recipe, traits)
    text = None
    if not CAPTIONERS.get(name).own_text:
        text = _words(recipe, sources)
    return build_captioner(name, config, text=text, traits=traits)


def _words(recipe: Recipe, sources: Sequence[Source]) -> WordText:
    """Those of the captioner that the recipe names for it, or those of the captions."""
    if not recipe.training.words_of:
        return WordText.build(known_captions(recipe.data, sources), recipe.data.rules())
    folder = find_captioner(recipe.training.words_of)
    text = load_captioner(folder).captioner.text
    if not isinstance(text, WordText):
        raise TellapartError(
            f"training.words_of: {folder} reads no whole words, but what its own tokenizer makes of them",
            hint="name a captioner that was trained here on words",
        )
    return text


def _started(recipe: Recipe, traits: EncoderTraits) -> AnyCaptioner:
    folder = find_captioner(recipe.training.start_from)
    name, config = recipe.part("captioner")
    try:
        saved = load_captioner(folder)
    except TellapartError as error:
        raise TellapartError(f"training.start_from: {error.problem}", hint=error.hint) from error
    kind = saved.settings.captioner["name"]
    if kind != name:
        raise TellapartError(
            f"training.start_from: {folder} is a {kind!r}, the recipe's a {name!r}",
            hint="set captioner.name to the same",
        )
    before = saved.settings.encoder
    if before.identity != traits.identity:
        raise TellapartError(
            f"training.start_from: {folder} looks through {_in_short(before)}, not {_in_short(traits)}",
            hint=f"set encoder.name to {before.name}",
        )
    own = saved.captioner.text
    captioner = build_captioner(name, config, text=own if isinstance(own, WordText) else None, traits=traits)
    try:
        captioner.load_state_dict(saved.captioner.state_dict())
    except RuntimeError as error:
        raise TellapartError(
            f"training.start_from: {folder} is a {name!r} of other sizes than the recipe's",
            hint=f"give [captioner] the settings that stand in {folder / 'config.json'}",
        ) from error
    return captioner


def _teachers(recipe: Recipe, others: Sequence[SavedCaptioner]) -> tuple[str, ...]:
    """Retrievers that taught the captioner to start from, or those that it learns from or beside."""
    before = [each.settings for each in others]
    if recipe.training.start_from:
        before.insert(0, read_settings(find_captioner(recipe.training.start_from)))
    return tuple(dict.fromkeys(teacher for settings in before for teacher in settings.taught_by))


def named_captioners(recipe: Recipe) -> list[str]:
    """Names or folders of all other captioners that the objective wants to use."""
    sections, found = [recipe.objective], list[str]()
    while sections:
        section = sections.pop()
        for key in OBJECTIVES.get(section["name"]).captioners:
            value = section[key]
            found += value if isinstance(value, list) else [str(value)]
        sections += section.get("parts", []) if section["name"] == "mix" else []
    return [name for name in dict.fromkeys(found) if name]


def load_beside(name: str, settings: CaptionerSettings) -> SavedCaptioner:
    """A captioner to use beside another in training: both must read the same words and the same pictures."""
    saved = load_captioner(find_captioner(name))
    if saved.settings.fingerprint != settings.fingerprint:
        raise TellapartError(
            f"{name}: this captioner has another vocabulary than the one that is trained",
            hint="train one with the words of the other (training.words_of), or start both from one",
        )
    before = saved.settings.encoder
    if before.identity != settings.encoder.identity:
        raise TellapartError(
            f"{name}: this captioner looks through {_in_short(before)}, "
            f"the one that is trained through {_in_short(settings.encoder)}",
            hint="take one that was trained with the same encoder",
        )
    return saved


def _refuse_long(recipe: Recipe, captioner: AnyCaptioner, corpus: Corpus) -> None:
    """Captions that the captioner cannot read, to train on or to write."""
    if captioner.longest is None:
        return
    lengths = [max(map(len, group), default=1) - 1 for group in corpus.captions]  # the end sign is not read
    if max(lengths) > captioner.longest:
        where = corpus.examples[lengths.index(max(lengths))].where
        raise TellapartError(
            f"{where}: a caption of {max(lengths)} tokens, and the captioner reads {captioner.longest}",
            hint="cut captions with data.max_words",
        )
    if recipe.decoding.max_words + 1 > captioner.longest:
        raise TellapartError(
            f"decoding.max_words is {recipe.decoding.max_words}, and the captioner writes "
            f"{captioner.longest - 1} tokens at the most",
            hint="lower decoding.max_words",
        )


def _in_short(traits: EncoderTraits) -> str:
    return f"{traits.identity} (grid {traits.shapes.get('grid')}, pooled {traits.shapes.get('pooled')})"


def _refuse_blind(recipe: Recipe, captioner: AnyCaptioner, sources: Sequence[Source]) -> None:
    """Captions without pictures teach nothing to a captioner that needs the picture and nothing else."""
    blind = [source for source in sources for example in source.examples[:1] if not example.pictured]
    if blind and captioner.needs and "classes" not in captioner.needs:
        raise TellapartError(
            f"{blind[0].examples[0].where}: captions without pictures, but the captioner "
            f"{recipe.captioner['name']!r} is given no concept words to learn them by",
            hint="set captioner.concepts (of adaptive, topdown, transformer, meshed), or drop that source",
        )


def _refuse_uncaptioned(recipe: Recipe, sources: Sequence[Source]) -> None:
    """Photographs without captions teach nothing to an objective that learns from captions alone."""
    bare = [example for source in sources for example in source.examples if not example.captions]
    name, config = recipe.part("objective")
    if bare and not OBJECTIVES.get(name).without_captions(config):
        raise TellapartError(
            f"{bare[0].where}: photographs without captions, and the objective {name!r} learns from captions",
            hint="take specificity, or reward with self-retrieval or clipscore (alone or in a mix), "
            "or drop that source from data.extra",
        )


def pools_of(sources: Sequence[Source]) -> list[Pool]:
    """Which rows an epoch draws from, where the examples of all sources stand behind one another."""
    pools, first = [], 0
    for source in sources:
        last = first + len(source.examples)
        if last > first:
            pools.append(Pool(first, last, source.per_epoch))
        first = last
    return pools
