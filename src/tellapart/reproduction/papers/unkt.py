"""UNKT (Fei and Huang, IJCAI 2023)."""

from __future__ import annotations

from dataclasses import replace

from tellapart.reproduction.methods import FAST, HIGH, LIKELIHOOD, LOW, go_on
from tellapart.reproduction.plan import Claim, Column, Direction, Method, Paper, Part, Row, Showing, Table

# Likelihood must keep some weight: it is what keeps captions well-formed in two epochs.
_RISING = 'objective.weight={ kind = "progressive", epochs = 1.0, end = 0.5 }'
_FIXED = "objective.weight=0.25"  # half of the highest, as theirs is

TRANSFORMER = Method(
    "transformer", "Transformer by likelihood", "transformer", seeds=3, minutes=22, priority=0
)
HALVES = Method(
    "halves",
    "the training captions that fit many pictures, and those that fit few",
    "transformer",
    kind="entropy",
    minutes=2,
    priority=0,
)


def _student(ending: str, says: str, *changes: str, teacher: str = "transformer-high") -> Method:
    settings = ("objective.name=unkt", f"objective.teacher={{{teacher}}}", _RISING)
    return go_on(TRANSFORMER, f"transformer+unkt{ending}", says, *settings, *changes, minutes=8)


UNKT = replace(_student("", "UNKT: away from the teacher of generic captions"), seeds=3, priority=1)
# As many epochs as the Transformer without memory.
_MESHED = Method(
    "meshed",
    "Transformer with meshed memory by likelihood",
    "meshed",
    ("training.epochs=8", FAST),
    minutes=40,
)
METHODS = (
    TRANSFORMER,
    HALVES,
    go_on(
        TRANSFORMER,
        "transformer-high",
        "the negative teacher p⁻: gone on with generic captions",
        LIKELIHOOD,
        *HIGH,
        minutes=4,
        seeds=3,
        priority=0,
    ),
    go_on(TRANSFORMER, "transformer-low", "p⁺: gone on with specific captions", LIKELIHOOD, *LOW, minutes=4),
    go_on(
        TRANSFORMER,
        "transformer+mle",
        "as much more of likelihood: UNKT without L_neg",
        LIKELIHOOD,
        minutes=7,
        seeds=3,
        priority=0,
    ),
    UNKT,
    _student("-no-pred", "UNKT without L_pred", "objective.predictions=false"),
    _student("-no-att", "UNKT without L_att", "objective.attention=false"),
    _student("-no-hid", "UNKT without L_hid", "objective.hidden=false"),
    _student("-by-low", "UNKT with p⁺ as the teacher", teacher="transformer-low"),
    _student("-hard", "UNKT with hard targets", "objective.targets=hard"),
    _student("-random", "UNKT with random targets", "objective.targets=random"),
    _student("-fixed", "UNKT with a fixed λ", _FIXED),
    _MESHED,
    go_on(
        _MESHED, "meshed-high", "the same, gone on with generic captions", FAST, LIKELIHOOD, *HIGH, minutes=6
    ),
    go_on(
        _MESHED,
        "meshed+unkt",
        "UNKT with memory",
        FAST,
        "objective.name=unkt",
        "objective.teacher={meshed-high}",
        _RISING,
        minutes=14,
    ),
)


def oracle(count: int) -> tuple[Column, ...]:
    """The columns of Table 1, in percent, of the best of so many samples."""
    names = (*(f"BLEU-{order}" for order in range(4, 0, -1)), "CIDEr-D", "ROUGE-L")
    labels = ("BLEU-4", "BLEU-3", "BLEU-2", "BLEU-1", "CIDEr", "ROUGE")
    return tuple(
        Column(label, f"oracle {name}@{count}", 100.0, 1) for label, name in zip(labels, names, strict=True)
    )


DIVERSITY = (
    Column("Div-1", "Div-1", 1.0, 2, way="best5"),
    Column("SelfCIDEr", "SelfCIDEr", 1.0, 2, way="best5"),
    Column("mB.", "mBLEU-4", 1.0, 2, way="best5"),
)
ABLATION = (
    Column("B-4", "oracle BLEU-4@20", 100.0, 1),
    Column("M", ""),
    Column("C", "oracle CIDEr-D@20", 100.0, 1),
    *DIVERSITY,
)
_FULL = ("54.5", "41.9", "174.2", "0.46", "0.85", "0.50")
_COUNTS = (1, 2, 5, 10, 20, 50, 100)


# What the name UNKT stands for here.
_SMALLER = (
    "Ours go on from a finished Transformer, λ rising to one half; theirs learn from the beginning, λ rising "
    "to 1."
)


def _ablation(name: str, title: str, rows: tuple[Row, ...], note: str = "") -> Table:
    told = f"{title} (theirs: MS COCO; best of 20 samples, diversity of the best 5)"
    return Table(name, told, ABLATION, rows, f"{_SMALLER} {note}".strip())


TABLES = (
    Table(
        "Table 1, 20 samples",
        "best of the samples of each image, by each measure (theirs: 1,000 images of MS COCO)",
        oracle(20),
        (
            Row("UNKT", "transformer+unkt/samples20", ("54.5", "68.5", "80.0", "92.0", "174.2", "73.8")),
            Row("UNKT w/ memory", "meshed+unkt/samples20", ("55.8", "69.1", "80.4", "92.3", "176.4", "74.2")),
            Row("Transformer by likelihood", "transformer/samples20"),
            Row("Transformer w/ memory by likelihood", "meshed/samples20"),
            Row("as much more of likelihood (our control)", "transformer+mle/samples20"),
        ),
        f"{_SMALLER} How their samples were drawn is not said; ours at temperature 1. Their METEOR and SPICE "
        "are left out.",
    ),
    Table(
        "Table 1, 100 samples",
        "the same (theirs: 1,000 images of MS COCO)",
        oracle(100),
        (
            Row("UNKT", "transformer+unkt/samples100", ("65.6", "75.5", "85.3", "94.9", "196.8", "78.4")),
            Row(
                "UNKT w/ memory", "meshed+unkt/samples100", ("66.1", "75.8", "85.5", "95.0", "197.5", "78.7")
            ),
            Row("as much more of likelihood (our control)", "transformer+mle/samples100"),
        ),
    ),
    Table(
        "Figure 2",
        "CIDEr of the best of N samples (theirs are curves, whose values are not printed)",
        tuple(Column(f"N = {count}", f"oracle CIDEr-D@{count}", 100.0, 1) for count in _COUNTS),
        (
            Row("UNKT", "transformer+unkt/samples100"),
            Row("as much more of likelihood (our control)", "transformer+mle/samples100"),
        ),
        _SMALLER,
        is_curve=True,
    ),
    Table(
        "Table 2",
        "diversity of the best 5 by consensus (theirs: MS COCO)",
        (DIVERSITY[0], Column("Div-2", "Div-2", 1.0, 2, way="best5"), *DIVERSITY[1:]),
        (
            Row("Transformer-BS", "transformer/beam5-set", ("0.21", "0.29", "0.57", "0.78")),
            Row("UNKT", "transformer+unkt/best5", ("0.46", "0.63", "0.85", "0.50")),
            Row("UNKT w/ memory", "meshed+unkt/best5", ("0.45", "0.60", "0.83", "0.53")),
            Row("as much more of likelihood (our control)", "transformer+mle/best5"),
        ),
        f"{_SMALLER} A beam's row is of the five captions of a beam of 5.",
    ),
    _ablation(
        "Table 3",
        "each term left out",
        (
            Row("UNKT", "transformer+unkt/samples20", _FULL),
            Row(
                "w/o L_pred",
                "transformer+unkt-no-pred/samples20",
                ("55.3", "43.0", "175.5", "0.45", "0.83", "0.54"),
            ),
            Row(
                "w/o L_att",
                "transformer+unkt-no-att/samples20",
                ("54.9", "42.4", "174.8", "0.43", "0.82", "0.54"),
            ),
            Row(
                "w/o L_hid",
                "transformer+unkt-no-hid/samples20",
                ("53.6", "40.4", "172.5", "0.41", "0.80", "0.57"),
            ),
            Row("w/o L_neg", "transformer+mle/samples20", ("44.9", "36.4", "145.7", "0.22", "0.58", "0.79")),
        ),
    ),
    _ablation(
        "Table 4",
        "captioners of the two halves",
        (
            Row("p⁻", "transformer-high/samples20", ("39.2", "35.3", "138.2", "0.18", "0.55", "0.80")),
            Row("p⁺", "transformer-low/samples20", ("42.3", "36.5", "144.2", "0.32", "0.63", "0.64")),
        ),
        "So do the captioners of the halves; theirs are trained on a half alone.",
    ),
    _ablation(
        "Table 5",
        "either half as the teacher",
        (
            Row("by p⁻", "transformer+unkt/samples20", _FULL),
            Row(
                "by p⁺",
                "transformer+unkt-by-low/samples20",
                ("54.2", "41.5", "173.7", "0.31", "0.63", "0.65"),
            ),
        ),
    ),
    _ablation(
        "Table 6",
        "targets",
        (
            Row(
                "Random",
                "transformer+unkt-random/samples20",
                ("52.5", "39.2", "168.3", "0.38", "0.77", "0.61"),
            ),
            Row("Hard", "transformer+unkt-hard/samples20", ("54.4", "41.7", "174.0", "0.45", "0.83", "0.52")),
            Row("Soft", "transformer+unkt/samples20", _FULL),
        ),
        "Our hard and random targets are words, not sentences.",
    ),
    _ablation(
        "Table 8",
        "λ (ours, fixed: one quarter)",
        (
            Row(
                "Fixed λ",
                "transformer+unkt-fixed/samples20",
                ("54.3", "41.6", "173.9", "0.43", "0.82", "0.55"),
            ),
            Row("Progressive", "transformer+unkt/samples20", _FULL),
        ),
    ),
)


_DIRECTIONS: tuple[tuple[str, Direction], ...] = (
    ("Div-1", "above"),
    ("SelfCIDEr", "above"),
    ("mBLEU-4", "below"),
)


def _more_diverse(one: str, other: str) -> tuple[Part, ...]:
    return tuple(Part(name, f"{one}/best5", direction, f"{other}/best5") for name, direction in _DIRECTIONS)


_NAME = "transformer+unkt"
CLAIMS = (
    Claim(
        "better captions among many",
        "the standard Transformer equipped with UNKT obtain a significant improvement [...] on all the "
        "quality metrics w.r.t. both 20 and 100 samples",
        "section 4.2, Table 1, there against the best competitors; here against as many steps of likelihood",
        tuple(
            Part(
                f"oracle {name}@{count}",
                f"{_NAME}/samples{count}",
                "above",
                f"transformer+mle/samples{count}",
            )
            for count in (20, 100)
            for name in ("BLEU-4", "CIDEr-D", "ROUGE-L")
        ),
    ),
    Claim(
        "at every number of samples",
        "the proposed UNKT model consistently outperforms baselines in all settings",
        "section 4.2, Figure 2, there against other systems; here against as many steps of likelihood",
        tuple(
            Part(f"oracle CIDEr-D@{count}", f"{_NAME}/samples100", "above", "transformer+mle/samples100")
            for count in _COUNTS
        ),
    ),
    Claim(
        "memory adds to quality",
        "when employed with the advanced meshed memory structure [...] the captioning performance obtains "
        "further "
        "gains",
        "section 4.2, Table 1",
        (Part("oracle CIDEr-D@20", "meshed+unkt/samples20", "above", f"{_NAME}/samples20"),),
    ),
    Claim(
        "memory takes from diversity",
        "the incorporation of memory will degrade the diverse performance to some degree",
        "section 4.3, Table 2",
        (
            Part("Div-1", "meshed+unkt/best5", "below", f"{_NAME}/best5"),
            Part("SelfCIDEr", "meshed+unkt/best5", "below", f"{_NAME}/best5"),
        ),
    ),
    Claim(
        "more diverse captions",
        "the proposed UNKT model achieves higher performance on most of the diversity evaluation metrics",
        "section 4.3, Table 2, there against a beam and other systems; here against as many steps of "
        "likelihood with captions drawn alike, for whatever is drawn differs more than a beam",
        _more_diverse(_NAME, "transformer+mle"),
    ),
    *(
        Claim(
            f"{term} adds to diversity",
            "all three knowledge transfer objectives, from distinct perspectives, contribute to enhancing "
            "both "
            "the diversity and quality of captioning",
            "section 4.4, Table 3, where without L_pred or L_att CIDEr is higher",
            (
                *_more_diverse(_NAME, f"{_NAME}-no-{name}"),
                Part("oracle CIDEr-D@20", f"{_NAME}/samples20", "above", f"{_NAME}-no-{name}/samples20"),
            ),
        )
        for term, name in (("L_pred", "pred"), ("L_att", "att"), ("L_hid", "hid"))
    ),
    Claim(
        "the entropy filter divides by diversity",
        "the p⁺ model significantly surpasses the p⁻ model in all diversity-related metrics",
        "section 4.4, Table 4",
        _more_diverse("transformer-low", "transformer-high"),
    ),
    Claim(
        "generic captions make the better negative teacher",
        "p_s⁻ exhibits greater improvements in diversity than p_s⁺",
        "section 4.4, Table 5",
        _more_diverse(_NAME, f"{_NAME}-by-low"),
    ),
    Claim(
        "soft targets",
        "UNKT with soft targets can significantly enhance caption diversity",
        "section 4.4, Table 6",
        _more_diverse(_NAME, f"{_NAME}-hard"),
    ),
    Claim(
        "random targets do harm",
        "The substantial drop in image captioning performance confirms that the negative teacher model can "
        "generate high-quality, yet hard, conditional generic captions",
        "section 4.4, Table 6, of random targets",
        tuple(
            Part(f"oracle {name}@20", f"{_NAME}-random/samples20", "below", f"{_NAME}/samples20")
            for name in ("BLEU-4", "CIDEr-D")
        ),
    ),
    Claim(
        "progressive λ",
        "the progressive optimization policy enables the student model to leverage negative knowledge more "
        "effectively and comprehensively",
        "section 4.4, Table 8",
        _more_diverse(_NAME, f"{_NAME}-fixed"),
    ),
)
_SETS = ("samples20", "best5")

PAPER = Paper(
    "unkt",
    "Incorporating Unlikely Negative Cues for Distinctive Image Captioning, Fei and Huang, IJCAI 2023",
    METHODS,
    {
        **{method.name: _SETS for method in METHODS if "+unkt" in method.name},
        "transformer-high": _SETS,
        "transformer-low": _SETS,
        "transformer": ("beam5", "beam5-set", *_SETS),
        "transformer+mle": ("beam5", *_SETS, "samples100"),
        "transformer+unkt": ("beam5", *_SETS, "samples100"),
        "meshed": ("samples20",),
        "meshed+unkt": (*_SETS, "samples100"),
    },
    TABLES,
    CLAIMS,
    Showing(("transformer/beam5", "transformer+mle/beam5", "transformer+unkt/beam5")),
    notes=(
        (
            "On photographs our Transformer has three layers of width 256 on either side, theirs six of "
            "width 512. Ours learns at 7e-4 after 200 steps of warm-up, and what goes on from it for two "
            "epochs at 2e-4; theirs at 3e-4 after 3,000. The ones with memory are trained with matrix "
            "products in 16 bits where the processor knows how."
        ),
    ),
    left_out=(
        "Table 7: nobody was asked",
        "METEOR of Tables 1 and 3 to 8 and SPICE of Table 1: hours for 100 captions of each image",
        "rows of other systems in Tables 1 and 2",
    ),
)
