"""Retrieval tables both ways, of captioners and retrievers, against rankings made by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.errors import TellapartError
from tellapart.recipe import load_experiment, load_recipe
from tellapart.retrieval import (
    NORMALISATIONS,
    Tables,
    Wish,
    find_run,
    is_retriever,
    load_likelihood,
    retrieve,
)
from tellapart.sources import by_hash, read_examples
from tellapart.training import train

SHAPES = ("data.scenes=60", "training.epochs=1", "training.images_per_batch=16")
SIZES = ("captioner.embedding_one=6", "captioner.embedding_two=8", "captioner.multimodal=10")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on the same scenes: an m-RNN, a language model, and a retriever."""
    folder = tmp_path_factory.mktemp("runs")
    captioner = load_recipe("mrnn-shapes", changes=[*SHAPES, *SIZES])
    train(captioner, folder / "mrnn")
    train(
        captioner.model_copy(update={"captioner": {**captioner.captioner, "name": "rnn-base"}}), folder / "lm"
    )
    train(load_experiment("retriever-shapes", changes=SHAPES), folder / "dual")
    return folder


def unwatched(what: str, done: int, total: int) -> None:
    pass


def ask(run: Path, wish: Wish) -> Tables:
    return retrieve(str(run), wish, watch=unwatched)


def by_hand(scores: np.ndarray, own: Sequence[int]) -> tuple[list[int], list[int]]:
    """Ranks of each picture's best own caption, and of each caption's picture, by counting one by one."""
    of_pictures = []
    for picture in range(scores.shape[1]):
        best = max(score for score, its in zip(scores[:, picture], own, strict=True) if its == picture)
        others = [score for score, its in zip(scores[:, picture], own, strict=True) if its != picture]
        of_pictures.append(sum(score >= best for score in others))
    of_captions = [
        sum(score >= row[its] for picture, score in enumerate(row) if picture != its)
        for row, its in zip(scores, own, strict=True)
    ]
    return of_pictures, of_captions


def test_both_ways_by_hand(runs: Path) -> None:
    wish = Wish(split="val", images=5, normalise=("plain", "eq7"), samples=7, seed=3)
    tables = ask(runs / "mrnn", wish)
    recipe = load_recipe(str(runs / "mrnn" / "recipe.toml"))
    examples = read_examples(recipe.data, seed=recipe.seed)
    chosen = by_hash([example for example in examples if example.split == "val"])[:5]
    training = [example.path for example in examples if example.split == "train"]
    captions = [caption for example in chosen for caption in example.captions]
    own = [place for place, example in enumerate(chosen) for _ in example.captions]
    likelihood = load_likelihood(runs / "mrnn")
    plain = likelihood.scores(captions, [example.path for example in chosen]).astype(np.float64)
    places = np.random.default_rng(3).permutation(len(training))[:7]
    sampled = likelihood.scores(captions, [training[place] for place in places]).astype(np.float64)
    eq7 = np.exp(plain) / np.exp(sampled).sum(1, keepdims=True)
    assert (tables.images, tables.captions) == (5, len(captions))
    assert [found.normalisation for found in tables.found] == ["plain", "eq7", "plain"]
    assert tables.found[0].ranks.tolist() == by_hand(plain, own)[0]
    assert tables.found[1].ranks.tolist() == by_hand(eq7, own)[0]
    assert tables.found[2].ranks.tolist() == by_hand(plain, own)[1]
    assert tables.found[0].pool == len(captions)
    assert tables.found[2].pool == 5


def test_every_normalisation_serves_and_leaves_sentences_to_pictures_alone(runs: Path) -> None:
    wish = Wish(normalise=NORMALISATIONS, language_model=str(runs / "lm"))
    tables = ask(runs / "mrnn", wish)
    assert [found.normalisation for found in tables.found] == [*NORMALISATIONS, "plain"]
    alone = ask(runs / "mrnn", replace(wish, normalise=("eq7",), language_model=None))
    assert [found.normalisation for found in alone.found] == ["eq7", "plain"]
    assert (alone.found[-1].ranks == tables.found[-1].ranks).all()
    assert (alone.found[0].ranks == tables.found[1].ranks).all()
    ranks = {found.normalisation: found.ranks.tolist() for found in tables.found[:-1]}
    assert len({tuple(each) for each in ranks.values()}) > 2


def test_pmi_without_a_language_model_is_equation_7(runs: Path) -> None:
    tables = ask(runs / "mrnn", Wish(normalise=("eq7", "pmi"), samples=9))
    assert tables.found[0].ranks.tolist() == tables.found[1].ranks.tolist()
    assert "p(c) of eq7 and pmi is the mean over 9 training pictures" in tables.notes
    assert any("pmi is then Eq. 7" in note for note in tables.notes)
    by_model = ask(runs / "mrnn", Wish(normalise=("pmi",), language_model=str(runs / "lm")))
    assert not any("training pictures" in note for note in by_model.notes)


def test_more_samples_than_training_pictures_are_all_of_them(runs: Path) -> None:
    tables = ask(runs / "mrnn", Wish(normalise=("eq7",), samples=10_000))
    assert any("the mean over 48 training pictures" in note for note in tables.notes)


def test_who_sees_nothing_finds_nothing(runs: Path) -> None:
    tables = ask(runs / "lm", Wish())
    assert (tables.found[-1].ranks == tables.images - 1).all()


def test_retriever_ranks_by_cosine(runs: Path) -> None:
    from tellapart.retrievers.loading import load_retriever

    tables = ask(runs / "dual", Wish(split="val", images=6))
    recipe = load_experiment(str(runs / "dual" / "recipe.toml"))
    chosen = by_hash([each for each in read_examples(recipe.data, seed=recipe.seed) if each.split == "val"])[
        :6
    ]
    captions = [caption for example in chosen for caption in example.captions]
    own = [place for place, example in enumerate(chosen) for _ in example.captions]
    scores = load_retriever(runs / "dual").scores(captions, [example.path for example in chosen])
    assert tables.found[-1].ranks.tolist() == by_hand(scores, own)[1]
    assert [found.asked for found in tables.found] == ["image-to-sentence", "sentence-to-image"]
    with pytest.raises(TellapartError, match="is a retriever: there is nothing that 'eq7' could divide"):
        ask(runs / "dual", Wish(normalise=("eq7",)))


def test_recall_beyond_the_pool_is_sure_and_said_to_be(runs: Path) -> None:
    tables = ask(runs / "mrnn", Wish(images=2))
    assert tables.found[-1].to_json()["R@5"] == 1
    said = [note for note in tables.notes if "whatever the scores" in note]
    assert said == [
        "R@10 of image-to-sentence is 1 whatever the scores: there are no more than 10 answers",
        "R@5 of sentence-to-image is 1 whatever the scores: there are no more than 2 answers",
        "R@10 of sentence-to-image is 1 whatever the scores: there are no more than 2 answers",
    ]


def test_words_of_other_data_are_unknown_words(runs: Path, tmp_path: Path, scenes: Path) -> None:
    picture = sorted((scenes / "images").iterdir())[0]
    (tmp_path / "captions.jsonl").write_text(
        f'{{"image": "{picture}", "captions": ["a red circle", "zyzzyva"], "split": "test"}}\n'
    )
    recipe = load_recipe(
        "mrnn-shapes", changes=["data.format=jsonl", f"data.path={tmp_path / 'captions.jsonl'}"]
    )
    tables = retrieve(str(runs / "mrnn"), Wish(), watch=unwatched, recipe=recipe)
    assert "1 of 4 words are not known to it and scored as the unknown word" in tables.notes
    with pytest.raises(TellapartError, match="eq7 needs pictures that were trained on"):
        retrieve(str(runs / "mrnn"), Wish(normalise=("eq7",)), watch=unwatched, recipe=recipe)


def test_progress_names_what_is_done(runs: Path) -> None:
    told: list[tuple[str, int, int]] = []
    wish = Wish(split="val", normalise=("eq7",), samples=11, seed=8)
    retrieve(str(runs / "mrnn"), wish, watch=lambda what, done, total: told.append((what, done, total)))
    last = {what: (done, total) for what, done, total in told}
    assert last["scoring pairs with training pictures"] == (11, 11)
    assert list(last)[:2] == ["looking at pictures", "scoring pairs"]
    assert all(done == total for done, total in last.values())


@pytest.mark.parametrize(
    ("name", "wish", "said"),
    [
        ("mrnn", Wish(split="nowhere"), "the data set has no split 'nowhere'"),
        ("mrnn", Wish(normalise=("softmax",)), "cannot be normalised by 'softmax'"),
        ("absent", Wish(), "absent: no run here"),
        ("mrnn", Wish(normalise=("pmi",), language_model="mrnn"), "looks at pictures, not a language model"),
    ],
)
def test_mistakes_are_named(
    name: str, wish: Wish, said: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    with pytest.raises(TellapartError, match=said):
        ask(Path(name), wish)


def test_a_language_model_must_know_the_same_words(runs: Path, tiny_captioner: Path) -> None:
    recipe = load_recipe(str(runs / "mrnn" / "recipe.toml"))
    wish = Wish(normalise=("pmi",), language_model=str(runs / "lm"))
    with pytest.raises(TellapartError, match="knows other words than"):
        retrieve(str(tiny_captioner), wish, watch=unwatched, recipe=recipe)


def test_names_of_recipes_and_kinds(
    runs: Path, monkeypatch: pytest.MonkeyPatch, tiny_captioner: Path, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(runs, target_is_directory=True)
    assert find_run("mrnn") == str(Path("runs") / "mrnn")
    assert find_run("mrnn.toml") == str(Path("runs") / "mrnn")
    for name in ("default", "judge", "elsewhere/mrnn", "clip:openai/mrnn", "clip:mrnn", "mrnn.v1"):
        assert find_run(name) == name
    (runs / "judge").mkdir()
    (runs / "judge" / "recipe.toml").touch()
    assert find_run("judge") == "judge", "the one that ships"
    with pytest.raises(TellapartError, match="the recipe meshed-flickr8k was not trained here"):
        find_run("meshed-flickr8k")
    assert find_run(str(runs / "mrnn")) == str(runs / "mrnn")
    assert is_retriever("judge")
    assert is_retriever("clip:somewhere")
    assert is_retriever(str(runs / "dual"))
    assert is_retriever(str(runs / "dual" / "retriever"))
    assert not is_retriever(str(runs / "mrnn"))
    assert not is_retriever(str(tiny_captioner))
    assert not is_retriever("default")


def test_what_is_there_twice_is_never_found_first(scenes: Path, tmp_path: Path) -> None:
    """Equal pictures with equal captions tie, and a tie counts as lost."""
    lines = []
    for number, picture in enumerate(sorted((scenes / "images").iterdir())[:40] * 2):
        shutil.copy(picture, tmp_path / f"{number}.png")
        lines.append({"image": f"{number}.png", "caption": f"a red circle {number % 40}", "split": "test"})
    (tmp_path / "twice.jsonl").write_text("\n".join(map(json.dumps, lines)))
    judge = write_tiny_dual(tmp_path / "tiny", [line["caption"] for line in lines])
    changes = [f"data.path={tmp_path / 'twice.jsonl'}", f"data.images={tmp_path}", "data.format=jsonl"]
    recipe = load_experiment("retriever-shapes", changes=changes)
    tables = retrieve(str(judge), Wish(), watch=unwatched, recipe=recipe)
    assert (tables.images, tables.captions) == (80, 80)
    assert [found.to_json()["R@1"] for found in tables.found] == [0, 0]


def test_equation_7_helps_on_real_photographs(real_data: Path) -> None:
    recipe = load_recipe("mrnn-flickr8k", changes=[f"data.root={real_data}"])
    wish = Wish(images=20, normalise=("plain", "eq7"), samples=20)
    tables = retrieve("default", wish, watch=unwatched, recipe=recipe)
    plain, eq7, images = (found.to_json() for found in tables.found)
    assert (tables.images, tables.captions) == (20, 100)
    assert eq7["R@1"] > plain["R@1"] + 0.1
    assert images["R@1"] > 0.5
