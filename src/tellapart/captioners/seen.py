"""What a recurrent captioner with additive attention takes from a picture before the first word."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tellapart.arrays import Float
from tellapart.captioners.memory import Memory
from tellapart.captioners.per_image import PerImage


@dataclass(frozen=True, slots=True)
class Seen:
    """What of a picture stays the same at every word."""

    memory: Memory
    keys: Float[Tensor, "b n a"]  # the memory in the space in which it is compared with the LSTM
    gates: Float[Tensor, "b g"]  # what the whole picture adds to the gates at every word

    def per_image(self) -> PerImage:
        """For a state, a row an image."""
        memory = self.memory
        return PerImage((memory.values, memory.bias, memory.words, self.keys, self.gates))

    @classmethod
    def of(cls, image: PerImage) -> Seen:
        """Back from a state."""
        values, bias, words, keys, gates = image.tensors
        return cls(Memory(values, bias, words), keys, gates)
