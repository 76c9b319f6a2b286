"""The page of pictures and captions needs no other file, no network, and takes any text."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.report.page import Page

from tellapart.captioning import Candidate, Captioned
from tellapart.report.gallery import SIDE, write_gallery

NASTY = ["<b>&.png", "\"quoted' name.png", "größe 写真.png", "{{ 7 * 7 }}.png"]


def captioned(path: Path, *captions: str, size: tuple[int, int] = (80, 60)) -> Captioned:
    Image.new("RGB", size, "teal").save(path)
    return Captioned(
        path, path.stem, tuple(Candidate(caption, -float(rank)) for rank, caption in enumerate(captions, 1))
    )


@pytest.fixture
def page(tmp_path: Path) -> Page:
    results = [captioned(tmp_path / name, f"says <i>{name}</i> & more", "second </li>") for name in NASTY]
    write_gallery(tmp_path / "page.html", results, title="A <title> & more", model="my <model>")
    return Page(tmp_path / "page.html")


def test_each_picture_stands_on_the_page_with_all_its_text(page: Page) -> None:
    assert len(page.pictures) == len(NASTY)
    assert [picture["alt"] for picture in page.pictures] == [f"says <i>{name}</i> & more" for name in NASTY]
    for name in NASTY:
        assert name in page.texts
        assert f"says <i>{name}</i> & more" in page.texts
    assert page.texts.count("second </li>") == len(NASTY)
    assert "A <title> & more" in page.texts
    assert any("my <model>" in text for text in page.texts)


def test_no_text_becomes_a_tag(page: Page) -> None:
    assert {"b", "i", "model"}.isdisjoint(tag for tag, _ in page.tags)
    assert [tag for tag, _ in page.tags].count("title") == 1


def test_the_page_loads_nothing(page: Page) -> None:
    assert {"script", "link", "iframe", "base"}.isdisjoint(tag for tag, _ in page.tags)
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert name not in ("href", "srcset", "style", "background")
            if name == "src":
                assert (tag, str(value).partition(",")[0]) == ("img", "data:image/jpeg;base64")
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts))


def test_pictures_are_shrunk_and_keep_their_shape(tmp_path: Path) -> None:
    large, small = (
        captioned(tmp_path / f"{size[0]}.png", "a", size=size) for size in ((1200, 400), (30, 20))
    )
    write_gallery(tmp_path / "page.html", [large, small], title="t", model="m")
    sizes = []
    for picture in Page(tmp_path / "page.html").pictures:
        data = base64.b64decode(str(picture["src"]).partition(",")[2])
        shown = Image.open(io.BytesIO(data))
        assert (str(shown.width), str(shown.height)) == (picture["width"], picture["height"])
        sizes.append(shown.size)
    assert sizes == [(SIDE, SIDE // 3), (30, 20)]


def test_a_picture_that_has_gone_is_left_out(tmp_path: Path) -> None:
    stays, goes = captioned(tmp_path / "stays.png", "one"), captioned(tmp_path / "goes.png", "two")
    goes.image.unlink()
    write_gallery(tmp_path / "page.html", [goes, stays], title="t", model="m")
    assert [picture["alt"] for picture in Page(tmp_path / "page.html").pictures] == ["one"]


def test_results_are_taken_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "page.html"

    def results() -> Iterator[Captioned]:
        for number in range(3):
            # Only what is on its way to the page is kept: the file grows while results come.
            assert not path.exists()
            yield captioned(tmp_path / f"{number}.png", f"number {number}")

    write_gallery(path, results(), title="t", model="m")
    assert len(Page(path).pictures) == 3


def test_an_unfinished_page_takes_no_ones_place(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("the old page")

    def results() -> Iterator[Captioned]:
        yield captioned(tmp_path / "one.png", "one")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_gallery(path, results(), title="t", model="m")
    assert path.read_text() == "the old page"
    assert {file.name for file in tmp_path.iterdir()} == {"page.html", "one.png"}
