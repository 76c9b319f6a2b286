"""What a user finds out by asking: `tellapart list`, and `--help` everywhere."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.core import TyperGroup

from tellapart.cli import app
from tellapart.cli.listing import Kind

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

SOME = {
    Kind.captioners: {"mrnn"},
    Kind.objectives: {"mle", "mrnn-cost"},
    Kind.encoders: {"efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "patches", "timm"},
    Kind.retrievers: {"dual"},
    Kind.rankings: {"pairwise", "hardest", "info-nce"},
    Kind.metrics: {"bleu", "rouge", "cider", "meteor", "spice", "sets", "oracle", "retrieval", "clipscore"},
    Kind.recipes: {"mrnn-shapes", "mrnn-flickr8k"},
    Kind.formats: {"karpathy", "coco", "flickr", "jsonl", "csv", "folder"},
    Kind.presets: {"mrnn", "contrastive", "specificity", "smile", "unkt"},
}


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_listed_in_words_and_as_json(
    kind: Kind, tellapart: Tellapart, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = json.loads(tellapart("list", kind, "--json").out)
    names = [row["name"] for row in rows]
    assert SOME[kind] <= set(names)
    assert len(names) == len(set(names))
    monkeypatch.setenv("COLUMNS", "80")  # some shells export it
    table = tellapart("list", kind)
    assert (table.code, table.err) == (0, "")
    header, *lines = table.out.splitlines()
    assert header.split() == list(rows[0])
    assert [line.split()[0] for line in lines] == names, "a row a line, or nobody could search it"


@pytest.mark.parametrize("kind", [Kind.captioners, Kind.objectives, Kind.encoders, Kind.metrics])
def test_every_part_says_what_it_is(kind: Kind, tellapart: Tellapart) -> None:
    rows = json.loads(tellapart("list", kind, "--json").out)
    assert all(len(row["what"]) > 10 for row in rows)
    assert any(row["paper"] for row in rows)


def test_presets_are_values_rather_than_text(tellapart: Tellapart) -> None:
    rows = {row["name"]: row for row in json.loads(tellapart("list", "presets", "--json").out)}
    assert rows["specificity"]["max_words"] == 16
    assert rows["contrastive"]["keep_emoji"] is True


def test_retrievers_that_are_only_named_are_listed_too(tellapart: Tellapart) -> None:
    names = [row["name"] for row in json.loads(tellapart("list", "retrievers", "--json").out)]
    assert names[0] == "dual"
    assert {"judge", "reranker", "clip:MODEL", "siglip:MODEL", "likelihood"} <= set(names)


def test_an_unknown_kind_is_wrong_usage(tellapart: Tellapart) -> None:
    outcome = tellapart("list", "captionners")
    assert (outcome.code, outcome.out) == (2, "")
    assert "captioners" in outcome.err
    assert "Traceback" not in outcome.err


def verbs(command: Any = None, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command that there is, by its words."""
    command = command or typer.main.get_command(app)
    if not isinstance(command, TyperGroup):
        return [before]
    return [verb for name in command.commands for verb in verbs(command.commands.get(name), (*before, name))]


def test_the_verbs_are_those_promised() -> None:
    promised = {("caption",), ("train",), ("data", "check"), ("list",)}
    assert promised | {("recipe", name) for name in ("new", "show", "schema")} <= set(verbs())


@pytest.mark.parametrize("verb", verbs(), ids=" ".join)
def test_help_of_every_verb_shows_an_example_and_knows_json(
    verb: tuple[str, ...], tellapart: Tellapart
) -> None:
    outcome = tellapart(*verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    text = " ".join(outcome.out.split())
    assert f"Example: tellapart {' '.join(verb)} " in text
    assert "--json" in text
    # What the example says can be typed: each option in it is one of this verb.
    example = text.partition("Example: ")[2].partition(" ╭")[0]
    for word in shlex.split(example):
        if word.startswith("-"):
            assert word in text.partition(example)[2]


def test_no_verb_at_all_shows_the_help(tellapart: Tellapart) -> None:
    outcome = tellapart()
    assert outcome.code == 2
    assert all(verb[0] in outcome.out + outcome.err for verb in verbs())


def test_python_m_gives_the_same_help_without_importing_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tellapart", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert all(verb[0] in done.stdout for verb in verbs())
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tellapart.cli" in imported
    assert "torch" not in imported
