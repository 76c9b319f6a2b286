"""METEOR as a measure: the statistics of each image, summed for the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tellapart.extras import import_extra
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.meteor.extras import must_compile
from tellapart.metrics.meteor.jar import meteor_by_jar
from tellapart.metrics.meteor.resources import content_hash, find_resources, load_resources
from tellapart.metrics.meteor.score import MeteorStatistics, addends, corpus_score, meteor, segment_scores
from tellapart.metrics.parts import MeteorConfig
from tellapart.metrics.score import Pooled, Score, signed


def build_meteor(config: MeteorConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: [meteor_score(material, config)]


def meteor_score(material: Material, config: MeteorConfig) -> Score:
    """METEOR of each image's caption, and of the whole by the sums over images."""
    material.expect_references("METEOR")
    found = _statistics(material, config)
    summands = addends(found.each).astype(np.float64)
    signature = material.base_signature | {"meteor": "1.5", "modules": "exact,stem,synonym,paraphrase"}
    if config.engine == "java":
        signature["engine"] = "java"
    if config.resources is not None:
        signature["resources"] = content_hash(find_resources(Path(config.resources)))[:8]
    return Score(
        "METEOR",
        float(corpus_score(summands.sum(axis=0))),
        signed(signature),
        segment_scores(found.each),
        Pooled(summands, corpus_score),
    )


def _statistics(material: Material, config: MeteorConfig) -> MeteorStatistics:
    """By our own program or by the jar, of the same tokenized lines."""
    files = find_resources(None if config.resources is None else Path(config.resources))
    captions = [" ".join(tokens) for tokens in material.caption_tokens]
    texts = iter(" ".join(tokens) for tokens in material.reference_tokens)
    references = [[next(texts) for _ in group] for group in material.expect_references("METEOR")]
    if config.engine == "java":
        return meteor_by_jar(
            captions, references, files, watch=lambda done, total: material.watch("METEOR's jar", done, total)
        )
    import_extra("numba", needed_by="METEOR", extra="meteor")  # before half a minute goes into the index
    resources = load_resources(
        files,
        watch=lambda done, total: material.watch("indexing METEOR's paraphrases, once", done, total),
    )
    if must_compile():
        material.watch("compiling METEOR's search, once: half a minute", 0, 0)
    return meteor(captions, references, resources)
