"""The page of an explanation shows all that is known, needs no other file, and takes any text."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.report.page import Page

from tellapart.explanation import Explanation, Helpful, Look, Rival, Word
from tellapart.report.explain_page import write_explain_page
from tellapart.word_penalties import Guess, Penalty

NASTY = ["<b>&.png", "\"quoted' name.png", "größe 写真.png", "{{ 7 * 7 }}.png"]
WORDS = ("a", "<i>dog</i>", "runs")
DROPS = (-0.02, 0.3, 0.1)


def drawn(path: Path, colour: str = "teal") -> Path:
    Image.new("RGB", (90, 60), colour).save(path)
    return path


def penalty(size: float) -> Penalty:
    return Penalty(2 * size, size, Guess("<cat>", 0.5, is_said=False), Guess("said", 0.75, is_said=True))


def explanation(folder: Path, *, looks: Sequence[Look | None] = (None,) * 3) -> Explanation:
    rivals = tuple(
        Rival(drawn(folder / name), 0.9 - place / 10, 0.1 + place / 10, is_near=place == 0)
        for place, name in enumerate(NASTY)
    )
    words = tuple(
        Word(text, True, penalty(place + 1.0), drop / 2, drop, look)
        for place, (text, drop, look) in enumerate(zip(WORDS, DROPS, looks, strict=True))
    )
    return Explanation(
        image=drawn(folder / "<own>.png", "red"),
        caption=" ".join(WORDS),
        is_given=False,
        captioner="my <captioner>",
        retriever="my <retriever>",
        folder=folder,
        others=12_345,
        closeness=0.35,
        margin=-0.05,
        rivals=rivals,
        words=words,
        end=penalty(0.5),
        helpful=(Helpful("<brown>", 0.0213),),
        notes=("a <note> & more",),
        problems=(),
    )


def written(tmp_path: Path, found: Explanation) -> Page:
    write_explain_page(tmp_path / "page.html", found)
    return Page(tmp_path / "page.html")


def said(page: Page) -> str:
    return " ".join(" ".join(page.texts).split())


def test_words_stand_in_the_order_of_the_sentence_and_then_by_what_they_add(tmp_path: Path) -> None:
    page = written(tmp_path, explanation(tmp_path))
    signed = [text for text in page.texts if re.fullmatch(r"[+-]\d\.\d{3}", text)]
    assert signed == [
        *("-0.020", "+0.300", "+0.100"),
        *("+0.300", "+0.150", "+0.100", "+0.050", "-0.020", "-0.010"),
    ]
    spans = [attributes for tag, attributes in page.tags if tag == "span" and "style" in attributes]
    assert [span["class"] for span in spans] == ["less", "more", "more"]
    strengths = [float(str(span["style"]).partition(": ")[2]) for span in spans]
    assert strengths[1] == max(strengths) == 0.55
    assert strengths[2] == pytest.approx(0.55 / 3, abs=0.006)
    assert "margin -0.050" in said(page)
    assert "as close or closer to 1 of the 4 most similar pictures" in said(page)
    assert "<brown> +0.021." in said(page)
    assert "a <note> & more" in page.texts
    assert "Written by the captioner “my <captioner>”" in said(page)


def test_rivals_stand_by_how_close_the_caption_is_and_the_picture_among_them(tmp_path: Path) -> None:
    page = written(tmp_path, explanation(tmp_path))
    figures = [attributes.get("class") for tag, attributes in page.tags if tag == "figure"]
    assert figures == ["strongest", "own", None, None, None]
    assert [picture["alt"] for picture in page.pictures] == [
        " ".join(WORDS),
        f"a rival: {NASTY[3]}",
        "the picture itself",
        *(f"a rival: {name}" for name in reversed(NASTY[:3])),
    ]
    scores = [text for text in page.texts if re.fullmatch(r"0\.\d{3}", text)]
    assert scores == ["0.400", "0.350", "0.300", "0.200", "0.100"]
    assert "nearly the same picture; likeness 0.900" in page.texts
    assert "The 4 most similar of 12,345 other pictures" in said(page)


def test_bars_are_as_long_as_what_they_stand_for(tmp_path: Path) -> None:
    page = written(tmp_path, explanation(tmp_path))
    widths = [
        float(str(attributes["style"]).removeprefix("width: ").removesuffix("%"))
        for tag, attributes in page.tags
        if tag == "i" and attributes.get("class") == "bar"
    ]
    assert widths == pytest.approx([33.3, 16.7, 66.7, 33.3, 100, 50, 16.7, 8.3])
    numbers = [text for text in page.texts if re.fullmatch(r"\d+\.\d\d", text)]
    assert numbers == ["2.00", "1.00", "4.00", "2.00", "6.00", "3.00", "1.00", "0.50", "13.00", "6.50"]
    assert page.texts.count("<cat> 50%") == 4
    assert "said 75%" not in page.texts  # what stands there anyway


def test_maps_are_laid_over_the_picture(tmp_path: Path) -> None:
    shares = np.full((3, 3), 0.01)
    shares[2, 0] = 0.82
    looks = [Look(shares, {"the sentinel": 0.1}), None, Look(np.full((3, 3), 1 / 9), {})]
    page = written(tmp_path, explanation(tmp_path, looks=looks))
    assert "Where the captioner looked" in page.texts
    maps = [picture for picture in page.pictures if str(picture["alt"]).startswith("where it looked for")]
    assert [picture["alt"] for picture in maps] == ["where it looked for “a”", "where it looked for “runs”"]
    assert "on the picture 90%, in the strongest place 82.0%; the sentinel 10%" in page.texts
    assert "on the picture 100%, in the strongest place 11.1%" in page.texts
    first = Image.open(io.BytesIO(base64.b64decode(str(maps[0]["src"]).partition(",")[2])))
    pixels = np.asarray(first.convert("RGB"), np.float64)
    heat = pixels[:, :, 0] - pixels[:, :, 2]
    height, width = heat.shape
    assert heat[-height // 6, width // 6] > 100  # lower left
    assert heat[height // 6, -width // 6] < 10


def test_without_attention_there_are_no_maps(tmp_path: Path) -> None:
    assert "Where the captioner looked" not in written(tmp_path, explanation(tmp_path)).texts


def test_without_rivals_closeness_decides(tmp_path: Path) -> None:
    found = explanation(tmp_path)
    words = tuple(replace(word, margin_drop=None) for word in found.words)
    page = written(tmp_path, replace(found, rivals=(), margin=None, words=words, helpful=(), is_given=True))
    assert "There is no rival" in said(page)
    assert "The picture among its rivals" not in page.texts
    signed = [text for text in page.texts if re.fullmatch(r"[+-]\d\.\d{3}", text)]
    assert signed == ["-0.010", "+0.150", "+0.050", "+0.150", "+0.050", "-0.010"]
    assert "by how much the closeness falls" in said(page)
    assert "The caption was given" in said(page)


def test_a_single_word_has_no_number(tmp_path: Path) -> None:
    found = explanation(tmp_path)
    word = replace(found.words[0], margin_drop=None, closeness_drop=None)
    page = written(tmp_path, replace(found, words=(word,)))
    assert "What each word adds" not in page.texts
    assert not any(tag == "span" and "style" in attributes for tag, attributes in page.tags)


def test_a_caption_that_wins_is_said_to(tmp_path: Path) -> None:
    found = replace(explanation(tmp_path), closeness=0.5, margin=0.1)
    assert "finds its picture: to none of the 4 most similar pictures is it as close" in said(
        written(tmp_path, found)
    )
    alone = replace(found, rivals=found.rivals[:1])
    assert "closer to its own picture than to the most similar one" in said(written(tmp_path, alone))
    lost = replace(alone, closeness=0.1)
    assert "as close to the most similar picture as to its own, or closer" in said(written(tmp_path, lost))


def test_no_text_becomes_a_tag_and_nothing_is_loaded(tmp_path: Path) -> None:
    page = written(tmp_path, explanation(tmp_path, looks=[Look(np.ones((1, 1)), {"<x>": 0.0}), None, None]))
    strange = {
        "own",
        "dog",
        "note",
        "brown",
        "cat",
        "x",
        "captioner",
        "retriever",
        "script",
        "link",
        "iframe",
    }
    assert strange.isdisjoint(tag for tag, _ in page.tags)
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert name not in ("href", "srcset", "background")
            if name == "style":
                assert re.fullmatch(r"(width: [\d.]+%|--much: [\d.]+)", str(value))
            if name == "src":
                assert (tag, str(value).partition(",")[0]) == ("img", "data:image/jpeg;base64")
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts))


def test_a_rival_that_has_gone_keeps_its_place(tmp_path: Path) -> None:
    found = explanation(tmp_path)
    found.rivals[1].path.unlink()
    page = written(tmp_path, found)
    assert len(page.pictures) == 5
    assert NASTY[1] in page.texts


def test_names_that_are_no_text_are_spelt_out(tmp_path: Path) -> None:
    found = explanation(tmp_path)
    found = replace(found, image=drawn(tmp_path / os.fsdecode(b"\xff.png")))
    write_explain_page(tmp_path / "page.html", found)
    assert "\\udcff.png" in (tmp_path / "page.html").read_text(encoding="utf-8")
