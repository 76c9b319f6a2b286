from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tellapart.captioners.concepts import ConceptWords
from tellapart.captioners.copying import CopyWords
from tellapart.captioners.memory import FAINT, Memory, Remember, grid_needs
from tellapart.captioners.settings.kinds import GridConfig
from tellapart.data.imagined import singular
from tellapart.data.readers import read_dataset
from tellapart.data.text import PRESETS, words
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.storage import cache_folder
from tellapart.types import Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.efficientnet import class_names
from tellapart.vision.looking import look
from tellapart.vision.nouns import everyday_words, name_in_words
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import EncoderTraits

# Two dogs, a cat, a zebra that the vocabulary does not hold, a bus; "unheard of" is in no list.
CLASSES = ("Golden Retriever", "Beagle", "tabby cat", "zebra", "school bus", "unheard of")
TEXT = WordText(Vocabulary(("a", "dog", "cat", "bus", "of")), PRESETS["mrnn"])
TRAITS = EncoderTraits(
    name="toy",
    identity="toy",
    shapes={"grid": (4, 5), "pooled": (5,), "classes": (6,)},
    nouns=tuple(map(name_in_words, CLASSES)),
)


def concept_words(count: int) -> ConceptWords:
    return ConceptWords(count=count, text=TEXT, traits=TRAITS)


def test_every_class_of_the_default_encoder_has_one_plain_word() -> None:
    table = everyday_words()

    assert set(table) == set(class_names())
    assert len(class_names()) == 1000
    assert all(words(noun, PRESETS["mrnn"]) == [noun] for noun in table.values())


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("Golden Retriever", "dog"),
        ("Siamese cat", "cat"),
        ("zebra", "zebra"),
        ("African bush elephant", "elephant"),
        ("great white shark", "shark"),
        ("great grey owl", "owl"),
        ("goldfinch", "bird"),
        ("trolleybus", "bus"),
        ("yawl (boat)", "boat"),
        ("fire truck", "truck"),
        ("sports car", "car"),
        ("steam locomotive", "train"),
        ("airliner", "plane"),
        ("Granny Smith apple", "apple"),
        ("hot dog", "hotdog"),
        ("dining table", "table"),
        ("laptop computer", "laptop"),
        ("baseball player", "baseball"),
        ("jeans", "jeans"),
        ("church", "church"),
    ],
)
def test_the_word_is_what_people_write(name: str, noun: str) -> None:
    assert name_in_words(name) == noun


def test_a_class_of_another_encoder_has_the_last_word_of_its_name() -> None:
    assert name_in_words("Garden Gnome") == "gnome"


def test_no_two_nouns_are_singular_and_plural_of_one() -> None:
    nouns = set(everyday_words().values())

    assert len(set(map(singular, nouns))) == len(nouns)


probabilities = st.lists(st.floats(0, 1, width=32), min_size=6, max_size=6)


@given(st.lists(probabilities, min_size=1, max_size=3), st.integers(1, 4))
def test_probabilities_of_classes_that_share_a_noun_are_added(rows: list[list[float]], count: int) -> None:
    tokens, weights = concept_words(count)(torch.tensor(rows, dtype=torch.float64))

    for row, found, likely in zip(rows, tokens.tolist(), weights.tolist(), strict=True):
        expected: dict[int, float] = {}
        for name, probability in zip(CLASSES, row, strict=True):
            if (noun := name_in_words(name)) in TEXT.vocabulary:
                token = TEXT.vocabulary.id(noun)
                expected[token] = expected.get(token, 0.0) + probability
        assert likely == pytest.approx(sorted(expected.values(), reverse=True)[:count])
        assert likely == pytest.approx([expected[token] for token in found])
        assert len(set(found)) == count


def test_more_words_than_the_vocabulary_holds_are_refused() -> None:
    with pytest.raises(TellapartError, match=r"5 concept words are wanted.* only 4 of the 6 classes of toy"):
        concept_words(5)


def test_an_encoder_that_names_nothing_is_refused() -> None:
    traits = TRAITS.model_copy(update={"nouns": ()})

    with pytest.raises(TellapartError, match="only 0 of the 0 classes of toy") as caught:
        ConceptWords(count=1, text=TEXT, traits=traits)

    assert "concepts" in caught.value.hint


def vision(pictured: list[bool] | None) -> Vision:
    generator = torch.Generator().manual_seed(1)
    return Vision(
        torch.randn(2, 4, 5, generator=generator),
        torch.randn(2, 5, generator=generator),
        torch.rand(2, 6, generator=generator),
        None if pictured is None else torch.tensor(pictured),
    )


def remember(concepts: int) -> tuple[Remember, nn.Embedding]:
    torch.manual_seed(0)
    config = GridConfig(concepts=concepts)
    return Remember(config, text=TEXT, traits=TRAITS, width=7, dropout=0.0), nn.Embedding(len(TEXT), 7)


def test_words_stand_behind_the_grid_with_their_probability() -> None:
    brings, embed = remember(3)
    seen = vision(None)

    memory = brings(seen, embed)

    assert brings.concepts is not None
    tokens, weights = brings.concepts(seen.classes)
    assert memory.words.tolist() == tokens.tolist()
    torch.testing.assert_close(memory.values[:, 4:], embed(tokens))
    torch.testing.assert_close(memory.values[:, :4], torch.relu(brings.from_grid(seen.grid)))
    torch.testing.assert_close(memory.bias[:, 4:].exp(), weights.clamp(min=FAINT))
    assert (memory.bias[:, :4] == 0).all()


def test_one_learned_vector_stands_for_the_grid_of_an_unseen_picture() -> None:
    brings, embed = remember(3)

    memory = brings(vision([True, False]), embed)

    torch.testing.assert_close(memory.values[0], brings(vision(None), embed).values[0])
    torch.testing.assert_close(memory.values[1, :4], brings.absent.expand(4, 7))
    memory.values.sum().backward()
    assert brings.absent.grad is not None
    assert (brings.absent.grad != 0).any()


def test_without_concepts_there_is_only_the_grid() -> None:
    brings, embed = remember(0)

    memory = brings(vision(None), embed)

    assert memory.values.shape == (2, 4, 7)
    assert memory.words.shape == (2, 0)
    assert grid_needs(GridConfig()) == {"grid"}
    assert grid_needs(GridConfig(concepts=2)) == {"grid", "classes"}


def copied(gate: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Memory]:
    """Logits of a mixture, log-probabilities of both its parts, and the memory."""
    brings, embed = remember(3)
    memory = brings(vision(None), embed)
    copy = CopyWords(hidden=6, width=7)
    nn.init.constant_(copy.gate.bias, gate)
    nn.init.zeros_(copy.gate.weight)
    logits, hidden = torch.randn(2, 5, len(TEXT)), torch.randn(2, 5, 6)
    scores = copy.query(hidden) @ memory.values[:, -3:].mT / 7**0.5 + memory.bias[:, None, -3:]
    alone = torch.zeros(2, 5, len(TEXT)).scatter(2, memory.words[:, None].expand(2, 5, 3), scores.softmax(-1))
    return copy(logits, hidden, memory), logits.log_softmax(-1), alone, memory


@pytest.mark.parametrize("gate", [-30.0, -2.0, 0.0, 3.0])
def test_a_copied_word_is_mixed_with_the_written_ones(gate: float) -> None:
    mixed, written, alone, _ = copied(gate)

    share = torch.sigmoid(torch.tensor(gate))
    torch.testing.assert_close(mixed.softmax(-1), (1 - share) * written.exp() + share * alone)


def test_an_open_gate_writes_nothing_but_concept_words() -> None:
    mixed, _, _, memory = copied(30.0)

    best = mixed.argmax(-1)

    assert (best.unsqueeze(-1) == memory.words.unsqueeze(1)).any(-1).all()


def test_the_words_of_photographs_stand_in_their_captions(real_data: Path) -> None:
    """60 COCO photographs: the table must beat the bare names by far, and be right more often than not."""
    examples = sorted(read_dataset(real_data / "coco" / "captions.jsonl").strict(), key=lambda e: e.path.name)
    chosen = examples[:900:15]
    encoder = load_encoder("efficientnet-lite2")
    seen = look(
        [example.path for example in chosen],
        encoder,
        parts=["classes"],
        cache=FeatureCache(cache_folder(), encoder),
    )
    classes = np.concatenate([each.features.classes for each in seen if not isinstance(each, TellapartError)])
    said = [
        {singular(word) for caption in example.captions for word in words(caption, PRESETS["mrnn"])}
        for example in chosen
    ]

    def coverage(nouns: list[str]) -> float:
        top = classes.argsort(axis=1)[:, -5:]
        pairs = zip(top, said, strict=True)
        return float(
            np.mean([any(singular(nouns[place]) in spoken for place in row) for row, spoken in pairs])
        )

    assert len(classes) == 60
    table = coverage([name_in_words(name) for name in encoder.class_names])
    names = coverage([name.lower().split()[-1] for name in encoder.class_names])
    assert table > 0.68
    assert table > names + 0.08
