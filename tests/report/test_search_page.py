"""The page of what was found needs no other file, no network, and takes any text."""

from __future__ import annotations

import base64
import io
import os
import re
from pathlib import Path

import pytest
from PIL import Image
from tests.report.page import Page

from tellapart.errors import TellapartError
from tellapart.report.search_page import write_search_page
from tellapart.report.thumbnails import SIDE, thumbnail
from tellapart.searching import CaptionHit, Found, Hit, Query

NASTY = ["<b>&.png", "\"quoted' name.png", "größe 写真.png", "{{ 7 * 7 }}.png"]


def drawn(path: Path, colour: str = "teal", size: tuple[int, int] = (80, 60)) -> Path:
    Image.new("RGB", size, colour).save(path)
    return path


def found_in(folder: Path, hits: tuple[Hit, ...], query: Query, *captions: CaptionHit) -> Found:
    return Found(query, folder, "my <retriever>", 12_345, hits, captions, (), ())


@pytest.fixture
def page(tmp_path: Path) -> Page:
    first = drawn(tmp_path / "first.png")
    hits = [
        Hit(
            drawn(tmp_path / name), name, 0.5 - place / 10, (f"says <i>{name}</i>", "second </p>"), like=first
        )
        for place, name in enumerate(NASTY)
    ]
    hits.append(Hit(first, "first.png", 0.0, same_as=tmp_path / NASTY[0]))
    query = Query(str(drawn(tmp_path / "<q>.png", "red")), tmp_path / "<q>.png")
    lines = (
        CaptionHit("a <caption> & more", 0.25, ("<x>.png", "y.png", "z.png")),
        CaptionHit("one", 0.1, ("a",)),
    )
    write_search_page(tmp_path / "page.html", found_in(tmp_path, tuple(hits), query, *lines))
    return Page(tmp_path / "page.html")


def test_each_hit_stands_on_the_page_with_all_that_is_known(page: Page) -> None:
    assert len(page.pictures) == 1 + len(NASTY) + 1
    asked, *shown = page.pictures
    assert asked["alt"] == "the picture that was asked for"
    assert [picture["alt"] for picture in shown] == [*(f"says <i>{name}</i>" for name in NASTY), "first.png"]
    for name in NASTY:
        assert name in page.texts
        assert f"says <i>{name}</i>" in page.texts
    assert page.texts.count("second </p>") == len(NASTY)
    assert [text for text in page.texts if re.fullmatch(r"-?\d\.\d{3}", text)] == [
        *("0.500", "0.400", "0.300", "0.200", "0.000"),
        *("0.250", "0.100"),
    ]
    assert sum(text.startswith("nearly the same as ") for text in page.texts) == len(NASTY)
    assert sum(text.startswith("same picture as ") for text in page.texts) == 1
    assert "<q>.png" in page.texts
    assert any("12,345" in text and "my <retriever>" in text for text in page.texts)


def test_captions_stand_below(page: Page) -> None:
    assert "The nearest captions" in page.texts
    assert "a <caption> & more" in page.texts
    assert "<x>.png and 2 more" in page.texts
    assert "a" in page.texts


def test_no_text_becomes_a_tag_and_nothing_is_loaded(page: Page) -> None:
    assert {"q", "caption", "x", "retriever", "script", "link", "iframe", "base"}.isdisjoint(
        tag for tag, _ in page.tags
    )
    assert [tag for tag, _ in page.tags].count("title") == 1
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert name not in ("href", "srcset", "style", "background")
            if name == "src":
                assert (tag, str(value).partition(",")[0]) == ("img", "data:image/jpeg;base64")
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts))


def test_a_sentence_shows_no_picture_of_its_own_and_no_captions(tmp_path: Path) -> None:
    hit = Hit(drawn(tmp_path / "a.png"), "a.png", 1.0)
    write_search_page(tmp_path / "page.html", found_in(tmp_path, (hit,), Query("a <dog>")))
    page = Page(tmp_path / "page.html")
    assert len(page.pictures) == 1
    assert page.texts.count("a <dog>") == 1
    assert "a <dog> – tellapart" in page.texts
    assert "The nearest captions" not in page.texts


def test_a_picture_that_has_gone_is_left_out_and_ranks_stay(tmp_path: Path) -> None:
    gone, stays = drawn(tmp_path / "gone.png"), drawn(tmp_path / "stays.png")
    gone.unlink()
    hits = (Hit(gone, "gone.png", 0.9), Hit(stays, "stays.png", 0.8))
    write_search_page(tmp_path / "page.html", found_in(tmp_path, hits, Query("dog")))
    page = Page(tmp_path / "page.html")
    assert [picture["alt"] for picture in page.pictures] == ["stays.png"]
    assert "2" in page.texts
    assert "1" not in page.texts


def test_names_that_are_no_text_are_spelt_out(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.png")
    hit = Hit(drawn(tmp_path / name), name, 1.0)
    write_search_page(tmp_path / "page.html", found_in(tmp_path, (hit,), Query("dog")))
    assert "\\udcff.png" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_thumbnails_are_small_and_keep_their_shape(tmp_path: Path) -> None:
    for size, expected in (((1200, 400), (SIDE, SIDE // 3)), ((30, 20), (30, 20))):
        small = thumbnail(drawn(tmp_path / "a.png", size=size))
        shown = Image.open(io.BytesIO(base64.b64decode(small.uri.partition(",")[2])))
        assert (small.width, small.height) == shown.size == expected
        assert shown.format == "JPEG"
    with pytest.raises(TellapartError, match="does not exist"):
        thumbnail(tmp_path / "gone.png")
