"""The page of an audit needs no other file, no network, takes any text, and stays small."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.report.page import Page
from tests.retrievers.colour_retriever import ColourRetriever, paint

from tellapart.audit_findings import Audit
from tellapart.auditing import Terms, audit
from tellapart.report.audit_page import EACH, GROUPS, LINES, write_audit_page

NASTY = ["<b>&.png", "\"quoted' name.png", "größe 写真.png", "{{ 7 * 7 }}.png", "two\nlines.png"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path_factory.mktemp("own cache")))


def audited(folder: Path, captions: dict[str, str], terms: Terms | None = None) -> Audit:
    source = folder.parent / "captions.jsonl"
    rows = [json.dumps({"image": name, "caption": text}) for name, text in captions.items()]
    source.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return audit(source, folder, by=ColourRetriever(), terms=terms)


def page_of(found: Audit) -> Page:
    path = found.source.parent / "audit.html"
    write_audit_page(path, found)
    return Page(path)


def text_of(page: Page) -> str:
    return " ".join("".join(page.texts).split())


@pytest.fixture
def full(tmp_path: Path) -> Audit:
    """Everything an audit can find, under names that a page must stand."""
    folder = tmp_path / "photos"
    colours = (("red",), ("green",), ("blue", "white"), ("yellow",), ("purple",))
    for name, stripes in zip(NASTY, colours, strict=True):
        paint(folder / name, *stripes)
    paint(folder / "copy.png", "red")
    paint(folder / "alone.png", "white")
    paint(folder / "swap.png", "red", "green")
    (folder / "broken <i>.png").write_text("words")
    captions = dict.fromkeys(NASTY[:3], "a <script>alert(1)</script> red red with a") | {
        NASTY[3]: "yellow & {{ 7 * 6 }}",
        NASTY[4]: "green",
        "swap.png": "a green thing",
        "copy.png": "red",
        "gone <u>.png": "gone",
    }
    return audited(folder, captions)


def test_all_that_was_found_stands_on_the_page(full: Audit) -> None:
    page = page_of(full)
    text = text_of(page)
    assert full.recalls is not None
    assert f"{100 * full.recalls.whole.first:.1f} %" in page.texts
    for heading in ("Look-alikes that are confused", "Shared captions", "Generic captions", "Boiler-plate"):
        assert heading in page.texts
    for heading in ("Loops and broken ends", "Near-duplicate pictures", "What could not be audited"):
        assert heading in page.texts
    assert "near-duplicates aside" in text
    assert "a <script>alert(1)</script> red red with a" in text
    assert "yellow & {{ 7 * 6 }}" in text
    assert "Captions that repeat themselves: 3" in text
    assert "Captions that break off: 3" in text
    assert "Pictures without a caption: 1alone.png" in text
    assert "Captions left out: 1gone <u>" in text
    assert "broken <i>.png is not a picture of a known format" in text
    for pair in (*full.confused, *full.astray):
        for side in (pair.own, pair.found):
            assert full.material.names[side.picture].replace("\n", " ") in text
            assert all(word.word in page.texts for word in side.words)
    twins = sum(map(len, full.near_duplicates))
    assert twins == 4
    assert len(page.pictures) == 2 * len(full.confused) + 2 * len(full.astray) + 3 + twins
    assert [tag for tag, _ in page.tags].count("svg") == 3


def test_no_text_becomes_a_tag_and_nothing_is_loaded(full: Audit) -> None:
    page = page_of(full)
    assert {"script", "u", "link", "iframe", "base", "form"}.isdisjoint(tag for tag, _ in page.tags)
    assert [tag for tag, _ in page.tags].count("html") == 1
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("srcset", "background", "xlink:href")
            if name == "href":
                assert (tag, str(value)[0]) == ("a", "#")
                assert str(value)[1:] in ids
            if name == "src":
                assert (tag, str(value).partition(",")[0]) == ("img", "data:image/jpeg;base64")
            if name == "style":
                assert re.fullmatch(r"width:[\d.]+%", str(value))
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts))


def test_good_captions_are_told_so(tmp_path: Path) -> None:
    for colour in ("red", "green", "blue"):
        paint(tmp_path / "photos" / f"{colour}.png", colour)
    found = audited(tmp_path / "photos", {f"{colour}.png": colour for colour in ("red", "green", "blue")})
    page = page_of(found)
    assert "100.0 %" in page.texts
    assert "None: every caption finds its picture before all that words could tell from it." in page.texts
    assert "None: no two pictures have the same caption." in page.texts
    assert "What could not be audited" not in page.texts
    assert page.pictures == []


def test_one_picture_has_a_page_too(tmp_path: Path) -> None:
    paint(tmp_path / "photos" / "red.png", "red")
    page = page_of(audited(tmp_path / "photos", {"red.png": "red"}))
    assert "Generic captions" not in page.texts
    assert "There is but one picture" in text_of(page)
    assert [tag for tag, _ in page.tags].count("svg") == 1


def test_a_page_of_many_pictures_stays_small(tmp_path: Path) -> None:
    """Noise, of which no JPEG is small: only some of the pictures are shown, and those small."""
    folder = tmp_path / "photos"
    folder.mkdir()
    chance = np.random.default_rng(0)
    captions = {}
    for number in range(75):
        pixels = chance.integers(0, 255, (48, 48, 3)) * chance.random(3)
        Image.fromarray(pixels.astype(np.uint8)).resize((480, 360)).save(folder / f"{number}.jpg")
        captions[f"{number}.jpg"] = f"caption {number // 5}"
    found = audited(folder, captions)
    page = page_of(found)
    assert len(found.wording.shared) == 15
    assert len(page.pictures) <= 2 * len(found.confused) + 2 * len(found.astray) + 2 * GROUPS * EACH
    assert (found.source.parent / "audit.html").stat().st_size < 4_000_000
    assert [tag for tag, _ in page.tags].count("li") <= 6 * LINES


def test_pictures_that_have_gone_and_names_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    name = os.fsdecode(b"\xff.png")
    paint(folder / name, "red")
    paint(folder / "gone.png", "green")
    paint(folder / "stays.png", "blue")
    found = audited(folder, {"gone.png": "red", "stays.png": "blue"})
    (folder / "gone.png").unlink()
    page = page_of(found)
    assert "the file has gone" in page.texts
    assert len(page.pictures) == 1
    assert any("\\udcff.png" in text for text in page.texts)
