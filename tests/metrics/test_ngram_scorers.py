"""BLEU, ROUGE-L, CIDEr-D and CIDEr: against the values of other programs, those programs live, and by law."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from tellapart import score
from tellapart.metrics.bleu import bleu
from tellapart.metrics.cider import cider
from tellapart.metrics.material import Material
from tellapart.metrics.parts import CiderConfig
from tellapart.metrics.rouge import rouge
from tellapart.metrics.score import Score

COCO_NAMES = {
    "BLEU-1": "Bleu_1",
    "BLEU-2": "Bleu_2",
    "BLEU-3": "Bleu_3",
    "BLEU-4": "Bleu_4",
    "ROUGE-L": "ROUGE_L",
    "CIDEr-D": "CIDEr",  # what pycocoevalcap calls CIDEr is CIDEr-D
}
METRICS = ["bleu", "rouge", "cider"]

# Few words, so that they repeat and match; none and one word too. With blanks inside, as PTB's "22 3/4".
words = st.sampled_from(["a", "dog", "cat", "on", "the", "mat", "22\u00a03/4", "\u2028x", "é"])
sentences = st.lists(words, max_size=8)
images = st.lists(st.tuples(sentences, st.lists(sentences, min_size=1, max_size=4)), min_size=1, max_size=5)


def tokenized(candidates: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Material:
    """Material whose tokens are given: the scorers alone are tested."""
    material = Material(
        tuple(map(str, range(len(candidates)))),
        tuple((" ".join(tokens),) for tokens in candidates),
        tuple(tuple(" ".join(tokens) for tokens in group) for group in references),
    )
    material.__dict__["candidate_tokens"] = [list(tokens) for tokens in candidates]
    material.__dict__["reference_tokens"] = [list(tokens) for group in references for tokens in group]
    return material


def ours(material: Material) -> dict[str, Score]:
    found = [*bleu(material), *rouge(material), *cider(material, CiderConfig())]
    return {each.name: each for each in found}


def theirs(
    candidates: dict[int, list[str]], references: dict[int, list[str]]
) -> dict[str, tuple[float, Any]]:
    corpus, each = Bleu(4).compute_score(references, candidates, verbose=0)
    found = {f"BLEU-{order + 1}": (corpus[order], each[order]) for order in range(4)}
    found["ROUGE-L"] = Rouge().compute_score(references, candidates)
    found["CIDEr-D"] = Cider().compute_score(references, candidates)
    return found


def assert_equal(found: dict[str, Score], expected: dict[str, tuple[float, Any]]) -> None:
    for name, (corpus, each) in expected.items():
        assert found[name].each == pytest.approx(np.asarray(each), abs=1e-9), name
        assert found[name].corpus == pytest.approx(corpus, abs=1e-9), name


def test_values_of_another_program_come_out(loo_500: dict[str, Any]) -> None:
    found = score(loo_500["candidates"], loo_500["references"], metrics=METRICS)
    expected = loo_500["expected"]
    assert_equal(
        dict(found),
        {ours: (expected["corpus"][name], expected["per_image"][name]) for ours, name in COCO_NAMES.items()},
    )


def test_document_frequencies_of_a_larger_corpus(
    loo_500: dict[str, Any], val2017: dict[str, list[str]]
) -> None:
    # The same 500 candidates weighed by the references of all 5,000 images.
    everyone = {image_id: captions[1:5] for image_id, captions in val2017.items()}
    material = Material(
        tuple(map(str, loo_500["ids"])),
        tuple((text,) for text in loo_500["candidates"]),
        tuple(map(tuple, loo_500["references"])),
        training=tuple(tuple(captions) for captions in everyone.values()),
    )
    found = cider(material, CiderConfig(df="train"))[0]
    assert found.each == pytest.approx(
        np.array(loo_500["expected"]["per_image_CIDEr_with_df_of_5000"]), abs=1e-9
    )
    assert "df:train(5000," in found.signature


@given(images)
def test_scorers_equal_pycocoevalcap_on_any_tokens(
    drawn: list[tuple[list[str], list[list[str]]]],
) -> None:
    material = tokenized([candidate for candidate, _ in drawn], [group for _, group in drawn])
    candidates = {number: [" ".join(candidate)] for number, (candidate, _) in enumerate(drawn)}
    references = {number: [" ".join(tokens) for tokens in group] for number, (_, group) in enumerate(drawn)}
    found = ours(material)
    if not any("".join(texts).split() for texts in references.values()):
        # pycocoevalcap's CIDEr fails where no reference has a word: here it is 0.
        assert found["CIDEr-D"].corpus == 0
        return
    assert_equal(found, theirs(candidates, references))


@given(images)
def test_plain_cider_is_the_cosine_of_its_definition(drawn: list[tuple[list[str], list[list[str]]]]) -> None:
    material = tokenized([candidate for candidate, _ in drawn], [group for _, group in drawn])
    found = cider(material, CiderConfig())[1]
    documents = [[" ".join(tokens).split() for tokens in group] for _, group in drawn]

    def grams(sentence: list[str], order: int) -> list[tuple[str, ...]]:
        return [tuple(sentence[i : i + order]) for i in range(len(sentence) - order + 1)]

    def vector(sentence: list[str], order: int) -> dict[tuple[str, ...], float]:
        weights: dict[tuple[str, ...], float] = {}
        for gram in grams(sentence, order):
            frequency = sum(any(gram in grams(text, order) for text in document) for document in documents)
            weights[gram] = weights.get(gram, 0.0) + math.log(len(documents) / max(1, frequency))
        return weights

    for row, (candidate, _) in enumerate(drawn):
        expected = 0.0
        for reference in documents[row]:
            for order in range(1, 5):
                one, other = vector(" ".join(candidate).split(), order), vector(reference, order)
                norms = math.hypot(*one.values()) * math.hypot(*other.values())
                dot = sum(weight * other.get(gram, 0.0) for gram, weight in one.items())
                expected += dot / norms if norms else 0.0
        assert found.each is not None
        assert found.each[row] == pytest.approx(10 * expected / 4 / len(documents[row]), abs=1e-9)


def test_whole_pipeline_equals_pycocoevalcap_live(val2017: dict[str, list[str]]) -> None:
    ids = list(val2017)[:400]
    odd = ["", "22 3/4 cups of flour", "a dog\u2028on a mat", "emoji 🐕 dog", 'I can\'t say "no" (really).']
    candidates = {image_id: val2017[image_id][0] for image_id in ids}
    references = {image_id: val2017[image_id][1:5] for image_id in ids}
    for number, text in enumerate(odd):
        candidates[f"odd{number}"] = text
        references[f"odd{number}"] = ["A dog on 22 3/4 mats.", text or "no words"]
    # pycocoevalcap shifts all later captions at a line separator inside one: it gets a space instead.
    clean = {key: [{"caption": text.replace("\u2028", " ")}] for key, text in candidates.items()}
    cleaned = {
        key: [{"caption": text.replace("\u2028", " ")} for text in group] for key, group in references.items()
    }
    tokenizer = PTBTokenizer()
    found = score(candidates, references, metrics=METRICS)
    expected = theirs(tokenizer.tokenize(clean), tokenizer.tokenize(cleaned))
    assert_equal(dict(found), expected)


def test_identical_captions_are_as_good_as_can_be() -> None:
    texts = ["a dog on a mat here", "two cats sleep under one table"]
    found = score(texts, [[text] for text in texts], metrics=METRICS)
    assert found["BLEU-4"].corpus == pytest.approx(1, abs=1e-8)
    assert found["ROUGE-L"].corpus == 1
    assert found["CIDEr-D"].corpus == pytest.approx(10)
    assert found["CIDEr"].corpus == pytest.approx(10)


def test_one_image_gives_no_cider_and_says_why() -> None:
    found = score(["a dog"], [["a dog"]], metrics=["cider"])
    assert found["CIDEr-D"].corpus == 0
    assert "one image alone" in found.notes[0]
    two = score(["a dog", "a cat"], [["a dog"], ["a cat"]], metrics=["cider"])
    assert two.notes == []


@given(images, st.randoms(use_true_random=False))
def test_the_order_of_images_and_references_does_not_matter(
    drawn: list[tuple[list[str], list[list[str]]]], chance: Any
) -> None:
    material = tokenized([candidate for candidate, _ in drawn], [group for _, group in drawn])
    order = list(range(len(drawn)))
    chance.shuffle(order)
    groups = [chance.sample(drawn[row][1], len(drawn[row][1])) for row in order]
    shuffled = tokenized([drawn[row][0] for row in order], groups)
    before, after = ours(material), ours(shuffled)
    for name, found in before.items():
        assert found.each is not None
        assert after[name].each == pytest.approx(found.each[order], abs=1e-12)
        assert after[name].corpus == pytest.approx(found.corpus, abs=1e-12)


def test_a_caption_of_thousands_of_words_takes_no_longer_than_it_must() -> None:
    long = " ".join(f"word{number % 700}" for number in range(5000))
    began = time.perf_counter()
    found = score([long, "a dog"], [[long, "a mat"], ["a dog"]], metrics=METRICS)
    assert found["ROUGE-L"].each is not None
    assert found["ROUGE-L"].each.tolist() == [1, 1]
    assert time.perf_counter() - began < 20


def test_texts_longer_than_sixteen_bits_can_count() -> None:
    long = " ".join(f"w{number % 97}" for number in range(33_000))
    words = tokenized([long.split()], [[long.split()]])
    assert rouge(words)[0].corpus == 1
