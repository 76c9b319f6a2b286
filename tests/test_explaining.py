"""A caption is explained by what its retriever, its captioner and its attention themselves say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float64
from PIL import Image
from tests.captioners.pretrained.checkpoints import write_tiny
from tests.captioners.tiny_folder import LONGEST, write_tiny_captioner
from tests.retrievers.simple_retriever import SimpleRetriever

from tellapart.captioners.attention_maps import SENTINEL, SIGN
from tellapart.captioning import Describer, load
from tellapart.errors import TellapartError
from tellapart.explaining import CANDIDATES, HELPFUL, explain, find_looks, see_picture
from tellapart.explanation import Explanation
from tellapart.types import Prediction
from tellapart.vision.patches import CELLS
from tellapart.word_penalties import predict_words, spell

CAPTION = "a red dog and the blue picture of a field"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path_factory.mktemp("own cache")))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("captioners")
    return {
        name: write_tiny_captioner(folder / name, name)
        for name in ("mrnn", "adaptive", "topdown", "transformer", "meshed")
    }


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Eight pictures of nine random fields."""
    folder = tmp_path / "photos"
    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(8):
        Image.fromarray(random.integers(0, 256, (3, 3, 3), np.uint8)).resize(
            (36, 24), Image.Resampling.NEAREST
        ).save(folder / f"{number}.png")
    return folder


def explained(
    image: Path, captioner: Path, caption: str | None = CAPTION, neighbours: int = 3
) -> Explanation:
    return explain(
        image, caption=caption, captioner=str(captioner), by=SimpleRetriever(), neighbours=neighbours
    )


def by_hand(sentence: str, found: Explanation) -> tuple[float, float]:
    """Closeness and margin of any sentence about that picture."""
    own, *rivals = SimpleRetriever().scores([sentence], [found.image, *(each.path for each in found.rivals)])[
        0
    ]
    return float(own), float(own - max(rivals))


def test_leaving_a_word_out_is_asking_the_retriever_about_the_shorter_sentence(
    photos: Path, folders: dict[str, Path]
) -> None:
    found = explained(photos / "2.png", folders["mrnn"])
    assert (found.caption, found.is_given, found.others, len(found.rivals)) == (CAPTION, True, 7, 3)
    assert found.margin is not None
    whole = by_hand(CAPTION, found)
    assert (found.closeness, found.margin) == pytest.approx(whole, abs=1e-6)
    words = CAPTION.split()
    assert [word.text for word in found.words] == words
    for place, word in enumerate(found.words):
        without = by_hand(" ".join(words[:place] + words[place + 1 :]), found)
        assert word.closeness_drop == pytest.approx(whole[0] - without[0], abs=1e-6)
        assert word.margin_drop == pytest.approx(whole[1] - without[1], abs=1e-6)
    drops = [found.words[place].margin_drop or 0.0 for place in found.ranking]
    assert sorted(found.ranking) == list(range(len(words)))
    assert drops == sorted(drops, reverse=True)
    assert drops[0] > drops[-1]


def test_the_strongest_rival_is_the_one_that_the_caption_is_closest_to(
    photos: Path, folders: dict[str, Path]
) -> None:
    found = explained(photos / "2.png", folders["mrnn"], neighbours=7)
    scores = SimpleRetriever().scores([CAPTION], [rival.path for rival in found.rivals])[0]
    assert [rival.closeness for rival in found.rivals] == pytest.approx(scores.tolist(), abs=1e-6)
    assert found.strongest is found.rivals[int(scores.argmax())]
    assert [rival.likeness for rival in found.rivals] == sorted(
        (rival.likeness for rival in found.rivals), reverse=True
    )


@pytest.mark.parametrize("name", ["mrnn", "transformer"])
def test_without_a_caption_the_captioner_writes_one_as_ever(
    name: str, photos: Path, folders: dict[str, Path]
) -> None:
    found = explained(photos / "2.png", folders[name], None)
    describer = load(folders[name])
    (written,) = describer.caption_each([photos / "2.png"], describer.wish())
    assert not isinstance(written, TellapartError)
    assert (found.caption, found.is_given) == (written.caption, False)
    cost = sum(word.penalty.mle for word in found.words) + found.end.mle
    assert cost == pytest.approx(-written.candidates[0].logprob, abs=1e-4)


def test_words_that_help_are_those_of_other_candidates_that_raise_the_margin(
    photos: Path, folders: dict[str, Path]
) -> None:
    found = explained(photos / "2.png", folders["transformer"], "a dog")
    describer = load(folders["transformer"])
    (written,) = describer.caption_each([photos / "2.png"], describer.wish(keep=CANDIDATES))
    assert not isinstance(written, TellapartError)
    thought = {word for candidate in written.candidates for word in candidate.caption.split()} - {"a", "dog"}
    before = by_hand("a dog", found)[1]
    gains = {word: by_hand(f"a dog {word}", found)[1] - before for word in thought}
    expected = sorted((word for word in thought if gains[word] > 1e-6), key=lambda word: -gains[word])
    assert [each.word for each in found.helpful] == expected[:HELPFUL]
    assert [each.gain for each in found.helpful] == pytest.approx(
        [gains[each.word] for each in found.helpful], abs=1e-6
    )
    assert found.helpful


@pytest.mark.parametrize("name", ["adaptive", "topdown", "transformer", "meshed"])
def test_where_it_looked_is_what_its_last_layer_attended_to(
    name: str, photos: Path, folders: dict[str, Path]
) -> None:
    found = explained(photos / "2.png", folders[name], "a t-shirt dog")
    describer = load(folders[name])
    spelled = spell(describer.saved.captioner.text, "a t-shirt dog")
    vision = see_picture(photos / "2.png", describer)
    weights = predict_words(describer.saved.captioner, vision, spelled).attention[-1][0, 0].mean(0).double()
    for word, places in zip(found.words, ([0], [1, 2], [3]), strict=True):
        assert word.look is not None
        mean = weights[places].mean(0).numpy()
        np.testing.assert_allclose(word.look.map.ravel(), mean[: CELLS * CELLS], atol=1e-6)
        assert word.look.map.sum() + sum(word.look.elsewhere.values()) == pytest.approx(1, abs=1e-5)
        assert list(word.look.elsewhere) == [SENTINEL] * (name == "adaptive")
    assert not any("attention" in note for note in found.notes)


def lit(place: int, describer: Describer) -> Float64[np.ndarray, "rows columns"]:
    """The map of a made-up attention, all of it on one column."""
    attention = torch.zeros(1, 1, 2, 1, CELLS * CELLS)
    attention[..., place] = 1
    looks, note = find_looks(Prediction(torch.zeros(1, 1, 1, 5), attention=(attention,)), describer)
    assert note == ""
    assert looks is not None
    return np.asarray(looks.maps[0])


def test_each_corner_of_attention_is_that_corner_of_the_picture(folders: dict[str, Path]) -> None:
    describer = load(folders["topdown"])
    last = CELLS - 1
    for place, corner in ((0, (0, 0)), (last, (0, last)), (CELLS * last, (last, 0)), (-1, (last, last))):
        expected = np.zeros((CELLS, CELLS))
        expected[corner] = 1
        assert (lit(place, describer) == expected).all()


def test_a_captioner_without_attention_explains_the_rest(photos: Path, folders: dict[str, Path]) -> None:
    found = explained(photos / "2.png", folders["mrnn"])
    name = str(folders["mrnn"])
    assert found.notes == (f"the captioner {name!r} has no attention over the picture: no maps",)
    assert all(word.look is None and word.penalty.mle > 0 for word in found.words)


@pytest.mark.parametrize(("kind", "looks"), [("blip", True), ("vit-gpt2", True), ("git", False)])
def test_pretrained_captioners_are_explained_in_whole_words(
    kind: str, looks: bool, photos: Path, tmp_path: Path
) -> None:
    checkpoint = write_tiny(kind, tmp_path / "checkpoint")
    caption = "two dogs, running over greenish tables"
    found = explain(photos / "2.png", caption=caption, captioner=f"{kind}:{checkpoint}", by=SimpleRetriever())
    assert [word.text for word in found.words] == caption.split()
    for word in found.words:
        assert (word.look is not None) == looks
        if word.look is not None:
            assert word.look.map.shape == (2, 2)
            assert list(word.look.elsewhere) == [SIGN]
            assert word.look.map.sum() + word.look.elsewhere[SIGN] == pytest.approx(1, abs=1e-5)
    written = explain(photos / "2.png", captioner=f"{kind}:{checkpoint}", by=SimpleRetriever())
    assert written.caption == load(f"{kind}:{checkpoint}").caption(photos / "2.png")


def test_as_json_it_is_plain(photos: Path, folders: dict[str, Path]) -> None:
    found = explained(photos / "2.png", folders["adaptive"])
    read = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert read["caption"] == CAPTION
    assert [word["word"] for word in read["words"]] == CAPTION.split()
    assert set(read["words"][1]) == {
        *("word", "known", "closeness_drop", "margin_drop", "mle", "smile", "likeliest", "likeliest_own"),
        "attention",
    }
    assert np.array(read["words"][1]["attention"]["map"]).shape == (CELLS, CELLS)
    assert read["strongest_rival"] in [rival["image"] for rival in read["rivals"]]
    assert read["ranking"] == found.ranking


def test_a_picture_alone_in_its_folder_has_no_margin(tmp_path: Path, folders: dict[str, Path]) -> None:
    Image.new("RGB", (30, 20), "red").save(tmp_path / "alone.png")
    found = explained(tmp_path / "alone.png", folders["transformer"], "a red dog")
    assert (found.margin, found.rivals, found.strongest, found.helpful) == (None, (), None, ())
    assert found.notes == (f"{tmp_path} holds no other picture: without a rival the margin has no meaning",)
    scores = SimpleRetriever().scores(["a red dog", "red dog", "a dog", "a red"], [found.image])[:, 0]
    assert [word.closeness_drop for word in found.words] == pytest.approx(
        (scores[0] - scores[1:]).tolist(), abs=1e-6
    )
    assert [word.margin_drop for word in found.words] == [None] * 3
    assert found.ranking[0] == 1
    assert all(word.look is not None and word.penalty.mle > 0 for word in found.words)
    json.dumps(found.to_json(), allow_nan=False)


def test_pictures_that_are_all_the_same_are_no_rivals(tmp_path: Path, folders: dict[str, Path]) -> None:
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (30, 20), "red").save(tmp_path / name)
    found = explained(tmp_path / "b.png", folders["topdown"], "a red dog")
    assert found.margin is None
    assert found.notes[0] == (
        f"2 other files in {tmp_path} hold the same picture, which no words tell apart: no rivals"
    )
    Image.new("RGB", (60, 40), "red").save(tmp_path / "large.png")
    found = explained(tmp_path / "b.png", folders["topdown"], "a red dog")
    assert found.margin == pytest.approx(0, abs=1e-6)
    assert found.rivals[0].is_near
    assert (
        f"{tmp_path / 'large.png'} is nearly the same picture: perhaps no words tell them apart"
        in found.notes
    )
    assert [word.margin_drop for word in found.words] == pytest.approx([0, 0, 0], abs=1e-6)


def test_more_neighbours_than_there_are_take_all(photos: Path, folders: dict[str, Path]) -> None:
    found = explained(photos / "2.png", folders["topdown"], neighbours=8)
    assert len(found.rivals) == 7
    assert found.notes == (f"{photos} holds 7 other pictures: all are rivals",)
    assert explained(photos / "2.png", folders["topdown"], neighbours=7).notes == ()


def test_a_single_word_adds_what_nobody_can_say(photos: Path, folders: dict[str, Path]) -> None:
    found = explained(photos / "2.png", folders["topdown"], "dog")
    (word,) = found.words
    assert (word.closeness_drop, word.margin_drop, found.ranking) == (None, None, [])
    assert word.penalty.mle == word.penalty.smile > 0
    assert found.margin == pytest.approx(by_hand("dog", found)[1], abs=1e-6)
    assert found.notes == (
        "without its only word nothing is left of the caption: what the word adds is not defined",
    )


def test_words_that_somebody_does_not_know_are_named(photos: Path, folders: dict[str, Path]) -> None:
    found = explained(photos / "2.png", folders["topdown"], "a zebra, a runs and Zebra, shirt")
    assert [word.text for word in found.words if not word.is_known] == ["zebra,", "runs", "Zebra,"]
    about_captioner, about_retriever = found.notes
    assert about_captioner.startswith(
        "the captioner cannot write 'zebra,', 'runs', 'Zebra,': it reads an unknown word there"
    )
    assert about_retriever == "the retriever 'simple' does not know 'zebra', 'shirt'"


@pytest.mark.parametrize(
    ("caption", "said"),
    [("", "no word"), ("?", "no word"), ("dog " * (LONGEST + 1), f"reads only {LONGEST}")],
)
def test_captions_that_cannot_be_explained(
    caption: str, said: str, photos: Path, folders: dict[str, Path]
) -> None:
    with pytest.raises(TellapartError, match=said):
        explained(photos / "2.png", folders["topdown"], caption)


def test_pictures_and_folders_that_cannot_be_read(photos: Path, folders: dict[str, Path]) -> None:
    (photos / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    with pytest.raises(TellapartError, match=r"bad\.png is damaged"):
        explained(photos / "bad.png", folders["topdown"])
    with pytest.raises(TellapartError, match="does not exist"):
        explained(photos / "gone.png", folders["topdown"])
    with pytest.raises(TellapartError, match="is a folder"):
        explained(photos, folders["topdown"])
    found = explained(photos / "2.png", folders["topdown"])
    assert ["bad.png" in error.problem for error in found.problems] == [True]
    with pytest.raises(TellapartError, match="does not exist"):
        explain(photos / "2.png", photos / "nowhere", captioner=str(folders["topdown"]), by=SimpleRetriever())


def test_another_folder_gives_other_rivals(photos: Path, tmp_path: Path, folders: dict[str, Path]) -> None:
    (tmp_path / "elsewhere").mkdir()
    image = tmp_path / "elsewhere" / "image.png"
    Image.new("RGB", (30, 20), "green").save(image)
    found = explain(image, photos, captioner=str(folders["topdown"]), by=SimpleRetriever(), neighbours=2)
    assert (found.folder, found.others) == (photos, 8)
    assert all(rival.path.parent == photos for rival in found.rivals)
