"""The parameters that `tellapart list captioners` tells."""

from __future__ import annotations

import pytest

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.size import WORDS, count_parameters


def test_the_layers_of_the_papers_mrnn_add_up() -> None:
    """Section 4: 128, 256, 256 and 512 units, and the encoder's 1,280 features in the place of VGG's."""
    embeddings = WORDS * 128 + 128 * 256
    recurrent = 256 * 256
    multimodal = (256 + 256 + 1280) * 512
    softmax = 512 * WORDS + WORDS
    assert count_parameters(CAPTIONERS.get("mrnn")) == embeddings + recurrent + multimodal + softmax
    assert count_parameters(CAPTIONERS.get("rnn-base")) == (
        embeddings + recurrent + (256 + 256) * 512 + softmax
    )


@pytest.mark.parametrize("name", CAPTIONERS.names())
def test_every_captioner_is_counted(name: str) -> None:
    counted = count_parameters(CAPTIONERS.get(name))
    assert counted is not None
    assert name == "ensemble" or counted > 1_000_000
