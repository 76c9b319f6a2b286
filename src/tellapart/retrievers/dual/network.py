"""The dual encoder as it is trained: features of a picture and a read sentence, each to a vector.

Retrieval by it runs without torch: see `runtime.py`, which must agree with this to the last digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tellapart.arrays import Bool, Float
from tellapart.data.word_text import WordText
from tellapart.foreign.glove import glove_vectors
from tellapart.retrievers.dual.minilm_sentences import MiniLmSentences
from tellapart.retrievers.dual.sentences import BiLstm, Read, SentenceEncoder
from tellapart.retrievers.settings import DualConfig
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits


class DualEncoder(nn.Module):
    """Pictures and sentences on one unit sphere.

    `image_vectors` and `sentence_vectors` are the same before they are scaled to length 1, for those who want
    the dot product to differ from the cosine.
    """

    def __init__(self, config: DualConfig, sentences: SentenceEncoder, traits: EncoderTraits) -> None:
        super().__init__()
        self.needs = frozenset({"pooled", "classes"} if config.classes else {"pooled"})
        self.sentences = sentences
        self.pooled = nn.Linear(traits.pooled(), config.width)
        self.classes = nn.Linear(traits.classes(), config.width) if config.classes else None
        self.project = nn.Linear(sentences.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def image_vectors(self, vision: Vision) -> Float[Tensor, "b d"]:
        """From the pooled feature, scaled to mean 0 and variance 1, and the probabilities of classes."""
        pooled = functional.layer_norm(vision.pooled, vision.pooled.shape[-1:])
        vectors: Tensor = self.pooled(self.dropout(pooled))
        if self.classes is not None:
            # Roots let the lesser guesses be heard; so scaled, their mean square is 1 as the feature's is.
            roots = (vision.classes.clamp_min(0) * vision.classes.shape[-1]).sqrt()
            vectors = vectors + self.classes(self.dropout(roots))
        return vectors

    def sentence_vectors(self, read: Sequence[Read]) -> Float[Tensor, "n d"]:
        """Of sentences that `self.sentences.read` has read."""
        vectors: Tensor = self.project(self.dropout(self.sentences(read)))
        return vectors

    def word_vectors(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"], words: Sequence[str]
    ) -> Float[Tensor, "n d"]:
        """Of sentences given as weights of words, through which gradients pass."""
        vectors: Tensor = self.project(self.dropout(self.sentences.from_words(one_hot, mask, words)))
        return vectors

    def embed_vision(self, vision: Vision) -> Float[Tensor, "b d"]:
        """Pictures on the unit sphere."""
        return functional.normalize(self.image_vectors(vision), dim=-1)

    def embed_read(self, read: Sequence[Read]) -> Float[Tensor, "n d"]:
        """Sentences on the unit sphere."""
        return functional.normalize(self.sentence_vectors(read), dim=-1)

    def embed_words(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"], words: Sequence[str]
    ) -> Float[Tensor, "n d"]:
        """Sentences on the unit sphere, given as weights of words: gradients reach a one-hot caption.

        Args:
            one_hot: the weight of each word at each place: of a caption that is written, 1 for its word.
            mask: which places hold a word; the end sign is none.
            words: what each column is called, as a captioner spells it; "" for signs that are no words.
        """
        return functional.normalize(self.word_vectors(one_hot, mask, words), dim=-1)


def build(config: DualConfig, *, text: WordText | None, traits: EncoderTraits) -> DualEncoder:
    """An untrained dual encoder; `text` is what a BiLSTM reads by."""
    if text is None:
        return DualEncoder(config, MiniLmSentences(), traits)
    vectors = _glove_of(text) if config.word_vectors == "glove" else None
    return DualEncoder(config, BiLstm(config, text, vectors), traits)


def empty(config: DualConfig, *, text: WordText | None, traits: EncoderTraits) -> DualEncoder:
    """One to put trained weights in: it needs no GloVe, whose vectors are among them."""
    if text is None:
        return DualEncoder(config, MiniLmSentences(), traits)
    vectors = torch.zeros(len(text), config.word_width) if config.word_vectors == "glove" else None
    return DualEncoder(config, BiLstm(config, text, vectors), traits)


def _glove_of(text: WordText) -> Float[Tensor, "v e"]:
    """GloVe's vectors, a row a word of the vocabulary; signs, and words that GloVe lacks, have zeros."""
    vocabulary = text.vocabulary
    _, vectors = glove_vectors(vocabulary.words)
    table = torch.zeros(len(vocabulary), vectors.shape[1])
    table[[vocabulary.id(word) for word in vocabulary.words]] = torch.from_numpy(vectors)
    return table
