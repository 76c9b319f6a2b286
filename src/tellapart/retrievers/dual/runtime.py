"""A trained dual encoder at work, in NumPy: the first answer must not wait for torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.arrays import Bool, Float, Float32, Int
from tellapart.errors import TellapartError
from tellapart.model_folder import not_its_weights
from tellapart.retrievers.dual.folder import WHAT, SavedDual, read_dual
from tellapart.retrievers.dual.words import read_words, words_of
from tellapart.retrievers.retriever import Placed, Retriever, Watch, expect_several, unwatched
from tellapart.vision.features import Features, in_order, stack

SENTENCES = 256  # read together
PICTURES = 64  # placed together
TINY = 1e-5  # torch's: what keeps a layer norm from dividing by nothing


class DualRetriever(Retriever):
    """The network of `network.py` in evaluation mode, its weights as arrays."""

    def __init__(self, name: str, saved: SavedDual, folder: Path) -> None:
        self.name = name
        self.identity = f"{saved.settings.retriever['name']}@{saved.digest}"
        self.width = saved.config.width
        self.settings = saved.settings
        self._saved = saved
        self._weights = _expected(saved, folder)
        self.parts = in_order(
            {"pooled", "classes"} if saved.config.classes else {"pooled"}
        )  # of what it sees

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        """Through the encoder, whose features are remembered; files of the same bytes have the same place."""
        from tellapart.retrievers.dual.seeing import see  # a sentence must not wait for what opens pictures

        results = see(paths, self.settings.encoder, self.parts, needed_by=f"the retriever {self.name}")
        known: dict[bytes, Float32[np.ndarray, " d"]] = {}  # a product rounds by the place of a row
        while group := list(islice(results, PICTURES)):
            good = [seen for seen in group if not isinstance(seen, TellapartError)]
            new = list({seen.digest: seen for seen in good if seen.digest not in known}.values())
            if new:
                vectors = self.embed_features(stack([seen.features for seen in new]))
                known |= {seen.digest: vector for seen, vector in zip(new, vectors, strict=True)}
            for seen in group:
                yield seen if isinstance(seen, TellapartError) else Placed(seen.path, known[seen.digest])

    def embed_features(self, features: Features) -> Float32[np.ndarray, "n d"]:
        """Unit rows of pictures that the encoder has seen."""
        weights = self._weights
        vectors = _normed(features.pooled.astype(np.float32)) @ weights["pooled.weight"].T
        vectors += weights["pooled.bias"]
        if self._saved.config.classes:
            classes = features.classes.astype(np.float32)
            roots = np.sqrt(np.maximum(classes, 0) * classes.shape[1])
            vectors += roots @ weights["classes.weight"].T + weights["classes.bias"]
        return _unit(vectors)

    def embed_texts(
        self, sentences: Sequence[str], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """Unit rows of sentences."""
        expect_several(sentences, "sentences")
        if self._saved.text is None:
            places = {sentence: place for place, sentence in enumerate(dict.fromkeys(sentences))}
            rows = [places[sentence] for sentence in sentences]
            states = self._minilm.sentence_features(list(places), watch=watch)
        else:
            read = [tuple(read_words(sentence, self._saved.text).tolist()) for sentence in sentences]
            numbered = {numbers: place for place, numbers in enumerate(dict.fromkeys(read))}
            rows = [numbered[numbers] for numbers in read]
            states = self._read(list(numbered), watch)
        # Sentences that are read alike once: a product rounds by the place of a row.
        return _unit(states @ self._weights["project.weight"].T + self._weights["project.bias"])[rows]

    def unknown_words(self, sentence: str) -> Sequence[str]:
        """Words outside its vocabulary, or without a vector there; MiniLM spells any word."""
        text = self._saved.text
        if text is None:
            return ()
        return [word for word in words_of(sentence, text) if not self._has_vector[text.vocabulary.id(word)]]

    @cached_property
    def _has_vector(self) -> Bool[np.ndarray, " words"]:
        """Which words are told apart from unknown ones; of rare ones neither GloVe nor training knew any."""
        vectors = self._weights["sentences.vectors"]
        assert self._saved.text is not None
        unknown = self._saved.text.vocabulary.unknown
        return np.asarray((vectors != vectors[unknown]).any(axis=1))

    def _read(self, read: Sequence[tuple[int, ...]], watch: Watch) -> Float32[np.ndarray, "n s"]:
        """The greatest state of each unit of the BiLSTM, sentences of a length together."""
        order = sorted(range(len(read)), key=lambda number: -len(read[number]))
        states = np.empty((len(read), 2 * self._saved.config.hidden), np.float32)
        for first in range(0, len(order), SENTENCES):
            rows = order[first : first + SENTENCES]
            states[rows] = self._greatest([np.array(read[row]) for row in rows])
            watch(min(first + SENTENCES, len(order)), len(order))
        return states

    def _greatest(self, read: Sequence[Int[np.ndarray, " _"]]) -> Float32[np.ndarray, "n s"]:
        """Of sentences, the longest first. The greatest state does not ask in which order they came."""
        forth = _lstm_maximum(read, self._weights, ending="")
        back = _lstm_maximum([numbers[::-1] for numbers in read], self._weights, ending="_reverse")
        return np.concatenate([forth, back], axis=1)

    @cached_property
    def _minilm(self) -> Any:
        from tellapart.foreign.minilm import load_minilm  # brings torch along

        minilm = load_minilm(needed_by=f"the retriever {self.name}")
        if minilm.identity != self.settings.fingerprint:
            raise TellapartError(
                f"the retriever {self.name} was trained with {self.settings.fingerprint}, "
                f"here is {minilm.identity}",
                hint="install the version of MiniLM that it was trained with",
            )
        return minilm


def load_dual(name: str, folder: Path) -> DualRetriever:
    """The retriever in a folder, under the name a user gave it."""
    return DualRetriever(name, read_dual(folder), folder)


def _lstm_maximum(
    read: Sequence[Int[np.ndarray, " _"]], weights: dict[str, NDArray[Any]], *, ending: str
) -> Float32[np.ndarray, "n h"]:
    """Run one direction over sentences, the longest first; the greatest state of each unit over all words."""
    of_words = weights[f"sentences.lstm.weight_ih_l0{ending}"].T
    of_state = weights[f"sentences.lstm.weight_hh_l0{ending}"].T
    bias = weights[f"sentences.lstm.bias_ih_l0{ending}"] + weights[f"sentences.lstm.bias_hh_l0{ending}"]
    size = len(of_state)
    lengths = np.array([len(numbers) for numbers in read])
    hidden, cell = np.zeros((len(read), size), np.float32), np.zeros((len(read), size), np.float32)
    greatest = np.full((len(read), size), -np.inf, np.float32)
    for place in range(lengths[0]):
        going = int((lengths > place).sum())
        words = weights["sentences.vectors"][[numbers[place] for numbers in read[:going]]]
        gates = words @ of_words + hidden[:going] @ of_state + bias
        add, keep, candidate, show = np.split(gates, 4, axis=1)
        cell[:going] = _sigmoid(keep) * cell[:going] + _sigmoid(add) * np.tanh(candidate)
        hidden[:going] = _sigmoid(show) * np.tanh(cell[:going])
        np.maximum(greatest[:going], hidden[:going], out=greatest[:going])
    return greatest


def _sigmoid(values: Float32[np.ndarray, "n h"]) -> Float32[np.ndarray, "n h"]:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))  # cannot overflow


def _normed(values: Float32[np.ndarray, "n p"]) -> Float32[np.ndarray, "n p"]:
    """Each row with mean 0 and variance 1, as torch's layer norm does it."""
    values = values - values.mean(1, keepdims=True)
    return np.asarray(values / np.sqrt(np.square(values).mean(1, keepdims=True) + TINY))


def _unit(vectors: Float[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _expected(saved: SavedDual, folder: Path) -> dict[str, NDArray[Any]]:
    """The weights, if their names and shapes are those that the settings call for."""
    config, weights = saved.config, saved.weights
    shapes: dict[str, tuple[int, ...]] = {
        "pooled.weight": (config.width, *saved.settings.encoder.shapes["pooled"]),
        "pooled.bias": (config.width,),
        "project.bias": (config.width,),
    }
    if config.classes:
        shapes["classes.weight"] = (config.width, *saved.settings.encoder.shapes["classes"])
        shapes["classes.bias"] = (config.width,)
    if saved.text is None:
        shapes["project.weight"] = (config.width, weights.get("project.weight", np.empty((0, 0))).shape[-1])
    else:
        shapes["project.weight"] = (config.width, 2 * config.hidden)
        shapes["sentences.vectors"] = (len(saved.text), config.word_width)
        for ending in ("", "_reverse"):
            shapes[f"sentences.lstm.weight_ih_l0{ending}"] = (4 * config.hidden, config.word_width)
            shapes[f"sentences.lstm.weight_hh_l0{ending}"] = (4 * config.hidden, config.hidden)
            shapes[f"sentences.lstm.bias_ih_l0{ending}"] = (4 * config.hidden,)
            shapes[f"sentences.lstm.bias_hh_l0{ending}"] = (4 * config.hidden,)
    if {name: values.shape for name, values in weights.items()} != shapes:
        raise not_its_weights(folder, WHAT)
    return weights
