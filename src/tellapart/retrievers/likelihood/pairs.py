"""log p(c|I), the sum over words and end sign, of every caption with every picture.

m-RNN ranks pictures and sentences by it (section 5), and so do Dai & Lin 2017. Captions that begin alike
share the work for what they begin with, equal captions all of it. Of the logits, only those of some hundred
rows are there at a time, and only the log-probabilities of the words that do follow are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Float
from tellapart.errors import TellapartError
from tellapart.retrievers.likelihood.late import LateScorer
from tellapart.retrievers.likelihood.stepwise import StepScorer
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.types import AnyCaptioner, MeetsLate, Vision

LOGITS = 2**26  # bytes of logits at the most; as many again may take their log-probabilities


def score_pairs(
    captioner: AnyCaptioner,
    blocks: Iterable[Vision],
    captions: Sequence[Sequence[int]],
    *,
    watch: Watch = unwatched,
) -> Float[np.ndarray, "captions pictures"]:
    """The log-probability of every caption for every picture, in the captioner's own precision.

    Args:
        captioner: whose opinion is asked.
        blocks: features of the pictures, some at a time.
        captions: tokens from start to end.
        watch: told how many pictures are done; how many there are is not known, so it is told 0.
    """
    found = []
    for scores in score_blocks(captioner, blocks, captions):
        found.append(scores)
        watch(sum(some.shape[1] for some in found), 0)
    if not found:
        raise TellapartError("there are no pictures to score", hint="give at least one")
    return np.concatenate(found, axis=1)


def score_blocks(
    captioner: AnyCaptioner, blocks: Iterable[Vision], captions: Sequence[Sequence[int]]
) -> Iterator[Float[np.ndarray, "captions pictures"]]:
    """The same as columns for each block of pictures, as they come."""
    _expect_readable(captioner, captions)
    was_training = captioner.training
    captioner.eval()
    try:
        with torch.inference_mode():
            scorer = _scorer(captioner, captions)
        for vision in blocks:
            with torch.inference_mode():
                yield _score(captioner, scorer, vision).numpy()
    finally:
        captioner.train(was_training)


def _scorer(captioner: AnyCaptioner, captions: Sequence[Sequence[int]]) -> LateScorer | StepScorer:
    if isinstance(captioner, MeetsLate) and captioner.meets_late:
        return LateScorer(captioner, captions, logits=LOGITS)
    return StepScorer(captioner, captions, logits=LOGITS)


def _score(captioner: AnyCaptioner, scorer: LateScorer | StepScorer, vision: Vision) -> Float[Tensor, "c b"]:
    if not captioner.needs:  # who looks at no picture says the same of all
        return scorer(vision.select(torch.arange(1))).repeat(1, len(vision))
    firsts = range(0, len(vision), scorer.together)
    groups = (torch.arange(first, min(first + scorer.together, len(vision))) for first in firsts)
    return torch.cat([scorer(vision.select(group)) for group in groups], dim=1)


def _expect_readable(captioner: AnyCaptioner, captions: Sequence[Sequence[int]]) -> None:
    if not captions:
        raise TellapartError("there are no captions to score", hint="give at least one")
    longest = captioner.longest
    for place, caption in enumerate(captions):
        if len(caption) < 2:
            raise TellapartError(
                f"caption {place} (counted from 0) has no tokens but {list(caption)}",
                hint="a caption has a start and an end sign, whatever stands between them",
            )
        if longest is not None and len(caption) - 1 > longest:  # the end sign is not read
            raise TellapartError(
                f"caption {place} (counted from 0) has {len(caption) - 1} tokens, and the captioner reads "
                f"{longest}",
                hint="cut captions with data.max_words",
            )
