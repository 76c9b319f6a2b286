"""How much the captions of a whole set differ from one another and from those that were trained on.

The measures of Lindh et al. 2018, Section 2.1: texts are compared as their tokens. SMILE's lexical diversity
is the vocabulary in thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import DiversityConfig
from tellapart.metrics.score import Score, mean_score, signed


def build_diversity(config: DiversityConfig) -> Metric:
    """The measure as it is registered."""
    return diversity


def diversity(material: Material) -> list[Score]:
    """Distinct and novel captions, vocabulary and length, of one caption an image.

    Novelty needs the training captions and is left out where there are none.
    """
    texts = spelt(material.caption_tokens)
    words = material.caption_words
    signature = signed({"tokenizer": "ptb", "captions": "first"})
    found = [
        Score("Distinct", len(set(texts)) / len(texts), signature),
        Score("Vocabulary", float(np.unique(words.words).size), signature),
        mean_score("Length", words.lengths.astype(np.float64), signature),
    ]
    if material.training is not None:
        known = training_texts(material)
        novel = [text not in known for text in texts]
        found.insert(1, mean_score("Novel", novel, f"{signature}|{training_signature(material)}"))
    return found


def spelt(tokens: Sequence[Sequence[str]]) -> list[str]:
    """Tokenized texts as they are compared: equal if all their tokens are."""
    return list(map(" ".join, tokens))


def training_texts(material: Material) -> frozenset[str]:
    """The training captions as they are compared."""
    return frozenset(spelt(material.training_tokens))


def training_signature(material: Material) -> str:
    """What novelty was told from."""
    return signed({"train": material.training_name})
