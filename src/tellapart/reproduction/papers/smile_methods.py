"""What is trained for SMILE: its settings, its corpora, and the bases it goes on from."""

from __future__ import annotations

from dataclasses import replace

from tellapart.reproduction.methods import LIKELIHOOD, MRNN, MRNN_MLE, PEOPLE, SMILE, go_on
from tellapart.reproduction.papers.unkt import TRANSFORMER
from tellapart.reproduction.plan import Method, MethodKind

_SMILE = "objective.name=smile"
LAMBDAS = ("0.5", "0.1", "0.05", "0.01")


def _smile(ending: str, says: str, *changes: str) -> Method:
    return go_on(MRNN, f"mrnn+smile-{ending}", says, _SMILE, *changes, minutes=2)


def _captions_of(corpus: str) -> tuple[str, ...]:
    return ("data.format=jsonl", "data.images=", f"data.path={{{corpus}}}/captions.jsonl")


def _simple(kind: MethodKind, says: str) -> tuple[Method, ...]:
    """A corpus without details, a captioner of it by likelihood, and SMILE on top."""
    data = _captions_of(f"{kind}-corpus")
    corpus = Method(f"{kind}-corpus", says, "mrnn", kind=kind, minutes=4)
    base = Method(f"mrnn-{kind}", f"m-RNN of the {kind} corpus", "mrnn", data, minutes=4)
    return corpus, base, go_on(base, f"mrnn-{kind}+smile", "SMILE on the same", *data, _SMILE, minutes=2)


WORDS = 'data.words_from=["flickr8k/captions.txt", "coco/captions.jsonl"]'
COCO = Method(
    "coco",
    "m-RNN of 4,617 COCO photographs: pretrained, not tuned",
    "mrnn",
    ("data.path=coco/captions.jsonl", "data.images=coco/images", "data.format=jsonl", WORDS),
    seeds=3,
    minutes=6,
    priority=0,
    needs_photographs=True,
)
TUNED = Method(
    "coco+flickr8k",
    "the same, tuned on Flickr8k by likelihood",
    "mrnn",
    (WORDS,),
    start="coco",
    seeds=3,
    minutes=8,
    priority=0,
    needs_photographs=True,
)


def _on_photographs(start: Method, ending: str, says: str, objective: str, *, seeds: int = 1) -> Method:
    priority = 1 if seeds > 1 else 2
    name = f"{start.name}+{ending}"
    tuned = go_on(start, name, says, objective, WORDS, minutes=2, seeds=seeds, priority=priority)
    return replace(tuned, needs_photographs=True)


METHODS = (
    MRNN,
    MRNN_MLE,
    SMILE,
    PEOPLE,
    *(
        _smile(share, f"SMILE with λ = {share} of likelihood", f"objective.mle_share={share}")
        for share in LAMBDAS
    ),
    _smile("none", "SMILE, nothing done for the first word", "objective.first=none"),
    _smile("shift", "SMILE, the first word shifted", "objective.first=shift"),
    _smile("random", "random words as the subset", "objective.subset=random"),
    _smile("reverse", "the subset reversed", "objective.subset=reverse"),
    Method("single-corpus", "one of the training captions of each picture", "mrnn", kind="single"),
    _smile("one-caption", "SMILE on one caption an image", *_captions_of("single-corpus")),
    *_simple("simplest", "the subjects of the training captions"),
    *_simple("simpler", "subjects, verbs and objects of the training captions"),
    COCO,
    _on_photographs(COCO, "smile", "SMILE on the pretrained", _SMILE),
    TUNED,
    _on_photographs(TUNED, "mle", "as much more of likelihood on the same", LIKELIHOOD, seeds=3),
    _on_photographs(TUNED, "smile", "SMILE on the pretrained and tuned", _SMILE, seeds=3),
    TRANSFORMER,
    go_on(TRANSFORMER, "transformer+smile", "SMILE on the Transformer", _SMILE, minutes=6),
)
