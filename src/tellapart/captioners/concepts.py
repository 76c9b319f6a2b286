"""Names of the encoder's likeliest classes, as words of the captioner's own vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.vision.traits import EncoderTraits


class ConceptWords(nn.Module):
    """The likeliest words of a picture: the probabilities of all classes that share a noun, added up.

    Words are known to the captioner's vocabulary; a class whose noun is not is left out.
    """

    token_of_word: Tensor  # (w,)
    word_of_class: Tensor  # (c,), w where the class has no word

    def __init__(self, *, count: int, text: WordText, traits: EncoderTraits) -> None:
        super().__init__()
        self.count = count
        nouns = traits.nouns
        known = sorted({noun for noun in nouns if noun in text.vocabulary})
        if len(known) < count:
            raise TellapartError(
                f"{count} concept words are wanted, but the captioner knows the names of only {len(known)} "
                f"of the {len(nouns)} classes of {traits.name}",
                hint="lower captioner.concepts, or take an encoder that names its classes",
            )
        place = {noun: number for number, noun in enumerate(known)}
        tokens = [text.vocabulary.id(noun) for noun in known]
        self.register_buffer("token_of_word", torch.tensor(tokens))
        self.register_buffer(
            "word_of_class", torch.tensor([place.get(noun, len(known)) for noun in nouns], dtype=torch.long)
        )

    def forward(self, classes: Float[Tensor, "b c"]) -> tuple[Int[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Tokens of each picture's likeliest words, and their probabilities, likeliest first."""
        words = classes.new_zeros(len(classes), len(self.token_of_word) + 1)
        words = words.index_add(1, self.word_of_class, classes)[:, :-1]
        weights, places = words.topk(self.count, dim=1)
        return self.token_of_word[places], weights
