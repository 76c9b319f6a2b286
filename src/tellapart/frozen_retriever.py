"""A trained dual encoder that teaches a captioner: its weights stay, gradients pass through it to words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float
from tellapart.corpus import as_vision
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.model_folder import not_its_weights
from tellapart.retrievers.dual.folder import WHAT, SavedDual, read_dual
from tellapart.retrievers.dual.network import DualEncoder, empty
from tellapart.retrievers.dual.seeing import see
from tellapart.retrievers.loading import TOWERS, find_retriever
from tellapart.types import Text
from tellapart.vision.features import in_order, stack
from tellapart.vision.looking import Seen

PICTURES = 256  # placed together


@dataclass(frozen=True)
class DualTeacher:
    """A frozen dual encoder, the vectors of the training pictures, and what its captioner's tokens mean."""

    identity: str
    network: DualEncoder
    pictures: Float[Tensor, "n d"]
    words: Sequence[str]  # of the captioner's tokens; "" for signs

    def picture_vectors(self, rows: Sequence[int]) -> Float[Tensor, "n d"]:
        """Vectors of training pictures, not scaled to length 1."""
        return self.pictures[list(rows)]

    def word_vectors(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"]
    ) -> Float[Tensor, "n d"]:
        """Vectors of captions given as weights of tokens, not scaled; gradients pass."""
        return self.network.word_vectors(one_hot, mask, self.words)


def load_teacher(name: str, paths: Sequence[Path], text: Text, device: torch.device) -> DualTeacher:
    """A dual encoder by name or folder, which has seen these pictures through its own encoder."""
    if name.partition(":")[0] in TOWERS:
        raise TellapartError(
            f"{name}: gradients pass to words through dual encoders only",
            hint="name judge, reranker, or the folder of a dual encoder; CLIP can be a reward",
        )
    folder = find_retriever(name)
    saved = read_dual(folder)
    network = _network(saved, folder)
    pictures = _see(network, saved, paths, name)
    return DualTeacher(
        f"{saved.settings.retriever['name']}@{saved.digest}",
        network.to(device),
        pictures.to(device),
        words_of_tokens(text, name),
    )


def words_of_tokens(text: Text, name: str) -> Sequence[str]:
    """What each token of a captioner is called; only whole words can be read by a retriever."""
    if not isinstance(text, WordText):
        raise TellapartError(
            f"the retriever {name} reads words, and the captioner writes pieces of words",
            hint="take a captioner with a vocabulary of words, or a reward instead",
        )
    signs = {text.pad, text.start, text.end, *text.silent}
    return ["" if token in signs else text.decode([token]) for token in range(len(text))]


def _network(saved: SavedDual, folder: Path) -> DualEncoder:
    network = empty(saved.config, text=saved.text, traits=saved.settings.encoder)
    weights = {name: torch.from_numpy(values).float() for name, values in saved.weights.items()}
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise not_its_weights(folder, WHAT) from error
    return network.requires_grad_(requires_grad=False).eval()


@torch.no_grad()
def _see(network: DualEncoder, saved: SavedDual, paths: Sequence[Path], name: str) -> Float[Tensor, "n d"]:
    seen = []
    for result in see(
        paths, saved.settings.encoder, in_order(network.needs), needed_by=f"the retriever {name}"
    ):
        if not isinstance(result, Seen):
            raise result
        seen.append(result.features)
    vectors = [
        network.image_vectors(as_vision(stack(seen[at : at + PICTURES])))
        for at in range(0, len(seen), PICTURES)
    ]
    return torch.cat(vectors)
