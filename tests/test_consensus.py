"""Captions chosen by consensus, by neighbours and by oracles: by hand, laws, and on drawn scenes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart import score
from tellapart.captioning import Wish, describe_corpus, load
from tellapart.consensus import (
    Consensus,
    Reranked,
    ScoredCaption,
    best_sets,
    caption_by_neighbours,
    rerank_by_consensus,
    rerank_by_oracle,
    unlike_sets,
)
from tellapart.corpus import build_corpus
from tellapart.data.readers import read_dataset
from tellapart.data.text import PRESETS
from tellapart.errors import TellapartError
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.picture_pools import Pictures
from tellapart.reranking import consensus as pure
from tellapart.training_neighbours import TrainingSet, gather_training_set, refined_sight, words_of

WAYS = [Consensus("cider"), Consensus("bleu"), Consensus("bleu", compat="authors")]
WORDS = ["a", "dog", "cat", "runs", "red", "on", "grass", "sits"]
spoken = st.lists(st.sampled_from(WORDS), min_size=4, max_size=7).map(" ".join)
groups = st.lists(st.lists(spoken, min_size=1, max_size=3), min_size=2, max_size=4)


def pictures(*places: float) -> Pictures:
    """Pictures on a line."""
    return Pictures(
        tuple(Path(f"{place}.png") for place in places),
        np.array(places, np.float32)[:, None],
        tuple(str(place).encode() for place in places),
    )


def line(*captions: tuple[str, ...]) -> TrainingSet:
    """Training pictures at 1, 2, 3 … on a line."""
    seen = pictures(*(float(place) for place in range(1, len(captions) + 1)))
    ids = tuple(f"train {row}" for row in range(len(captions)))
    return TrainingSet(ids, captions, seen, CountedCaptions.count([words_of(texts) for texts in captions]))


DOGS = ("a brown dog runs on grass", "a dog runs over the grass")
CATS = ("a black cat sits on a sofa", "the cat sits on the red sofa")


def test_the_neighbours_choose_by_hand() -> None:
    training = line(DOGS, DOGS, CATS, CATS)
    hypotheses = ["a cat sits on a sofa", "a dog runs on the grass"]
    for how in (Consensus("cider", 2), Consensus("bleu", 2), Consensus("bleu", 2, compat="authors")):
        near_dogs, near_cats = rerank_by_consensus([hypotheses] * 2, pictures(0.0, 9.0), training, how)
        assert near_dogs.caption == "a dog runs on the grass"
        assert near_dogs.neighbours == ("train 0", "train 1")
        assert near_cats.caption == "a cat sits on a sofa"
        assert near_cats.neighbours == ("train 3", "train 2")
        assert [one.caption for one in near_dogs.candidates] == hypotheses[::-1]


def test_scores_are_means_of_the_most_similar_by_hand() -> None:
    """Against F1 that is counted by hand: of the three captions one is the hypothesis itself."""
    training = line(("a dog runs on",), ("a cat runs on",), ("red sofa red sofa",))
    same, half = 1.0, np.mean([3 / 4, 1 / 3, 0, 0])
    for best, expected in ((1, same), (2, (same + half) / 2), (3, (same + half) / 3), (9, (same + half) / 3)):
        how = Consensus("bleu", neighbours=3, best=best, compat="authors")
        (found,) = rerank_by_consensus([["A dog runs on."]], pictures(0.0), training, how)
        assert found.candidates[0].score == pytest.approx(expected)


@pytest.mark.parametrize("how", WAYS)
@settings(max_examples=25)
@given(captions=groups, hypotheses=st.lists(spoken, min_size=1, max_size=4), data=st.data())
def test_order_changes_nothing(
    how: Consensus, captions: list[list[str]], hypotheses: list[str], data: st.DataObject
) -> None:
    asking = pictures(0.0)
    (before,) = rerank_by_consensus([hypotheses], asking, line(*map(tuple, captions)), how)
    mixed = data.draw(st.permutations(hypotheses))
    shuffled = data.draw(st.permutations([data.draw(st.permutations(group)) for group in captions]))
    (after,) = rerank_by_consensus([mixed], asking, line(*map(tuple, shuffled)), how)
    values = {one.caption: one.score for one in before.candidates}
    assert {one.caption: one.score for one in after.candidates} == pytest.approx(values)
    assert values[after.caption] == pytest.approx(values[before.caption])
    ordered = [one.score for one in before.candidates]
    assert ordered == pytest.approx(sorted(ordered, reverse=True))


@pytest.mark.parametrize("how", WAYS)
@settings(max_examples=25)
@given(common=spoken, hypotheses=st.lists(spoken, max_size=4))
def test_what_all_neighbours_say_wins(how: Consensus, common: str, hypotheses: list[str]) -> None:
    far = ("one two three four",)  # without another picture, words of all captions would weigh nothing
    training = line((common, common), (common,), far)
    how = Consensus(how.similarity, neighbours=2, compat=how.compat)
    (found,) = rerank_by_consensus([[*hypotheses, common]], pictures(0.0), training, how)
    assert found.caption == common


@pytest.mark.parametrize("how", WAYS)
def test_a_caption_that_comes_twice_ties_with_itself(how: Consensus) -> None:
    hypotheses = ["a cat sits", *DOGS, *DOGS]
    (found,) = rerank_by_consensus([hypotheses], pictures(0.0), line(DOGS, CATS), how)
    scores = {caption: [one.score for one in found.candidates if one.caption == caption] for caption in DOGS}
    assert all(first == second for first, second in scores.values())


@settings(max_examples=20)
@given(st.lists(groups, min_size=2, max_size=2), st.integers(1, 12), st.sampled_from(WAYS))
def test_pieces_change_nothing(both: list[list[list[str]]], pairs: int, how: Consensus) -> None:
    captions, hypotheses = both
    training = line(*map(tuple, captions))
    asking = pictures(*(0.1 * row for row in range(len(hypotheses))))
    whole = rerank_by_consensus(hypotheses, asking, training, how)
    alone = caption_by_neighbours(asking, training, how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pure, "PAIRS", pairs)
        assert same(rerank_by_consensus(hypotheses, asking, training, how), whole)
        assert same(caption_by_neighbours(asking, training, how), alone)


def same(some: list[Reranked], others: list[Reranked]) -> bool:
    """Alike but for the last digits, which hang on what is counted together."""
    return [one.caption for one in some] == [one.caption for one in others] and all(
        [found.score for found in one.candidates]
        == pytest.approx([found.score for found in other.candidates])
        for one, other in zip(some, others, strict=True)
    )


def test_empty_texts_agree_with_nothing() -> None:
    for how in WAYS:
        (found,) = rerank_by_consensus([["", "...", DOGS[0]]], pictures(0.0), line(DOGS, CATS, ("",)), how)
        assert found.caption == DOGS[0]
        assert [one.score for one in found.candidates[1:]] == pytest.approx([0, 0], abs=1e-6)


def test_captions_of_neighbours_by_hand() -> None:
    """Of what was said of the nearest, the one most like the rest; pictures beyond are not asked."""
    training = line((DOGS[0], "what a lovely day"), (DOGS[1],), (DOGS[0],), CATS)
    (found,) = caption_by_neighbours(pictures(0.0), training, Consensus("cider", 3))
    assert found.caption == DOGS[0]
    assert [one.caption for one in found.candidates] == [DOGS[0], DOGS[0], DOGS[1], "what a lovely day"]
    assert found.neighbours == ("train 0", "train 1", "train 2")
    assert caption_by_neighbours(pictures(), training) == []


def test_captions_of_neighbours_are_compared_with_all_but_themselves() -> None:
    training = line(DOGS, (CATS[0],), CATS)
    how = Consensus("bleu", neighbours=2, compat="authors", best=2)
    (found,) = caption_by_neighbours(pictures(0.0), training, how)
    everything = [*DOGS, CATS[0]]
    for one in found.candidates:
        others = list(everything)
        others.remove(one.caption)
        pool = line(*((other,) for other in others))
        (alone,) = rerank_by_consensus([[one.caption]], pictures(0.0), pool, how)
        assert one.score == pytest.approx(alone.candidates[0].score)


@pytest.mark.parametrize("by", ["CIDEr-D", "BLEU-4", "ROUGE-L"])
def test_an_oracle_finds_the_best_by_its_own_measure(by: str) -> None:
    references = [list(DOGS), list(CATS)]
    hypotheses = [[CATS[0], DOGS[0], "a dog runs"], ["a dog", "the cat sits on a sofa"]]
    found = rerank_by_oracle(hypotheses, references, by=by)
    assert [one.caption for one in found] == [DOGS[0], "the cat sits on a sofa"]
    assert [len(one.candidates) for one in found] == [3, 2]
    for captions in zip(*([one.candidates[0], one.candidates[-1]] for one in found), strict=True):
        texts = [one.caption for one in captions]
        each = score(texts, references, metrics=["bleu", "rouge", "cider"])[by].each
        assert each is not None
        assert [one.score for one in captions] == pytest.approx(each.tolist())


def test_an_oracle_that_cannot_tell_takes_the_first() -> None:
    (found,) = rerank_by_oracle([["zebra", "lion"]], [["a dog runs"]], by="BLEU-1")
    assert found.caption == "zebra"
    assert rerank_by_oracle([], []) == []


def test_best_sets_are_the_first_few() -> None:
    ranked = Reranked(tuple(ScoredCaption(str(rank), float(-rank)) for rank in range(6)))
    assert best_sets([ranked]) == [("0", "1", "2", "3", "4")]
    assert best_sets([ranked], 2) == [("0", "1")]
    for count in (0, 7):
        with pytest.raises(TellapartError, match=f"the {count} best of the 6"):
            best_sets([ranked], count)


def test_unlike_sets_pass_over_what_says_the_same() -> None:
    texts = ("a dog runs on the grass", "a dog runs on the green grass", "two cats sleep on a sofa", "a dog")
    images = [
        Reranked(tuple(ScoredCaption(text, 1.0 - rank / 10) for rank, text in enumerate(texts))),
        Reranked(tuple(ScoredCaption(text, 5.0) for text in reversed(texts))),
    ]
    assert unlike_sets(images, 2)[0] == (texts[0], texts[2])
    assert unlike_sets(images, 3, trade_off=0.0) == best_sets(images, 3)
    assert unlike_sets(images, 4, trade_off=1.0)[1][0] == texts[3]
    assert [sorted(found) for found in unlike_sets(images, 4)] == [sorted(texts)] * 2
    assert unlike_sets([], 2) == []
    with pytest.raises(TellapartError, match="the 5 best of the 4"):
        unlike_sets(images)


def test_a_record_as_plain_values() -> None:
    ranked = Reranked((ScoredCaption("a dog", 1.5), ScoredCaption("a cat", 0.5)), ("near", "far"))
    assert json.loads(json.dumps(ranked.to_json())) == {
        "caption": "a dog",
        "candidates": [{"caption": "a dog", "score": 1.5}, {"caption": "a cat", "score": 0.5}],
        "neighbours": ["near", "far"],
    }


def test_the_paper_settings() -> None:
    assert (Consensus("cider").neighbours, Consensus("cider").most_similar) == (60, 125)
    assert (Consensus("bleu").neighbours, Consensus("bleu").most_similar) == (60, 175)
    assert Consensus("bleu", best=3).most_similar == 3


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"similarity": "spice"}, "similarity is 'spice'"),
        ({"neighbours": 0}, "neighbours is 0"),
        ({"best": 0}, "best is 0"),
        ({"compat": "theirs"}, "compat is 'theirs'"),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, object], problem: str) -> None:
    with pytest.raises(TellapartError, match=problem):
        Consensus(**wrong)  # type: ignore[arg-type]


def test_what_does_not_fit_together_is_named() -> None:
    training = line(DOGS, CATS)
    with pytest.raises(TellapartError, match=r"0\.0\.png: .* no text"):
        rerank_by_consensus([[]], pictures(0.0), training)
    with pytest.raises(TellapartError, match=r"a text and no list"):
        rerank_by_consensus(["a dog"], pictures(0.0), training)
    with pytest.raises(TellapartError, match=r"there are 1 images, and a hypothesis or more of 2"):
        rerank_by_consensus([["a"], ["b"]], pictures(0.0), training)
    with pytest.raises(TellapartError, match=r"image 0: where its reference"):
        rerank_by_oracle([["a"]], [[]])
    with pytest.raises(TellapartError, match=r"by 'CIDER-D'(.|\n)*did you mean 'CIDEr-D'"):
        rerank_by_oracle([["a"]], [["a"]], by="CIDER-D")
    with pytest.raises(TellapartError, match=r"one training picture"):
        rerank_by_consensus([["a"]], pictures(0.0), line(DOGS))
    with pytest.raises(TellapartError, match=r"one training picture"):
        caption_by_neighbours(pictures(0.0), line(DOGS))


def test_on_drawn_scenes(scenes: Path, tiny_captioner: Path) -> None:
    """From picture files to captions; scenes that were trained on do not answer for themselves."""
    examples = read_dataset(scenes / "captions.jsonl", format="jsonl", images=scenes).strict()
    describer = load(tiny_captioner)
    corpus = build_corpus(
        examples[:8],
        text=describer.saved.captioner.text,
        rules=PRESETS["mrnn"],
        encoder=describer.encoder,
        parts=["pooled"],
        watch=lambda done, total: None,
    )
    found = describe_corpus(describer.saved, corpus, Wish(10, 8, keep=10), watch=lambda done, total: None)
    hypotheses = [[one.caption for one in candidates] for candidates in found]
    sight = refined_sight(describer)
    training, asking = gather_training_set(examples, sight), sight.look([one.path for one in examples[:8]])
    chosen = rerank_by_consensus(hypotheses, asking, training)
    for example, texts, one in zip(examples, hypotheses, chosen, strict=False):
        assert sorted(candidate.caption for candidate in one.candidates) == sorted(texts)
        assert len(one.neighbours) == len(examples) - 1
        assert example.image_id not in one.neighbours
    references = [list(example.captions) for example in examples[:8]]

    def cider(captions: list[str]) -> float:
        return score(captions, references, metrics=["cider"])["CIDEr-D"].corpus

    plain, best = [texts[0] for texts in hypotheses], rerank_by_oracle(hypotheses, references)
    assert cider([one.caption for one in best]) >= cider([one.caption for one in chosen]) > cider(plain)
    # What people say of similar scenes is better than the nonsense of a captioner that has learnt nothing.
    borrowed = caption_by_neighbours(asking, training, Consensus(neighbours=5))
    assert cider([one.caption for one in borrowed]) > cider([one.caption for one in chosen])
