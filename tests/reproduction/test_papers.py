"""Contracts over the plans of all papers: what they name exists, loads, and fits into a day."""

from __future__ import annotations

from pathlib import Path

import pytest

from tellapart.recipe import Recipe
from tellapart.reproduction.ground import Ground, drawn_scenes
from tellapart.reproduction.library import ALL, PAPERS, find_papers, plan_on
from tellapart.reproduction.methods import WATCHED
from tellapart.reproduction.plan import JUDGE, TEACHER, Method, Paper, cell, join
from tellapart.reproduction.verdicts import COUNTED
from tellapart.reproduction.ways import WAYS

EVERY = find_papers(ALL)
NAMES = [paper.name for paper in EVERY]
PLAN = join(EVERY, WAYS)
FLICKR8K = Ground("flickr8k", (), "judge", "reranker")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the data, and one for each method."""
    folder = tmp_path_factory.mktemp("data")
    for file in ("flickr8k/captions.txt", "coco/captions.jsonl"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    for images in ("flickr8k/images", "coco/images"):
        (folder / images).mkdir()
    for name in PLAN.methods:
        made = folder / "runs" / name
        made.mkdir(parents=True)
        for file in ("high.jsonl", "low.jsonl", "captions.jsonl"):
            (made / file).touch()
    return folder


def loaded(ground: Ground, method: Method, root: Path) -> Recipe:
    places = {name: str(root / "runs" / name) for name in PLAN.methods}
    recipe = ground.load(method, 2, {**places, TEACHER: "reranker", JUDGE: "judge"})
    assert isinstance(recipe, Recipe)
    return recipe


@pytest.mark.parametrize("method", PLAN.methods.values(), ids=str)
def test_every_recipe_loads_with_its_changes(method: Method, root: Path) -> None:
    if method.recipe:
        ground = Ground("flickr8k", (f"data.root={root}",), "judge", "reranker")
        recipe = loaded(ground, method, root)
        assert recipe.seed == 2
        assert recipe.needless_stages() == []
        assert bool(method.start) == bool(recipe.training.start_from)


def test_every_recipe_loads_on_drawn_scenes(root: Path, tmp_path: Path) -> None:
    ground = drawn_scenes(tmp_path / "shapes", scenes=20)
    ground.draw()
    for name, method in plan_on(EVERY, ground).methods.items():
        if method.recipe and name in PLAN.methods:
            assert loaded(ground, method, root).encoder.name == "patches"


@pytest.mark.parametrize("method", PLAN.methods.values(), ids=str)
def test_no_judge_is_a_teacher(method: Method, root: Path) -> None:
    assert all("judge" not in change for change in method.changes if change != WATCHED)
    if WATCHED in method.changes:  # it only looks on
        assert {"training.keep=last", "training.patience=0"} <= set(method.changes)
        assert "replace_every" not in str(method.changes)
    if any("objective.name=" in change for change in method.changes):
        ground = Ground("flickr8k", (f"data.root={root}",), "judge", "reranker")
        objective = str(loaded(ground, method, root).objective)
        assert "'judge'" not in objective
        # A retriever that is not said would be "reranker", whom drawn scenes do not know.
        assert "reranker" not in objective or f"{{{TEACHER}}}" in str(method.changes)


@pytest.mark.parametrize("paper", EVERY, ids=NAMES)
def test_rows_and_claims_speak_of_what_is_run(paper: Paper) -> None:
    cells = set(paper.cells)
    named = [row.ours for table in paper.tables for row in table.rows if row.ours]
    named += [side for claim in paper.claims for part in claim.parts for side in part.cells]
    named += paper.gallery.cells
    assert [name for name in named if cell(name) not in cells] == []
    for table in paper.tables:
        for row in table.rows:
            assert len(row.paper) in (0, len(table.columns)), (table.name, row.label)
            for column in table.columns:
                if row.ours and column.way and not row.ours.startswith("people"):
                    assert column.way in paper.ways[cell(row.ours).method]


@pytest.mark.parametrize("paper", EVERY, ids=NAMES)
def test_numbers_of_papers_are_numbers(paper: Paper) -> None:
    for table in paper.tables:
        for row in table.rows:
            for number in row.paper:
                assert number in ("", "?") or float(number) >= 0


@pytest.mark.parametrize("paper", EVERY, ids=NAMES)
def test_claims_are_told_apart(paper: Paper) -> None:
    names = [claim.name for claim in paper.claims]
    assert len(set(names)) == len(names)
    assert all(claim.parts and claim.words and claim.where for claim in paper.claims)


@pytest.mark.parametrize("paper", EVERY, ids=NAMES)
def test_counts_are_held_against_no_margin(paper: Paper) -> None:
    """They are compared on halves of the pictures, and a margin would be a share of what the whole has."""
    parts = [part for claim in paper.claims for part in claim.parts]
    assert [
        part for part in parts if part.measure in COUNTED and part.direction not in ("above", "below")
    ] == []


@pytest.mark.parametrize("others", [("mrnn-shared", "mrnn-vis-in-rnn", "rnn-base"), ("meshed",)], ids=str)
def test_what_is_compared_learns_as_long(others: tuple[str, ...], root: Path, tmp_path: Path) -> None:
    base = "transformer" if others == ("meshed",) else "mrnn"
    scenes = drawn_scenes(tmp_path / "shapes", scenes=20)
    scenes.draw()
    for ground in (Ground("flickr8k", (f"data.root={root}",), "judge", "reranker"), scenes):
        epochs = {loaded(ground, PLAN.methods[name], root).training.epochs for name in (base, *others)}
        assert len(epochs) == 1


def test_all_of_it_takes_a_day_at_most() -> None:
    assert PLAN.minutes <= 24 * 60


def test_bases_and_full_methods_of_papers_have_three_seeds() -> None:
    for paper in PAPERS.values():
        trained = [method for method in paper.methods if method.kind == "train"]
        assert {method.seeds for method in trained if method.priority < 2} == {3}
        assert {method.seeds for method in trained if method.priority == 2} <= {1, 3}


def test_each_comes_after_what_it_needs() -> None:
    names = list(PLAN.methods)
    for name, method in PLAN.methods.items():
        assert all(names.index(other) < names.index(name) for other in method.others)
    done: set[str] = set()
    for job in PLAN.jobs:
        others = [PLAN.methods[name] for name in job.method.others]
        assert {f"{other.name}-{min(job.seed, other.seeds)}" for other in others} <= done
        done.add(job.name)


@pytest.mark.parametrize("paper", EVERY, ids=NAMES)
def test_figures_show_what_is_run_and_logged(paper: Paper) -> None:
    methods = {method.name: method for method in paper.methods}
    for figure in paper.figures:
        assert figure.measure in ("words", "recall")
        assert all(WATCHED in methods[name].changes for name in figure.methods)
        assert all(paper.ways[name] for name in figure.methods)  # a log is kept beside captions


def test_settings_that_differ_have_names_that_differ() -> None:
    digests = [FLICKR8K.digest(method, PLAN.methods) for method in PLAN.methods.values()]
    assert len(set(digests)) == len(digests)


def test_where_data_lies_changes_no_name() -> None:
    here, there = (Ground("flickr8k", (f"data.root={root}",), "judge", "reranker") for root in ("/a", "/b"))
    method = PLAN.methods["mrnn+smile"]
    assert here.digest(method, PLAN.methods) == there.digest(method, PLAN.methods)
