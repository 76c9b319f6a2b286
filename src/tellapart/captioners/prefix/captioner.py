"""The captioner: a mapping network, and a language model that goes on from its vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.kept_weights import keep_only_trained
from tellapart.captioners.prefix.language_model import LanguageModel, choose_trained, load_language_model
from tellapart.captioners.prefix.mapping import build_mapping
from tellapart.captioners.settings.prefix import PrefixConfig
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.types import Captioner, Prediction, Vision
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class PrefixState:
    """Keys and values of all that was read, prefix first, one of each a layer."""

    keys: tuple[Float[Tensor, "r h s d"], ...]
    values: tuple[Float[Tensor, "r h s d"], ...]

    def select(self, rows: Int[Tensor, " r"]) -> PrefixState:
        """The state of these rows."""
        return PrefixState(tuple(key[rows] for key in self.keys), tuple(value[rows] for value in self.values))

    def __len__(self) -> int:
        """How many vectors and tokens were read."""
        return self.keys[0].size(2)


class Prefix(Captioner[PrefixState]):
    """Vectors made of the image, then the start sign, then the caption (ClipCap, section 3).

    The prefix of an image is read once for all its captions. `Prediction.hidden` has the states of every
    layer at the caption's places, the last after the final norm; `Prediction.attention` is empty, for what a
    word gives to the prefix is only a part of its attention: the rest goes to the words before it.

    A saved captioner holds what was trained, not the frozen weights of the language model, which are read
    from where it came from; a hash tells if those are no longer the same.
    """

    def __init__(self, config: PrefixConfig, model: LanguageModel, mapping: nn.Module) -> None:
        super().__init__()
        self.text = model.text
        self.needs = frozenset({config.look})
        self.mapping = mapping
        self.language_model = model.network
        self.name = model.name
        self.window = model.window
        self.frozen = config.train == "mapping"
        self.longest = model.window - config.prefix_length
        keep_only_trained(self, origin=model.name)
        # Looked up once: the library's class of caches, which is an optional dependency's.
        self._new_cache = import_extra(
            "transformers", needed_by="this captioner", extra="transformers"
        ).DynamicCache

    def train(self, mode: bool = True) -> Prefix:
        """A language model that is not trained has no dropout either."""
        super().train(mode)
        if self.frozen:
            self.language_model.eval()
        return self

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """The prefix is read once an image; all captions then go on from it at once."""
        images, captions, length = tokens.shape
        state = self.begin(vision)
        rows = torch.arange(images, device=tokens.device).repeat_interleave(captions)
        state = state if captions == 1 else state.select(rows)
        found, _ = self._read(tokens.flatten(0, 1), state, with_hidden=True)
        hidden = tuple(layer.view(images, captions, length, -1) for layer in found.hidden_states[1:])
        return Prediction(found.logits.view(images, captions, length, -1), hidden=hidden)

    def begin(self, vision: Vision) -> PrefixState:
        """Read the prefix."""
        cache = self._new_cache()
        self.language_model.base_model(
            inputs_embeds=self.mapping(vision), past_key_values=cache, use_cache=True
        )
        return _state_of(cache)

    def step(self, token: Int[Tensor, " r"], state: PrefixState) -> tuple[Float[Tensor, "r v"], PrefixState]:
        """Read one token more."""
        found, state = self._read(token.unsqueeze(1), state, with_hidden=False)
        return found.logits[:, 0], state

    def _read(
        self, tokens: Int[Tensor, "r t"], state: PrefixState, *, with_hidden: bool
    ) -> tuple[Any, PrefixState]:
        """Go on from a state, which stays as it is: the cache joins tensors, never writing into them."""
        if len(state) + tokens.size(1) > self.window:
            raise TellapartError(
                f"the language model {self.name} reads at most {self.window} tokens, the prefix included",
                hint="shorten the captions or decoding.max_words, or take a shorter captioner.prefix_length",
            )
        cache = self._new_cache(list(zip(state.keys, state.values, strict=True)))
        found = self.language_model(
            inputs_embeds=self.language_model.get_input_embeddings()(tokens),
            past_key_values=cache,
            use_cache=True,
            output_hidden_states=with_hidden,
        )
        return found, _state_of(cache)


def _state_of(cache: Any) -> PrefixState:
    return PrefixState(
        tuple(layer.keys for layer in cache.layers), tuple(layer.values for layer in cache.layers)
    )


def build(config: PrefixConfig, *, traits: EncoderTraits) -> Prefix:
    """An untrained mapping before a language model."""
    model = load_language_model(config.language_model)
    if config.prefix_length + 2 > model.window:
        raise TellapartError(
            f"captioner.prefix_length: {config.prefix_length} vectors leave no room for a caption in the "
            f"{model.window} tokens that the language model {model.name} reads",
            hint="take a shorter prefix",
        )
    mapping = build_mapping(config, traits=traits, width=model.width)
    choose_trained(model.network, config, name=model.name)
    return Prefix(config, model, mapping)
