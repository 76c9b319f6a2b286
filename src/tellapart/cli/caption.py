"""`tellapart caption`: captions of files and folders, each told from the pictures most like its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from tellapart.cli import caption_flags as flags
from tellapart.cli.caption_flags import ApartMode, SidecarMode, StyleName
from tellapart.cli.caption_outputs import Outputs, Summary
from tellapart.cli.console import counting, waiting, watching
from tellapart.cli.options import LengthPenalty
from tellapart.collection.styles import Said
from tellapart.errors import TellapartError
from tellapart.outputs.sidecars import Sidecars, has_sidecar

if TYPE_CHECKING:
    from tellapart.captioning import Captioned, Describer, Wish, Words
    from tellapart.collection.plan import Plan
    from tellapart.collection.session import Request
    from tellapart.collection.speaker import Speaker
    from tellapart.collection.styles import Style


def caption(
    paths: flags.Paths,
    style: flags.StyleFlag = StyleName.balanced,
    captioner: flags.CaptionerName = None,
    apart: flags.ApartFlag = None,
    neighbours: flags.NeighbourCount = 10,
    effort: flags.Effort = None,
    fit: flags.Fit = None,
    agree: flags.Agree = None,
    retriever: flags.RetrieverName = "reranker",
    seed: flags.Seed = 0,
    beam: flags.Beam = None,
    candidates: flags.CandidateCount = None,
    prefix: flags.Prefix = "",
    ban: flags.Ban = None,
    require: flags.Require = None,
    repeats: flags.Repeats = None,
    trigger: flags.Trigger = "",
    max_words: flags.MaxWords = None,
    length_penalty: LengthPenalty = None,
    limit: flags.Limit = None,
    out: flags.Out = None,
    sidecar: flags.SidecarFlag = None,
    coco: flags.Coco = None,
    describe_pictures: flags.DescribePictures = False,
    page: flags.Page = None,
    cache: flags.Cache = True,
    json: flags.Json = False,
) -> None:
    """Caption images, each so that its caption finds it among those most like it.

    Example: tellapart caption photos/ --out captions.jsonl --sidecar overwrite
    """
    flags.expect_names(page=page, coco=coco)
    chosen = style.style.but(Said(apart, effort, fit, beam, length_penalty, agree, captioner))
    if len(paths) == 1 and not paths[0].is_dir():  # there is nothing to tell it from
        chosen = replace(chosen, apart=ApartMode.off)
    plan = flags.plan_of(chosen, neighbours, seed)
    with waiting("loading the captioner"):
        from tellapart.captioning import Words
        from tellapart.collection.session import Request

        words = Words(prefix, tuple(ban or ()), tuple(require or ()), repeats)
        keep = max(candidates or 1, flags.CANDIDATES if plan else 1)
        describer, wish = find_describer(chosen, words, keep, max_words, cached=cache)
    sidecars = Sidecars(sidecar.value, trigger=trigger) if sidecar else None
    outputs = Outputs(describer.name, json, candidates or 1, trigger, sidecars, describe_pictures, coco)
    request = Request(paths, out, limit, has_sidecar if sidecar is SidecarMode.skip else lambda path: False)
    if plan is None:
        results = one_by_one(request, describer, wish, outputs)
    else:
        results = told_apart(request, find_speaker(describer, wish, retriever, plan), outputs)
    outputs.finish(results, page)
    if outputs.failed:
        raise typer.Exit(1)


def find_describer(
    style: Style, words: Words, keep: int, max_words: int | None, *, cached: bool
) -> tuple[Describer, Wish]:
    """The captioner, and how it is to decode."""
    from tellapart.captioning import load

    describer = load(style.captioner, cached=cached)
    return describer, describer.wish(
        width=style.beam,
        keep=keep,
        words=words,
        max_words=max_words,
        length_penalty=style.length_penalty,
    )


def find_speaker(describer: Describer, wish: Wish, retriever: str, plan: Plan) -> Speaker:
    """The captioner with the retriever that chooses for it."""
    from tellapart.collection.speaker import Speaker
    from tellapart.retrievers.loading import load_retriever

    with waiting("loading the retriever"):
        return Speaker(describer, load_retriever(retriever), wish, plan)


def told_apart(request: Request, speaker: Speaker, outputs: Outputs) -> Iterator[Captioned]:
    """Captions of a collection, put wherever they are wanted."""
    from tellapart.collection.session import caption_collection
    from tellapart.collection.telling import settings_of

    outputs.settings = settings_of(speaker)
    summary = Summary()
    with ExitStack() as bar:
        watch = bar.enter_context(watching())
        for result in caption_collection(request, speaker, watch=watch):
            if isinstance(result, TellapartError):
                outputs.refuse(result)
                continue
            if sys.stdout.isatty():
                bar.close()  # captions on the screen show the progress themselves
            summary.note(result)
            outputs.write(result.captioned, earlier=result.earlier)
            yield result.captioned
    summary.tell()


def one_by_one(request: Request, describer: Describer, wish: Wish, outputs: Outputs) -> Iterator[Captioned]:
    """Captions as they come, put wherever they are wanted."""
    from tellapart.collection.session import caption_one_by_one

    with ExitStack() as stack:
        # Captions on the screen show the progress themselves.
        watch = None if sys.stdout.isatty() else stack.enter_context(counting("captioning"))
        for done, result in enumerate(caption_one_by_one(request, describer, wish), start=1):
            if watch:
                watch(done, 0)
            if isinstance(result, TellapartError):
                outputs.refuse(result)
            else:
                outputs.write(result.captioned, earlier=result.earlier)
                yield result.captioned
