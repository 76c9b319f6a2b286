"""m-RNN's retrieval tables: pictures look for their sentences, and sentences for their picture.

Both ways a rank is that of the first right answer, and a tie counts against it. A picture's other captions
are no competitors of its best one (m-RNN, section 7.2: "the first retrieved groundtruth"; so also VSE++). A
sentence that another picture has as well ties with its copy there, which is a wrong answer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float
from tellapart.captioners.folder import SavedCaptioner
from tellapart.captioning import load
from tellapart.corpus import as_vision
from tellapart.data.examples import Example
from tellapart.data.text import words
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.metrics.retrieval import median_rank, ranks, recall, sentence_ranks
from tellapart.metrics.sentences import Ints
from tellapart.model_folder import CONFIG
from tellapart.recipe import Experiment, built_in_recipes, load_experiment
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.likelihood.captioner_scores import Likelihood
from tellapart.retrievers.likelihood.normalised import log_marginal, perplexity_ratio, pointwise_information
from tellapart.retrievers.loading import SHIPPED, TOWERS, load_retriever
from tellapart.run import Run
from tellapart.sources import by_hash, read_examples, split_of

AT = (1, 5, 10)  # the paper's
SAMPLES = 100  # training pictures that Eq. 7 sums over; the paper does not say how many it took
PLAIN, EQ7, PMI = "plain", "eq7", "pmi"
MEAN_IMAGE, MEAN_IMAGE_PER_WORD = "mean-image", "mean-image-per-word"
NORMALISATIONS = (PLAIN, EQ7, PMI, MEAN_IMAGE, MEAN_IMAGE_PER_WORD)

Watch = Callable[[str, int, int], None]  # what is being done, and how many of how many are
Matrix = Float[np.ndarray, "captions pictures"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be looked for, and how sentences are to be ranked."""

    split: str = "test"
    images: int | None = None  # so many of the split, always the same; None: all
    normalise: tuple[str, ...] = (PLAIN,)
    samples: int = SAMPLES
    seed: int = 0  # of the samples
    language_model: str | None = None  # whose p(c) PMI divides by; None: that of Eq. 7


@dataclass(frozen=True, slots=True)
class Found:
    """The ranks of one kind of question, counted from 0."""

    asked: str  # "image-to-sentence" or "sentence-to-image"
    normalisation: str
    ranks: Ints
    pool: int  # how many answers there are

    def to_json(self) -> dict[str, Any]:
        """Recalls as shares; the median rank counted from 1."""
        recalls = {f"R@{k}": recall(self.ranks, k) for k in AT}
        return {
            "direction": self.asked,
            "normalisation": self.normalisation,
            **recalls,
            "median_rank": median_rank(self.ranks, ranks_from=1),
            "pool": self.pool,
        }


@dataclass(frozen=True, slots=True)
class Tables:
    """What was found both ways, and what to know about it."""

    retriever: str  # its identity
    split: str
    images: int
    captions: int
    found: tuple[Found, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "retriever": self.retriever,
            "split": self.split,
            "images": self.images,
            "captions": self.captions,
            "tables": [each.to_json() for each in self.found],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Field:
    """Pictures with their captions, and the pictures that were trained on."""

    pictures: Sequence[Path]
    captions: Sequence[str]  # as they were written
    own: Ints  # the picture of each caption
    training: Sequence[Path]


def retrieve(name: str, wish: Wish, *, watch: Watch, recipe: Experiment | None = None) -> Tables:
    """Rank sentences for each picture of a split, and its pictures for each sentence.

    Args:
        name: a run, of a captioner or a retriever; or, where a recipe is given, any captioner or retriever by
            the name that `load` or `load_retriever` takes. The name of a recipe stands for its run in runs/.
        wish: what to look for.
        watch: told what is being done, and how much of it is.
        recipe: whose data it is; the run's own if None.
    """
    for normalisation in wish.normalise:
        if normalisation not in NORMALISATIONS:
            raise TellapartError(
                f"scores cannot be normalised by {normalisation!r}",
                hint=f"there are: {', '.join(NORMALISATIONS)}",
            )
    if wish.language_model is not None and PMI not in wish.normalise:
        raise TellapartError(
            "a language model is only asked for PMI", hint=f"add --normalise {PMI}, or leave it out"
        )
    if recipe is None:
        name = find_run(name)
        recipe = _own_recipe(name)
    field = _field(recipe, wish)
    if is_retriever(name):
        return _by_retriever(name, field, wish, watch)
    rules = recipe.data.rules()
    spoken = [" ".join(words(caption, rules)) for caption in field.captions]
    return _by_likelihood(load_likelihood(name), replace(field, captions=spoken), wish, watch)


def load_likelihood(name: str | os.PathLike[str]) -> Likelihood:
    """A captioner, by any name that `tellapart.load` takes, that scores sentences for pictures."""
    describer = load(name)
    identity = f"likelihood@{_digest(describer.saved)}"
    return Likelihood(str(name), identity, describer.saved.captioner, describer.encoder, as_vision)


def find_run(name: str) -> str:
    """The run in runs/ of a recipe, where a name is that of a recipe and of nothing nearer."""
    path = Path(name)
    is_file = path.suffix == ".toml" and path.is_file()
    is_bare = path.name == name and ":" not in name and name not in SHIPPED
    if path.is_dir() or not (is_file or is_bare):
        return name
    run = Path("runs") / path.name.removesuffix(".toml")
    if Run(run).recipe.exists():
        return str(run)
    if is_file or name in built_in_recipes():
        raise TellapartError(
            f"{run}: the recipe {name} was not trained here", hint=f"first: tellapart train {name}"
        )
    return name


def is_retriever(name: str) -> bool:
    """Whether a name is that of a retriever; what is not is left to who loads captioners."""
    kind, colon, _ = name.partition(":")
    if name in SHIPPED or (colon and kind in TOWERS) or Run(Path(name)).retriever.is_dir():
        return True
    try:
        settings = json.loads((Path(name) / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and "retriever" in settings


def _digest(saved: SavedCaptioner) -> str:
    digest = hashlib.sha256(saved.settings.model_dump_json().encode())
    for key, weights in sorted(saved.captioner.state_dict().items()):
        digest.update(key.encode())
        digest.update(weights.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _own_recipe(name: str) -> Experiment:
    run = Run(Path(name))
    if not run.recipe.exists():
        raise TellapartError(
            f"{name}: no run here",
            hint="name a folder that 'tellapart train' wrote, or say with --recipe whose data to look in",
        )
    return load_experiment(str(run.recipe)).located(run.stages)


def _field(recipe: Experiment, wish: Wish) -> Field:
    everything = read_examples(recipe.data, seed=recipe.seed)
    pictured = [example for example in everything if example.pictured and example.captions]
    chosen: Sequence[Example] = split_of(pictured, wish.split)
    if wish.images is not None:
        chosen = by_hash(chosen)[: wish.images]
    return Field(
        [example.path for example in chosen],
        [caption for example in chosen for caption in example.captions],
        np.repeat(np.arange(len(chosen)), [len(example.captions) for example in chosen]),
        [example.path for example in pictured if example.split == "train"],
    )


def _by_retriever(name: str, field: Field, wish: Wish, watch: Watch) -> Tables:
    for normalisation in wish.normalise:
        if normalisation != PLAIN:
            raise TellapartError(
                f"{name} is a retriever: there is nothing that {normalisation!r} could divide its cosines by",
                hint="leave out --normalise",
            )
    retriever = load_retriever(name)
    placed = retriever.embed_images(field.pictures, watch=partial(watch, "placing pictures"))
    scores = dot_products(retriever.embed_texts(field.captions), placed)
    notes = retriever.notes(field.captions)
    return _tables(retriever.identity, field, wish, {PLAIN: scores}, plain=scores, notes=notes)


def _by_likelihood(likelihood: Likelihood, field: Field, wish: Wish, watch: Watch) -> Tables:
    normalise = _Normalise(likelihood, field, wish, watch)
    for normalisation in wish.normalise:
        normalise.expect(normalisation)  # before the long work
    likelihood.look(field.pictures, watch=partial(watch, "looking at pictures"))
    plain = likelihood.scores(field.captions, field.pictures, watch=partial(watch, "scoring pairs"))
    scores = {each: normalise(each, plain) for each in dict.fromkeys(wish.normalise)}
    notes = [*_strange_words(likelihood, field), *normalise.notes()]
    return _tables(likelihood.identity, field, wish, scores, plain=plain, notes=notes)


@dataclass(frozen=True, slots=True)
class _Normalise:
    """From plain scores to those by which a picture ranks sentences."""

    likelihood: Likelihood
    field: Field
    wish: Wish
    watch: Watch

    def expect(self, normalisation: str) -> None:
        """An error where what it takes is not there."""
        if self.by_language_model(normalisation):
            self.language_model()
        elif normalisation != PLAIN and not self.field.training:
            raise TellapartError(
                f"{normalisation} needs pictures that were trained on, and the data set has none",
                hint="leave out --normalise, or name a recipe whose data has some with --recipe",
            )

    def __call__(self, normalisation: str, plain: Matrix) -> Matrix:
        """By one of NORMALISATIONS."""
        captions = self.field.captions
        if normalisation == PLAIN:
            return plain
        if self.by_language_model(normalisation):
            return pointwise_information(plain, self.language_model().scores_of_nothing(captions))
        if normalisation in (EQ7, PMI):
            return pointwise_information(plain, log_marginal(self.sampled_scores()))
        self.look(self.field.training)
        of_mean = self.likelihood.scores_of_mean(captions, self.field.training)
        if normalisation == MEAN_IMAGE:
            return pointwise_information(plain, of_mean)
        return perplexity_ratio(plain, of_mean, self.likelihood.lengths(captions))

    def by_language_model(self, normalisation: str) -> bool:
        """Whether a language model is asked for p(c)."""
        return normalisation == PMI and self.wish.language_model is not None

    def language_model(self) -> Likelihood:
        """The one that was named: it must know the same words."""
        name = str(self.wish.language_model)
        model = load_likelihood(find_run(name))
        model.expect_blind()
        if model.captioner.text.fingerprint != self.likelihood.captioner.text.fingerprint:
            raise TellapartError(
                f"{name}: knows other words than {self.likelihood.name}",
                hint="name a language model that was trained with the same vocabulary",
            )
        return model

    def sampled_scores(self) -> Float[np.ndarray, "captions samples"]:
        """For the sum of Eq. 7: the scores of some pictures that were trained on."""
        training = self.field.training
        places = np.random.default_rng(self.wish.seed).permutation(len(training))[: self.wish.samples]
        sampled = [training[place] for place in places]
        self.look(sampled)
        watch = partial(self.watch, "scoring pairs with training pictures")
        return self.likelihood.scores(self.field.captions, sampled, watch=watch)

    def look(self, pictures: Sequence[Path]) -> None:
        """At pictures that were trained on."""
        self.likelihood.look(pictures, watch=partial(self.watch, "looking at training pictures"))

    def notes(self) -> list[str]:
        """What there is to know about them."""
        samples, notes = min(self.wish.samples, len(self.field.training)), []
        by_own = [
            each for each in self.wish.normalise if each in (EQ7, PMI) and not self.by_language_model(each)
        ]
        if by_own:
            notes.append(f"p(c) of {' and '.join(by_own)} is the mean over {samples} training pictures")
        if len(by_own) == 2:
            notes.append("pmi is then Eq. 7; it differs by the p(c) of a --language-model")
        return notes


def _strange_words(likelihood: Likelihood, field: Field) -> list[str]:
    """How many words the captioner does not know, where it has a vocabulary."""
    text = likelihood.captioner.text
    if not isinstance(text, WordText):
        return []
    tokens = [token for caption in field.captions for token in text.encode(caption)[1:-1]]
    strange = tokens.count(text.vocabulary.unknown)
    note = f"{strange} of {len(tokens)} words are not known to it and scored as the unknown word"
    return [note] * bool(strange)


def _tables(
    identity: str,
    field: Field,
    wish: Wish,
    scores: Mapping[str, Matrix],
    *,
    plain: Matrix,
    notes: Sequence[str],
) -> Tables:
    captions, pictures = plain.shape
    found = [
        Found("image-to-sentence", normalisation, sentence_ranks(matrix, field.own), captions)
        for normalisation, matrix in scores.items()
    ]
    # For a sentence nothing is normalised: what is taken off would be the same for all pictures.
    found.append(Found("sentence-to-image", PLAIN, ranks(plain, field.own), pictures))
    sure = [
        f"R@{k} of {each.asked} is 1 whatever the scores: there are no more than {each.pool} answers"
        for each in (found[0], found[-1])
        for k in AT
        if k >= each.pool
    ]
    return Tables(identity, wish.split, pictures, captions, tuple(found), (*notes, *sure))
