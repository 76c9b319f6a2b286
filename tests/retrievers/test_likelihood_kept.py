"""Scores of picture files: computed once, read again, and made anew where anything has changed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tellapart.corpus import as_vision
from tellapart.errors import TellapartError
from tellapart.retrieval import load_likelihood
from tellapart.retrievers.likelihood import kept
from tellapart.retrievers.likelihood.captioner_scores import Likelihood, mean_vision
from tellapart.retrievers.likelihood.pairs import score_pairs
from tellapart.stepping import products
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache

SENTENCES = ["a red circle", "a blue square on the left", "a red circle", "", "an octopus"]


@pytest.fixture
def likelihood(tiny_captioner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Likelihood:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "cache"))
    return load_likelihood(tiny_captioner)


@pytest.fixture
def pictures(scenes: Path) -> Sequence[Path]:
    return sorted((scenes / "images").iterdir())[:11]


def files() -> list[Path]:
    return sorted((cache_folder() / "likelihood").iterdir())


def ask(likelihood: Likelihood, sentences: Sequence[str], pictures: Sequence[Path]) -> tuple[np.ndarray, int]:
    """The scores, and how many pictures were scored for them."""
    told = [0]
    scores = likelihood.scores(sentences, pictures, watch=lambda done, total: told.append(done))
    return scores, told[-1]


def test_scores_are_those_of_the_features_and_are_computed_once(
    likelihood: Likelihood, pictures: Sequence[Path]
) -> None:
    scores, work = ask(likelihood, SENTENCES, pictures)
    assert work == len(pictures)
    features = FeatureCache(cache_folder(), likelihood.encoder).read(likelihood.look(pictures), ["pooled"])
    captions = [likelihood.captioner.text.encode(sentence) for sentence in SENTENCES]
    expected = score_pairs(likelihood.captioner, [as_vision(features)], captions)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert scores.dtype == np.float32
    again, work = ask(likelihood, SENTENCES, pictures)
    assert work == 0
    assert isinstance(again, np.memmap)
    np.testing.assert_array_equal(again, scores)
    assert len(files()) == 1


def test_what_is_equal_has_equal_scores(
    likelihood: Likelihood, pictures: Sequence[Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copy(pictures[3], tmp_path / "copy.png"))
    scores, work = ask(likelihood, SENTENCES, [*pictures, copy, pictures[0]])
    assert work == len(pictures)
    np.testing.assert_array_equal(scores[:, -2:], scores[:, [3, 0]])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_other_captions_pictures_or_captioners_are_scored_apart(
    likelihood: Likelihood, pictures: Sequence[Path]
) -> None:
    ask(likelihood, SENTENCES, pictures)
    for sentences, some in (
        (SENTENCES[::-1], pictures),
        (SENTENCES, pictures[::-1]),
        (SENTENCES, pictures[:-1]),
    ):
        _, work = ask(likelihood, sentences, some)
        assert work == len(some)
    _, work = ask(replace(likelihood, identity="another"), SENTENCES, pictures)
    assert work == len(pictures)
    assert len(files()) == 5


def test_scores_by_rounded_products_are_kept_apart(likelihood: Likelihood, pictures: Sequence[Path]) -> None:
    ask(likelihood, SENTENCES, pictures)
    with products(fast=True):
        assert ask(likelihood, SENTENCES, pictures)[1] == len(pictures)
    assert ask(likelihood, SENTENCES, pictures)[1] == 0


def test_identity_changes_with_a_weight(tiny_captioner: Path, likelihood: Likelihood, tmp_path: Path) -> None:
    from tellapart.captioners.folder import load_captioner, save_captioner

    assert load_likelihood(tiny_captioner).identity == likelihood.identity
    saved = load_captioner(tiny_captioner)
    with torch.no_grad():
        next(saved.captioner.parameters())[0, 0] += 0.5
    save_captioner(tmp_path / "changed", saved, dtype=torch.float32)
    assert load_likelihood(tmp_path / "changed").identity != likelihood.identity


@pytest.mark.parametrize("length", [0, 5, 100, -4])
def test_a_damaged_file_is_made_again(likelihood: Likelihood, pictures: Sequence[Path], length: int) -> None:
    scores, _ = ask(likelihood, SENTENCES, pictures)
    expected = np.array(scores)
    (file,) = files()
    file.write_bytes(file.read_bytes()[:length])
    found, work = ask(likelihood, SENTENCES, pictures)
    assert work == len(pictures)
    np.testing.assert_array_equal(found, expected)


def test_an_error_half_way_leaves_nothing(
    likelihood: Likelihood, pictures: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likelihood.scores(SENTENCES, pictures, watch=stop)
    assert files() == []


def test_captions_in_slabs_and_progress_over_all_of_them(
    likelihood: Likelihood, pictures: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = ask(likelihood, SENTENCES, pictures)
    monkeypatch.setattr(kept, "CAPTIONS", 2)
    told: list[tuple[int, int]] = []
    slabs = replace(likelihood, identity="in slabs")
    scores = slabs.scores(SENTENCES, pictures, watch=lambda done, total: told.append((done, total)))
    np.testing.assert_allclose(scores, whole, atol=1e-5)
    assert told == [(done, 33) for done in (8, 11, 19, 22, 30, 33)]


def test_mean_picture(likelihood: Likelihood, pictures: Sequence[Path]) -> None:
    features = FeatureCache(cache_folder(), likelihood.encoder).read(likelihood.look(pictures), ["pooled"])
    vision = as_vision(features)
    mean = mean_vision([vision.select(torch.arange(4)), vision.select(torch.arange(4, 11))])
    torch.testing.assert_close(mean.pooled, vision.pooled.mean(0, keepdim=True))
    assert len(mean) == 1
    captions = [likelihood.captioner.text.encode(sentence) for sentence in SENTENCES]
    expected = score_pairs(likelihood.captioner, [mean], captions)[:, 0]
    np.testing.assert_allclose(likelihood.scores_of_mean(SENTENCES, pictures), expected, atol=1e-5)


def test_lengths_count_the_end_and_not_the_start(likelihood: Likelihood) -> None:
    assert likelihood.lengths(SENTENCES).tolist() == [4, 7, 4, 1, 3]


def test_bad_input(likelihood: Likelihood, pictures: Sequence[Path], tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="there is no sentence to score"):
        likelihood.scores([], pictures)
    with pytest.raises(TellapartError, match="there is no picture to score"):
        likelihood.scores(SENTENCES, [])
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(TellapartError, match=r"broken\.png"):
        likelihood.scores(SENTENCES, [tmp_path / "broken.png"])
    with pytest.raises(TellapartError, match="looks at pictures, not a language model"):
        likelihood.scores_of_nothing(SENTENCES)


def test_scores_with_a_flipped_bit_are_made_again(likelihood: Likelihood, pictures: Sequence[Path]) -> None:
    right = np.array(likelihood.scores(SENTENCES, pictures))
    (file,) = files()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x40
    file.write_bytes(data)
    np.testing.assert_array_equal(likelihood.scores(SENTENCES, pictures), right)
    assert bytes(data) != file.read_bytes()
