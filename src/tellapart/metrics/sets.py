"""How much the candidates of one image differ from one another.

Div-n is the number of distinct n-grams of an image over the number of its *words*, whatever n (Shetty et al.
2017); distinct and novel candidates within an image are those of Lindh et al. 2018, Table 2: a novel text
that is said twice counts twice. As all images have the same number of candidates, the mean of the latter over
images is also the share of all candidates that are novel.
"""

from __future__ import annotations

import numpy as np

from tellapart.errors import TellapartError
from tellapart.metrics.bleu import ORDERS
from tellapart.metrics.diversity import spelt, training_signature, training_texts
from tellapart.metrics.lsa import lsa
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.overlap import Candidates
from tellapart.metrics.parts import SetsConfig
from tellapart.metrics.score import Score, mean_score, signed
from tellapart.metrics.self_bleu import self_bleu
from tellapart.metrics.self_cider import choose_frequencies, self_cider
from tellapart.metrics.sentences import count_ngrams, runs

_SMALL = 1e-6  # added to the number of words, so that a set of empty texts has a Div-n: 0


def build_sets(config: SetsConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: sets(material, config)


def sets(material: Material, config: SetsConfig) -> list[Score]:
    """All measures of the candidates of each image, which must be several and as many for every image."""
    width = expect_several(material, "diversity within an image")
    frequencies, corpora = choose_frequencies(material, config.df)
    orders = count_ngrams(corpora, orders=ORDERS)
    rarities = [
        np.log(frequencies.documents) - np.log(np.maximum(1.0, documents))
        for documents in frequencies.documents_with(orders)
    ]
    candidates = Candidates(material.candidate_words, width, [order.corpora[0] for order in orders])
    signature = signed({"tokenizer": "ptb", "candidates": width})
    return [
        *_distinct_ngrams(candidates, signature),
        *self_bleu(candidates, signature, material.watch),
        *self_cider(candidates, rarities, f"{signature}|df:{frequencies.name}", material.watch),
        lsa(candidates, signature, material.watch),
        *_distinct_texts(material, width, signature),
    ]


def expect_several(material: Material, metric: str) -> int:
    """How many candidates every image has, or an error if it is one."""
    if material.width < 2:
        raise TellapartError(
            f"{metric} needs several candidates an image",
            hint="give each image a list of captions under 'candidates'",
        )
    return material.width


def _distinct_ngrams(candidates: Candidates, signature: str) -> list[Score]:
    """Div-1 and Div-2 of each image; vocabulary and Div-2 of all candidates together."""
    words = candidates.lengths.sum(axis=1)
    found = []
    for order in (1, 2):
        grams = candidates.orders[order - 1]
        image = grams.sentence // candidates.width
        keys, _ = runs(np.sort(image * grams.kinds + grams.gram))
        distinct = np.bincount(keys // grams.kinds, minlength=len(candidates))
        found.append(mean_score(f"Div-{order}", distinct / (words + _SMALL), f"{signature}|per:words"))
    bigrams = np.unique(candidates.orders[1].gram).size
    return [
        *found,
        Score("gDiv-2", float(bigrams / (words.sum() + _SMALL)), f"{signature}|per:words"),
        Score("Vocabulary-all", float(np.unique(candidates.words.words).size), signature),
    ]


def _distinct_texts(material: Material, width: int, signature: str) -> list[Score]:
    """Distinct and novel candidates. Novelty needs the training captions and is left out without them."""
    texts = spelt(material.candidate_tokens)
    distinct = [len(set(texts[begin : begin + width])) / width for begin in range(0, len(texts), width)]
    found = [
        mean_score("Distinct-within", distinct, signature),
        Score("Distinct-all", len(set(texts)) / len(texts), signature),
    ]
    if material.training is not None:
        known = training_texts(material)
        novel = np.array([text not in known for text in texts]).reshape(-1, width).mean(axis=1)
        found.append(mean_score("Novel-within", novel, f"{signature}|{training_signature(material)}"))
    return found
