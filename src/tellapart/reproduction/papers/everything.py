"""Every method on one base captioner, and mixtures that none of the papers tried."""

from __future__ import annotations

from tellapart.reproduction.methods import (
    CDP,
    CONTRASTIVE,
    GAN,
    HIGH,
    LIKELIHOOD,
    MRNN,
    MRNN_MLE,
    PEOPLE,
    SLOWLY,
    SMILE,
    SPECIFIC,
    TAUGHT,
    go_on,
)
from tellapart.reproduction.papers.smile_methods import METHODS as SMILE_METHODS
from tellapart.reproduction.papers.specificity import COS
from tellapart.reproduction.papers.unkt import HALVES
from tellapart.reproduction.plan import Claim, Column, Paper, Part, Row, Showing, Table

_DPO = ("objective.name=dpo", TAUGHT, "objective.mle_weight=1.0", SLOWLY)
CL = go_on(MRNN, "mrnn+cl", "contrastive learning", CONTRASTIVE, minutes=13, seeds=3, priority=1)
SMILE_MIXED = next(method for method in SMILE_METHODS if method.name == "mrnn+smile-0.1")
ALONE = (
    SMILE_MIXED,
    COS,
    go_on(MRNN, "mrnn+il", "introspective learning", "objective.name=introspective", minutes=4),
    go_on(MRNN, "mrnn+gan", "conditional GAN, with likelihood beside it", *GAN, minutes=7),
    CL,
    go_on(
        MRNN,
        "mrnn-high",
        "gone on with generic captions: the teacher of UNKT",
        LIKELIHOOD,
        *HIGH,
        minutes=2,
        seeds=3,
    ),
    go_on(
        MRNN,
        "mrnn+unkt",
        "UNKT in words and states: m-RNN attends to nothing",
        *("objective.name=unkt", "objective.teacher={mrnn-high}"),
        *("objective.weight=0.3", "objective.attention=false"),
        minutes=3,
        seeds=3,
        priority=1,
    ),
    go_on(MRNN, "mrnn+unlikelihood", "unlikelihood", "objective.name=unlikelihood", minutes=3),
    go_on(
        MRNN,
        "mrnn+cider-btw",
        "likelihood that counts distinctive captions more",
        LIKELIHOOD,
        "objective.caption_weights=cider-btw",
        minutes=3,
    ),
    go_on(
        MRNN,
        "mrnn+reward",
        "CIDEr-D as a reward",
        *("objective.name=reward", "objective.baseline=mean", SLOWLY),
        minutes=3,
    ),
    go_on(MRNN, "mrnn+dpo", "preferences by self-retrieval", *_DPO, minutes=8),
)
MIXED = (
    go_on(
        MRNN,
        "mrnn+smile+cl",
        "SMILE and contrastive learning at once",
        "objective.name=mix",
        'objective.parts=[{ name = "smile", mle_share = 0.1 }, { name = "contrastive" }]',
        minutes=14,
    ),
    go_on(
        SMILE, "mrnn+smile-then-cdp", "specificity after SMILE", *SPECIFIC, "objective.loss=cdp", minutes=4
    ),
    go_on(CL, "mrnn+cl-then-dpo", "preferences on top of contrastive learning", *_DPO, minutes=8),
)
LONGER = go_on(
    MRNN_MLE,
    "mrnn+mle+mle",
    "likelihood for twice as long: the control of what goes on twice",
    LIKELIHOOD,
    minutes=2,
)
SLOW = go_on(
    MRNN,
    "mrnn+mle-slow",
    "likelihood at a quarter of the rate: the control of DPO",
    LIKELIHOOD,
    SLOWLY,
    minutes=2,
)
METHODS = (MRNN, MRNN_MLE, PEOPLE, SMILE, CDP, HALVES, *ALONE, *MIXED, LONGER, SLOW)
_CAPTIONERS = [method for method in METHODS if method.kind == "train" and method.name != "mrnn-high"]
COLUMNS = (
    Column("CIDEr-D", "CIDEr-D"),
    Column("METEOR", "METEOR"),
    Column("BLEU-4", "BLEU-4"),
    Column("R@1, %", "R@1", 100.0, 1),
    Column("R@10, %", "R@10", 100.0, 1),
    Column("mean rank", "Mean-rank", 1.0, 1),
    Column("R@1 of ten look-alikes, %", "R@1-near", 100.0, 1),
    Column("distinct, %", "Distinct", 100.0, 1),
    Column("novel, %", "Novel", 100.0, 1),
    Column("vocabulary", "Vocabulary", 1.0, 0),
    Column("Div-1 of 5 samples", "Div-1", 1.0, 3, way="samples5"),
    Column("perplexity", "Perplexity", 1.0, 0),
    Column("words", "Length", 1.0, 1),
)


def _rows() -> tuple[Row, ...]:
    plain = [Row(f"{method.name}: {method.says}", f"{method.name}/beam5") for method in _CAPTIONERS]
    chosen = [Row(f"{method.name}, margin of 10", f"{method.name}/margin") for method in _CAPTIONERS]
    consensus = [
        Row(f"{name}, consensus by CIDEr", f"{name}/consensus-cider") for name in ("mrnn", "mrnn+unkt")
    ]
    return (*plain, *chosen, *consensus, Row("people", "people/written"))


TABLE = Table(
    "All methods", "on one m-RNN; a beam of 5, or the best of a beam of 10 by margin", COLUMNS, _rows()
)
CLAIMS = (
    *(
        Claim(
            f"{name} tells pictures apart better than as much likelihood",
            "(ours: every method against as many epochs of likelihood)",
            "none of the papers compares them on one base",
            (Part("R@1", f"{name}/beam5", "above", f"{control}/beam5"),),
        )
        for name, control in (
            ("mrnn+smile", "mrnn+mle"),
            ("mrnn+cdp", "mrnn+mle"),
            ("mrnn+cl", "mrnn+mle"),
            ("mrnn+unkt", "mrnn+mle"),
            ("mrnn+dpo", "mrnn+mle-slow"),
            ("mrnn+smile+cl", "mrnn+mle"),
            ("mrnn+smile-then-cdp", "mrnn+mle+mle"),
            ("mrnn+cl-then-dpo", "mrnn+mle+mle"),
        )
    ),
    Claim(
        "a mixture does more than its parts",
        "(ours: none of the papers tried mixtures)",
        "none",
        (
            Part("R@1", "mrnn+smile+cl/beam5", "above", "mrnn+smile-0.1/beam5"),
            Part("R@1", "mrnn+smile+cl/beam5", "above", "mrnn+cl/beam5"),
            Part("R@1", "mrnn+smile-then-cdp/beam5", "above", "mrnn+smile/beam5"),
            Part("R@1", "mrnn+smile-then-cdp/beam5", "above", "mrnn+cdp/beam5"),
            Part("R@1", "mrnn+cl-then-dpo/beam5", "above", "mrnn+cl/beam5"),
            Part("R@1", "mrnn+cl-then-dpo/beam5", "above", "mrnn+dpo/beam5"),
        ),
    ),
    Claim(
        "choosing does more than training",
        "(ours: margin reranking of the base against the best objectives)",
        "none",
        tuple(
            Part("R@1", "mrnn/margin", "above", f"{name}/beam5")
            for name in ("mrnn+smile", "mrnn+cdp", "mrnn+cl", "mrnn+unkt", "mrnn+dpo")
        ),
    ),
)

PAPER = Paper(
    "everything",
    "Every method on one captioner",
    METHODS,
    {
        **{method.name: ("beam5", "margin", "samples5") for method in _CAPTIONERS},
        "mrnn": ("beam5", "margin", "samples5", "consensus-cider"),
        "mrnn+unkt": ("beam5", "margin", "samples5", "consensus-cider"),
        "people": ("written",),
    },
    (TABLE,),
    CLAIMS,
    Showing(("mrnn/beam5", "mrnn+mle/beam5", "mrnn+cl/beam5", "mrnn+smile+cl/beam5")),
    notes=(
        (
            "What goes on from what has gone on from the m-RNN learns twice as long as its parts."
            " DPO, rewards and the GAN learn at a quarter of the others' rate, "
            "Cos at a tenth."
        ),
    ),
    plot=TABLE.name,
)
