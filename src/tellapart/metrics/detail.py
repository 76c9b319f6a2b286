"""Unsupported detail: the share of a caption's content words that none of the image's references contains.

It is the price of distinctive captions: what tells images apart must also be there. What counts:

- Words are the tokens of the PTB tokenizer that hold a letter or a digit. Every one counts as often as it
  stands in the caption.
- Content words are those not in FUNCTION_WORDS, a closed list of determiners, pronouns, prepositions,
  conjunctions, auxiliaries and adverbs that say nothing by themselves; nor in one of the PHRASES that do the
  work of such words ("in front of"). Number words are content ("two" is a detail), but for "one", which says
  no more than "a".
- A word is supported if a content word of a reference has a lemma in common with it, or a synonym: WordNet
  lists a lemma of both in one set of synonyms, in any part of speech and sense. Words that are more general
  ("animal" for "dog") or only derived ("grassy" for "grass") are not enough.
- Lemmas are WordNet's for nouns, verbs, adjectives and adverbs. A word that WordNet does not have stands for
  itself, with and without its endings.
- How compounds are spelt does not matter: "t-shirt", "tshirt" and "t shirt" are the same, and two words that
  follow one another are also looked up as one: "fire engine" is supported by "firetruck" and by "fire
  truck". A hyphenated word is supported as well if all of its pieces are.

References leave out much that is true, so that human captions have unsupported details too: the measure is
for comparing captions of the same images against the same references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import DetailConfig
from tellapart.metrics.ptb.tokenizer import tokenize, tokenize_all
from tellapart.metrics.score import Floats, Pooled, Score, content_name, signed
from tellapart.metrics.wordnet import VERSION, WordNet, detached, load_wordnet, spelt_as_one

_DETERMINERS = """
    a an the this that these those such what which whatever whichever some any each every either neither no
    all both half several many much more most few fewer less least various numerous multiple other others
    another same own enough one"""
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themself themselves who whom whose ones someone somebody
    something anyone anybody anything everyone everybody everything none nobody nothing"""
_PREPOSITIONS = """
    aboard about above across after against along alongside amid amidst among amongst apart around as at atop
    away before behind below beneath beside besides between beyond by despite down during except for from in
    inside into like near nearby of off on onto out outside over past per since through throughout till to
    together toward towards under underneath until up upon via with within without"""
_CONJUNCTIONS = """
    and or nor but so yet if than then because although though while whilst whereas whether when where how
    why"""
_EMPTY_ADVERBS = """
    there here not n't also too very just only even still ever never again almost quite rather really etc"""
_AUXILIARIES = """
    be am is are was were been being do does did doing done have has had having can could may might must shall
    should will would ca wo let 's 're 've 'll 'm 'd 't gon na"""  # some as the tokenizer cuts them off

FUNCTION_WORDS = frozenset(
    f"{_DETERMINERS}{_PRONOUNS}{_PREPOSITIONS}{_CONJUNCTIONS}{_EMPTY_ADVERBS}{_AUXILIARIES}".split()
)
"""Words that are no detail."""

PHRASES = (
    *("in front of", "on top of", "next to", "close to", "in the middle of", "on the side of"),
    *("in the background", "in the foreground"),
    *("a group of", "a bunch of", "a couple of", "a lot of", "lots of"),
    *("a picture of", "a photo of", "a photograph of", "an image of", "a view of"),
)
"""Words that are no detail when they follow one another: they are a preposition, a quantifier or a frame."""

_BRACKETS = frozenset(f"-{side}{kind}b-" for side in "lr" for kind in "rsc")  # as the tokenizer writes them
_PHRASE = re.compile(rf"(?<!\S)(?:{'|'.join(PHRASES)})(?!\S)")
_PHRASE_WORDS = frozenset(" ".join(PHRASES).split()) - FUNCTION_WORDS


def build_detail(config: DetailConfig) -> Metric:
    """The measure as it is registered."""
    return detail


def detail(material: Material) -> list[Score]:
    """The share of unsupported content words: in each image's caption, and in all of them."""
    references = material.expect_references("unsupported detail")
    matcher = Matcher(load_wordnet())
    statistics = np.zeros((len(material), 2))
    tokens = iter(material.reference_tokens)
    for row, caption in enumerate(material.caption_tokens):
        supporting = [next(tokens) for _ in references[row]]
        statistics[row] = len(matcher.unsupported(caption, supporting)), len(content_words(caption))
        if row % 500 == 499 or row + 1 == len(material):
            material.watch("looking up details", row + 1, len(material))
    lists = content_name(*sorted(FUNCTION_WORDS), *PHRASES)
    signature = signed(
        material.base_signature | {"wordnet": VERSION, "match": "lemma+synonym", "lists": lists}
    )
    each, corpus = _share(statistics), float(_share(statistics.sum(axis=0)))
    pooled = Pooled(statistics, _share)
    return [Score("Unsupported-detail", corpus, signature, each, pooled, _notes(statistics))]


def unsupported_words(caption: str, references: Sequence[str]) -> list[str]:
    """The content words of a caption that no reference contains, in their order, as tokens."""
    return Matcher(load_wordnet()).unsupported(tokenize(caption), tokenize_all(list(references)))


def content_words(tokens: Sequence[str]) -> list[str]:
    """The tokens that are neither punctuation nor function words."""
    return [word for run in _runs(tokens) for word in run]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Tells which words of a caption its references contain, and remembers what it has looked up."""

    wordnet: WordNet
    meanings: dict[str, frozenset[str]] = field(default_factory=dict)
    mentions: dict[str, frozenset[str]] = field(default_factory=dict)

    def unsupported(self, caption: Sequence[str], references: Sequence[Sequence[str]]) -> list[str]:
        """The content words of a tokenized caption that no tokenized reference contains, in their order."""
        support: set[str] = set()
        for reference in references:
            for run in _runs(reference):
                support.update(*map(self._mentions, run), *map(self._meanings, _pairs(run)))
        return [word for run in _runs(caption) for word in self._missing(run, support)]

    def _missing(self, run: Sequence[str], support: set[str]) -> Iterator[str]:
        """The words of a run of content words that have no support, neither alone nor with a neighbour."""
        compounds = [not support.isdisjoint(self._meanings(pair)) for pair in _pairs(run)]
        for word, before, after in zip(run, [False, *compounds], [*compounds, False], strict=True):
            if not (before or after or self._is_supported(word, support)):
                yield word

    def _is_supported(self, word: str, support: set[str]) -> bool:
        if not support.isdisjoint(self._meanings(word)):
            return True
        pieces = _pieces(word)
        return bool(pieces) and all(not support.isdisjoint(self._meanings(piece)) for piece in pieces)

    def _meanings(self, unit: str) -> frozenset[str]:
        """What a word, or two words with a blank between, may stand for: lemmas and sets of synonyms."""
        found = self.meanings.get(unit)
        if found is None:
            found = self.meanings[unit] = frozenset(self._looked_up(unit))
        return found

    def _mentions(self, word: str) -> frozenset[str]:
        """All that is there where a reference has this word: its meanings and those of its pieces."""
        found = self.mentions.get(word)
        if found is None:
            found = self._meanings(word).union(*map(self._meanings, _pieces(word)))
            self.mentions[word] = found
        return found

    def _looked_up(self, unit: str) -> Iterator[str]:
        form = spelt_as_one(unit)
        yield form
        known = self.wordnet.lemmas(form)
        yield from known
        for senses in known.values():
            yield from senses
        if not known:
            yield from detached(form, "noun")
            yield from detached(form, "verb")


def _runs(tokens: Sequence[str]) -> list[list[str]]:
    """Content words that follow one another with nothing between them."""
    runs: list[list[str]] = [[]]
    for token in _without_phrases(tokens):
        if _is_content(token):
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


@lru_cache(maxsize=1 << 16)
def _is_content(token: str) -> bool:
    return token not in FUNCTION_WORDS and any(map(str.isalnum, token)) and token not in _BRACKETS


def _without_phrases(tokens: Sequence[str]) -> Sequence[str]:
    """The tokens, with a dot in the place of each phrase that is no detail."""
    if _PHRASE_WORDS.isdisjoint(tokens):
        return tokens
    return _PHRASE.sub(".", " ".join(tokens)).split(" ")


def _pairs(run: Sequence[str]) -> list[str]:
    """Every two words that follow one another, with a blank between."""
    return [f"{one} {other}" for one, other in pairwise(run)]


def _pieces(word: str) -> list[str]:
    """The content words that a hyphenated word is made of; none of a plain word."""
    pieces = re.split(r"[-/]", word)
    return list(filter(_is_content, pieces)) if len(pieces) > 1 else []


def _share(sums: Floats) -> Floats:
    """Unsupported words by content words: (…, 2) -> (…); of no content words, none is unsupported."""
    return np.asarray(sums[..., 0] / np.maximum(1, sums[..., 1]))


def _notes(statistics: Floats) -> tuple[str, ...]:
    empty = int((statistics[:, 1] == 0).sum())
    if not empty:
        return ()
    verb = "captions have no content word: their" if empty > 1 else "caption has no content word: its"
    return (f"{empty} {verb} share of unsupported detail is 0",)
