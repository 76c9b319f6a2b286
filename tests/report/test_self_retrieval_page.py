"""The page of captions that found another picture: needs no other file, and takes any text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.report.page import Page
from tests.retrievers.colour_retriever import ColourRetriever, paint

from tellapart.judges import Judge, judge_by
from tellapart.picture_pools import Pool, see_pictures, whole_pool
from tellapart.report import self_retrieval_page
from tellapart.report.self_retrieval_page import write_self_retrieval
from tellapart.self_retrieval import Terms, retrieve
from tellapart.vision.patches import Patches

NASTY = "blue <script>alert(1)</script> & {{ 7 * 7 }} 写真"


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    paths = [paint(tmp_path / f"{name} <b>.png", name) for name in ("red", "green", "blue")]
    seen, _ = see_pictures(paths, Patches())
    return whole_pool(["r<", "g", "b"], [NASTY, "green", "red"], seen)


def test_each_failure_stands_there_with_both_pictures(pool: Pool, tmp_path: Path) -> None:
    verdict = retrieve(pool, judge_by(ColourRetriever()), Terms())
    write_self_retrieval(tmp_path / "page.html", [verdict], pool)
    page = Page(tmp_path / "page.html")
    assert len(page.sources) == 4  # two failures
    assert all(source.startswith("data:image/jpeg;base64,") for source in page.sources)
    assert NASTY in page.texts
    assert "script" not in {tag for tag, _ in page.tags}
    assert "r<: place 3" in page.texts
    assert any("blue <b>.png" in text for text in page.texts)
    assert any("2 of 3 captions found another picture:" in text for text in page.texts)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)\s*=\s*['\"]?(?!data:)[\w/.]", text)
    assert "http" not in text


def test_cautions_and_values_are_shown(pool: Pool, tmp_path: Path) -> None:
    alike = Judge("plain", "plain@1", lambda sentences, pictures: np.ones((3, 3), np.float32))
    verdicts = [retrieve(pool, judge, Terms()) for judge in (judge_by(ColourRetriever()), alike)]
    write_self_retrieval(tmp_path / "page.html", verdicts, pool)
    texts = [text.strip() for text in Page(tmp_path / "page.html").texts]
    assert {"By colours", "By plain", "R@1-merged", "Median-rank"} <= set(texts)
    assert texts.count("whether it taught the captioner is not known") == 2
    assert "0.333" in texts


def test_long_lists_are_cut_and_pictures_may_have_gone(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_retrieval_page, "SHOWN", 1)
    verdict = retrieve(pool, judge_by(ColourRetriever()), Terms())
    pool.pictures.paths[0].unlink()
    write_self_retrieval(tmp_path / "page.html", [verdict], pool)
    page = Page(tmp_path / "page.html")
    assert len(page.sources) == 1
    assert any("2 of 3 captions found another picture; 1 of them:" in text for text in page.texts)


def test_without_a_failure_there_is_nothing_to_show(pool: Pool, tmp_path: Path) -> None:
    right = Judge("right", "right@1", lambda sentences, pictures: np.eye(3, dtype=np.float32))
    write_self_retrieval(tmp_path / "page.html", [retrieve(pool, right, Terms(draws=0))], pool)
    page = Page(tmp_path / "page.html")
    assert page.sources == []
    assert any("0 of 3 captions found another picture." in text for text in page.texts)
