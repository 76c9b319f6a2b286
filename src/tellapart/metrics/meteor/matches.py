"""All matches between two texts as METEOR's four modules find them, in functions that are compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.meteor.extras import compiled
from tellapart.metrics.meteor.packing import EXACT, PARAPHRASE, STEM, Longs, grown, packed
from tellapart.metrics.meteor.words import Ints


class Lexicon(NamedTuple):
    """What is known of each distinct word of the texts."""

    exact: Ints  # keys: equal for words that are the same
    stem: Ints  # keys: equal for words of one stem
    function: NDArray[np.bool_]
    synset_starts: Ints
    synsets: Ints  # ascending within a word


class Texts(NamedTuple):
    """All texts end to end, and the phrases of the paraphrase table that occur in them."""

    starts: Ints  # (texts + 1,)
    words: Ints
    phrase_starts: Ints  # (texts + 1,)
    positions: Ints
    lengths: Ints
    phrases: Ints
    again: Ints  # the next occurrence of the same phrase in the same text, or -1


class Table(NamedTuple):
    """The paraphrases of each phrase that occurs, as far as they occur themselves, in the table's order."""

    starts: Ints
    values: Ints


@compiled
def _share_synset(lexicon: Lexicon, one: int, two: int) -> bool:
    here, there = lexicon.synset_starts[one], lexicon.synset_starts[two]
    end_here, end_there = lexicon.synset_starts[one + 1], lexicon.synset_starts[two + 1]
    while here < end_here and there < end_there:
        difference = lexicon.synsets[here] - lexicon.synsets[there]
        if difference == 0:
            return True
        if difference < 0:
            here += 1
        else:
            there += 1
    return False


@compiled
def _words_match(lexicon: Lexicon, module: int, one: int, two: int) -> bool:
    same = lexicon.exact[one] == lexicon.exact[two]
    if module == EXACT or same:
        return bool(same and module == EXACT)
    if module == STEM:
        return bool(lexicon.stem[one] == lexicon.stem[two])
    return _share_synset(lexicon, one, two)


@compiled
def _word_matches(lexicon: Lexicon, candidate: Ints, reference: Ints, modules: int) -> Longs:
    """Matches of word with word by the first modules, one after the other."""
    found = np.empty(64, np.int64)
    count = 0
    for module in range(min(modules, PARAPHRASE)):
        for start in range(len(reference)):
            for other in range(len(candidate)):
                if _words_match(lexicon, module, candidate[other], reference[start]):
                    found = grown(found, count)
                    found[count] = packed(start, other, 1, 1, module)
                    count += 1
    return found[:count]


@compiled
def _phrase_matches(texts: Texts, table: Table, heads: Ints, source: int, forward: bool) -> Longs:
    """Phrases of one text whose paraphrases occur in the other, whose first occurrences are the heads.

    The source is the reference if forward, and the candidate otherwise.
    """
    found = np.empty(64, np.int64)
    count = 0
    for place in range(texts.phrase_starts[source], texts.phrase_starts[source + 1]):
        phrase = texts.phrases[place]
        for entry in range(table.starts[phrase], table.starts[phrase + 1]):
            there = heads[table.values[entry]]
            while there >= 0:
                found = grown(found, count)
                one, two = (place, there) if forward else (there, place)
                found[count] = packed(
                    texts.positions[one],
                    texts.positions[two],
                    texts.lengths[one],
                    texts.lengths[two],
                    PARAPHRASE,
                )
                count += 1
                there = texts.again[there]
    return found[:count]


@compiled
def _set_heads(heads: Ints, texts: Texts, text: int, clear: bool) -> None:
    """Note where each phrase of the text occurs first, or forget it again."""
    for place in range(texts.phrase_starts[text + 1] - 1, texts.phrase_starts[text] - 1, -1):
        heads[texts.phrases[place]] = -1 if clear else place


@compiled
def all_matches(
    texts: Texts, table: Table, lexicon: Lexicon, heads: Ints, pair: tuple[int, int], modules: int
) -> Longs:
    """The matches of a pair (candidate, reference) in the jar's order; heads are -1 before and after."""
    one, two = pair
    candidate = texts.words[texts.starts[one] : texts.starts[one + 1]]
    reference = texts.words[texts.starts[two] : texts.starts[two + 1]]
    # Of equal texts only exact matches are looked for: others could lead the beam astray.
    if _same(lexicon, candidate, reference):
        return _word_matches(lexicon, candidate, reference, 1)
    found = _word_matches(lexicon, candidate, reference, modules)
    if modules > PARAPHRASE:
        _set_heads(heads, texts, one, False)
        forward = _phrase_matches(texts, table, heads, two, True)
        _set_heads(heads, texts, one, True)
        _set_heads(heads, texts, two, False)
        backward = _phrase_matches(texts, table, heads, one, False)
        _set_heads(heads, texts, two, True)
        found = np.concatenate((found, forward, backward))
    return found


@compiled
def _same(lexicon: Lexicon, one: Ints, two: Ints) -> bool:
    same = len(one) == len(two)
    place = 0
    while same and place < len(one):
        same = lexicon.exact[one[place]] == lexicon.exact[two[place]]
        place += 1
    return same
