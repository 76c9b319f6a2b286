"""An audit finds what is wrong with captions, and stands what folders and files are like."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.retrievers.simple_retriever import COLOURS, SimpleRetriever

from tellapart.audit_findings import Audit
from tellapart.auditing import Terms, audit
from tellapart.errors import TellapartError
from tellapart.retrievers.rivals import Contest


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path_factory.mktemp("own cache")))


def field(path: Path, *colours: str) -> Path:
    """A picture of one colour, or of stripes."""
    picture = Image.new("RGB", (12, 12))
    for number, colour in enumerate(colours):
        picture.paste(COLOURS[colour], (0, 12 * number // len(colours), 12, 12))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for colour in COLOURS:
        field(tmp_path / "photos" / f"{colour}.png", colour)
    return tmp_path / "photos"


def written(folder: Path, captions: dict[str, Any], name: str = "captions.jsonl") -> Path:
    lines = [
        json.dumps({"image": image, "captions": said if isinstance(said, list) else [said]})
        for image, said in captions.items()
    ]
    (folder.parent / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder.parent / name


def looked(captions: Path, folder: Path | None = None, **contest: Any) -> Audit:
    return audit(captions, folder, by=SimpleRetriever(), terms=Terms(Contest(**contest)))


def right(*but: str) -> dict[str, Any]:
    return {f"{colour}.png": f"the {colour} field" for colour in COLOURS if colour not in but}


def test_captions_that_say_all_find_their_pictures(photos: Path) -> None:
    found = looked(written(photos, right()), photos)
    assert found.recalls is not None
    assert found.recalls.whole.to_json() == {
        "captions": 6,
        "R@1": 1.0,
        "R@5": 1.0,
        "mean_rank": 1.0,
        "median_rank": 1.0,
    }
    assert found.recalls.whole == found.recalls.nearby == found.recalls.fair_whole
    assert found.missed == []
    assert found.confused == found.astray == ()
    assert found.wording.shared == found.near_duplicates == ()
    assert found.wording.repeating == found.wording.broken_off == ()
    assert found.notes == ("each picture has but 5 neighbours",)


def test_a_confused_pair_stands_there_with_words_for_both(photos: Path) -> None:
    field(photos / "dark.png", "red", "red", "black")
    field(photos / "pale.png", "red", "red", "white")
    captions = right() | {"dark.png": "a red field", "pale.png": "the red picture"}
    found = looked(written(photos, captions), photos)
    assert found.standing is not None
    assert [found.material.captions[row].image_id for row in found.missed] == ["pale", "dark"]
    by_picture = {found.material.names[pair.own.picture]: pair for pair in (*found.confused, *found.astray)}
    pair = by_picture["pale.png"]
    assert found.material.names[pair.found.picture] == "red.png"
    assert pair.own.margin is not None
    assert pair.own.margin < 0
    assert pair.own.words[0].word == "white"
    assert pair.own.words[0].margin > pair.own.margin
    assert "white" not in [word.word for word in pair.found.words]
    seen = found.to_json()["confused"][0]
    assert seen["picture"]["image"] in (str(photos / "pale.png"), str(photos / "dark.png"))
    assert seen["found"]["image"] == str(photos / "red.png")
    assert seen["picture"]["separating_words"][0].keys() == {"word", "gain", "margin"}


def test_two_that_take_each_other_are_one_pair(photos: Path) -> None:
    swapped = right("red", "blue") | {"red.png": "a blue field", "blue.png": "a red field"}
    found = looked(written(photos, swapped), photos)
    assert len(found.missed) == 2
    assert len(found.confused) == 1
    assert found.astray == ()
    assert found.confused[0].is_mutual
    none = audit(written(photos, swapped), photos, by=SimpleRetriever(), terms=Terms(pairs=0))
    assert none.confused == none.astray == ()
    assert len(none.missed) == 2


def test_shared_captions_are_equal_but_for_case_and_punctuation(photos: Path) -> None:
    captions = dict.fromkeys(["red.png", "blue.png", "black.png"], "A dog!") | {
        "red.png": " a  DOG",
        "white.png": "the dog",
        "green.png": "the dog.",
        "yellow.png": "yellow grass",
    }
    found = looked(written(photos, captions), photos)
    images = [group["images"] for group in found.to_json()["shared_captions"]]
    assert [[Path(image).stem for image in group] for group in images] == [
        ["red", "blue", "black"],
        ["white", "green"],
    ]
    assert found.generic[0] != found.generic[1]
    assert len(found.generic) == 3  # what is said twice is named once


def test_generic_is_what_fits_many_pictures(photos: Path) -> None:
    found = looked(written(photos, right("red") | {"red.png": "picture"}), photos)
    assert found.material.captions[found.generic[0]].caption == "picture"
    assert found.fits(found.generic[0]) > 3 > 1.5 > found.fits(found.generic[-1])


def test_loops_broken_ends_and_boiler_plate(photos: Path) -> None:
    captions = {
        "red.png": "there is a red field on the grass",
        "blue.png": "there is a blue blue field",
        "green.png": "there is a green dog on the grass",
        "white.png": "there is a white dog on the grass with a",
        "black.png": "black on the",
        "yellow.png": "yellow",
    }
    found = looked(written(photos, captions), photos)
    assert [Path(image).stem for image in found.to_json()["repeating"]] == ["blue"]
    assert [Path(image).stem for image in found.to_json()["broken_off"]] == ["white", "black"]
    assert [(each.text, each.captions) for each in found.wording.openers] == [("there is a", 4)]
    assert [(each.text, each.captions) for each in found.wording.fragments] == [
        ("there is a", 4),
        ("on the grass", 3),
    ]


def test_near_duplicates_are_named_and_not_counted_as_failures(photos: Path) -> None:
    (photos / "red again.png").write_bytes((photos / "red.png").read_bytes())
    Image.open(photos / "blue.png").resize((24, 24)).save(photos / "large blue.png")
    found = looked(written(photos, right() | {"red again.png": "red"}), photos)
    names = [[found.material.names[place] for place in group] for group in found.near_duplicates]
    assert sorted(names) == [["blue.png", "large blue.png"], ["red again.png", "red.png"]]
    assert found.recalls is not None
    assert found.recalls.fair_whole is not None
    assert found.recalls.whole.first == pytest.approx(4 / 7)
    assert found.recalls.fair_whole.first == 1
    assert found.recalls.fair_whole.captions == 7
    assert found.missed == []


@pytest.mark.parametrize("kind", ["coco", "csv", "sidecars", "jsonl"])
def test_any_format_gives_the_same_audit(photos: Path, kind: str) -> None:
    captions = right()
    source, folder = photos.parent / f"captions.{kind}", photos
    if kind == "coco":
        rows = [{"image_id": name[:-4], "caption": text} for name, text in captions.items()]
        source = photos.parent / "results.json"
        source.write_text(json.dumps(rows))
    elif kind == "csv":
        source.write_text("image,caption\n" + "\n".join(f"{name},{text}" for name, text in captions.items()))
    elif kind == "sidecars":
        source = photos
        for name, text in captions.items():
            (photos / name).with_suffix(".txt").write_text(text)
    else:
        source = written(photos, captions)
    found = audit(source, None if kind == "sidecars" else folder, by=SimpleRetriever())
    each = {Path(line["image"]).name: (line["caption"], line["rank"]) for line in found.to_json()["each"]}
    assert each == {name: (text, 1) for name, text in captions.items()}


def test_what_is_missing_is_counted_named_and_in_the_way(photos: Path) -> None:
    (photos / "bad.png").write_text("words")
    captions = right("black", "white") | {"gone.png": "gone", "bad.png": "bad", "white.png": "..."}
    found = looked(written(photos, captions), photos)
    plain = found.to_json()
    assert [each["image_id"] for each in plain["captions_left_out"]] == ["gone", "bad"]
    assert plain["images_without_captions"] == [str(photos / "black.png")]
    assert plain["images_with_empty_captions"] == [str(photos / "white.png")]
    assert plain["problems"] == [f"{photos / 'bad.png'} is not a picture of a known format"]
    assert (plain["captions"], plain["pictures"]) == (4, 6)
    assert found.standing is not None
    assert found.standing.rivals.tolist() == [5] * 4
    assert found.notes[:3] == (
        f"2 captions are left out: there is no picture of image 'gone' in {photos}; and 1 more",
        "1 picture has no caption: looked through all the same (black.png)",
        "1 picture has a caption without words: looked through all the same (white.png)",
    )
    wrong = looked(written(photos, right("black") | {"red.png": "black"}), photos)
    pair = wrong.to_json()["confused"][0]
    assert (pair["found"]["image"], pair["found"]["caption"]) == (str(photos / "black.png"), None)
    assert pair["found"]["margin"] is None
    # That of the two only the one is black, the caption of the other one says: it is taken at its word.
    assert [word["word"] for word in pair["found"]["separating_words"]] == ["green", "blue"]


def test_of_several_captions_the_first_is_audited_and_the_others_lend_words(photos: Path) -> None:
    captions = right("red") | {"red.png": ["blue", "red", "a red dog"]}
    found = looked(written(photos, captions), photos)
    assert "1 image has several captions: the first is audited" in found.notes
    (pair,) = found.confused
    assert pair.own.words[0].word == "red"
    assert found.to_json()["each"][-1]["caption"] == "blue"


def test_what_is_said_of_both_separates_neither(photos: Path) -> None:
    field(photos / "dark.png", "red", "red", "black")
    field(photos / "pale.png", "red", "red", "white")
    captions = right() | {"dark.png": "a red dog", "pale.png": "red white grass", "red.png": "red white"}
    found = looked(written(photos, captions), photos)
    for pair in (*found.confused, *found.astray):
        said = [
            set(found.material.captions[side.caption].words)
            for side in (pair.own, pair.found)
            if side.caption is not None
        ]
        named = {word.word for side in (pair.own, pair.found) for word in side.words}
        assert named
        assert named.isdisjoint(set().union(*said))


def test_one_picture(tmp_path: Path) -> None:
    folder = field(tmp_path / "photos" / "red.png", "red").parent
    found = looked(written(folder, {"red.png": "blue blue with a"}), folder)
    assert found.standing is None
    assert found.missed == found.generic == []
    plain = found.to_json()
    assert plain["recalls"] is None
    assert plain["repeating"] == plain["broken_off"] == [str(folder / "red.png")]
    assert any("but one picture" in note for note in plain["notes"])


def test_all_pictures_the_same(tmp_path: Path) -> None:
    for name in "abc":
        folder = field(tmp_path / "photos" / f"{name}.png", "red").parent
    found = looked(written(folder, {f"{name}.png": "a red field" for name in "abc"}), folder)
    assert found.recalls is not None
    assert found.recalls.whole.first == found.recalls.nearby.first == 0
    assert found.recalls.fair_whole is None
    assert found.recalls.fair_nearby is None
    assert found.near_duplicates == ((0, 1, 2),)
    assert found.missed == []
    assert "3 captions of pictures that all others are near-duplicates of: " in found.notes[1]
    json.dumps(found.to_json(), allow_nan=False)


def test_one_neighbour(photos: Path) -> None:
    captions = written(photos, right("red") | {"red.png": "a dog on the grass"})
    few = looked(captions, photos, neighbours=1).standing
    many = looked(captions, photos, neighbours=5).standing
    assert few is not None
    assert many is not None
    assert few.rank.tolist() == many.rank.tolist() == many.rank_nearby.tolist()
    assert set(few.rank_nearby.tolist()) <= {0, 1}


def test_names_with_anything_in_them_and_a_loop_of_links(photos: Path) -> None:
    names = ["a b.png", "größe 写真.png", "two\nlines.png", '"quoted".png', "deep/er/x.png"]
    for name, colours in zip(names, ("red", "green", "blue", "white", "black"), strict=True):
        field(photos / name, colours, "yellow")
    field(photos / os.fsdecode(b"\xff.png"), "black", "white")
    (photos / "deep" / "loop").symlink_to(photos)
    found = looked(written(photos, right() | dict.fromkeys(names, "yellow")), photos)
    assert found.material.left_out == ()
    assert len(found.material.captions) == len(COLOURS) + len(names)
    assert len(found.material.names) == len(COLOURS) + len(names) + 1
    assert [found.material.names[place] for place in found.material.uncaptioned] == ["\udcff.png"]


def test_what_cannot_be_audited_is_an_error(photos: Path, tmp_path: Path) -> None:
    def expect(problem: str, captions: Path, folder: Path | None) -> None:
        with pytest.raises(TellapartError, match=problem):
            looked(captions, folder)

    good = written(photos, right())
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    (tmp_path / "nothing").mkdir()
    expect("there is no caption in it", empty, photos)
    expect("it is not said where the pictures", good, None)
    expect("nowhere does not exist", good, tmp_path / "nowhere")
    expect("has no pictures in it", good, tmp_path / "nothing")
    expect("none of its captions is of a picture in", written(photos, {"x.png": "x"}, "x.jsonl"), photos)
    expect("none of its captions has a word", written(photos, {"red.png": "!"}, "y.jsonl"), photos)
    (tmp_path / "nothing" / "bad.png").touch()
    expect("none of its pictures can be read", good, tmp_path / "nothing")


def test_the_author_is_known_where_the_file_says_it_or_the_user_does(
    photos: Path, tiny_captioner: Path
) -> None:
    lines = [
        json.dumps({"image": name, "caption": text, "model": str(tiny_captioner)})
        for name, text in right().items()
    ]
    source = photos.parent / "by.jsonl"
    source.write_text("\n".join(lines))
    found = looked(source, photos)
    assert found.author is not None
    assert found.to_json()["captioner"]["name"] == str(tiny_captioner)
    assert found.cautions == ()
    unknown = looked(written(photos, right()), photos)
    assert unknown.cautions == ("whether it taught the captioner is not known",)
    with pytest.raises(TellapartError, match="nobody"):
        audit(source, photos, by=SimpleRetriever(), terms=Terms(captioner="nobody"))


def test_the_judge_that_ships_on_photographs(real_data: Path, tmp_path: Path) -> None:
    """40 photographs, one of them twice, with what people wrote of them."""
    flickr = real_data / "flickr8k"
    names = (flickr / "Flickr_8k.testImages.txt").read_text().split()[:40]
    said: dict[str, str] = {}
    for line in (flickr / "captions.txt").read_text().splitlines()[1:]:
        name, _, caption = line.partition(",")
        said.setdefault(name, caption)
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(flickr / "images" / name)
    Image.open(folder / names[0]).save(folder / "again.jpg", quality=90)
    captions = {name: said[name] for name in names} | {"again.jpg": said[names[0]]}
    found = audit(written(folder, captions), folder)
    assert found.recalls is not None
    assert found.recalls.fair_whole is not None
    assert 0.3 < found.recalls.whole.first <= found.recalls.fair_whole.first < 1
    assert [{found.material.names[place] for place in group} for group in found.near_duplicates] == [
        {names[0], "again.jpg"}
    ]
    assert [len(rows) for rows in found.wording.shared] == [2]
    assert all(pair.own.words or pair.found.words for pair in (*found.confused, *found.astray))
    assert np.all(np.diff([pair.likeness for pair in found.confused]) <= 0)
