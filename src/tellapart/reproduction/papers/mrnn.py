"""m-RNN (Mao et al., ICLR 2015)."""

from __future__ import annotations

from tellapart.reproduction.methods import MRNN, RANKED_FAST
from tellapart.reproduction.plan import Claim, Column, Method, Paper, Part, Row, Showing, Table

BLEU = tuple(Column(f"B-{order}", f"BLEU-{order}") for order in range(1, 5))
SENTENCES = (
    *BLEU,
    Column("CIDEr", "CIDEr-D"),
    Column("ROUGE-L", "ROUGE-L"),
    Column("METEOR", "METEOR"),
)
BOTH_WAYS = tuple(
    Column(f"{way}: {label}", f"{way} {measure}", scale, digits)
    for way in ("image-to-sentence", "sentence-to-image")
    for label, measure, scale, digits in (
        ("R@1", "R@1", 100.0, 1),
        ("R@5", "R@5", 100.0, 1),
        ("R@10", "R@10", 100.0, 1),
        ("Med r", "Median-rank", 1.0, 0),
    )
)
PLAIN = tuple(
    Column(f"image-to-sentence, plain: {label}", f"plain {measure}", scale, digits)
    for label, measure, scale, digits in (("R@1", "R@1", 100.0, 1), ("Med r", "Median-rank", 1.0, 0))
)
# As long as the m-RNN itself, and ended by what it is ended by: nothing but the network differs.
LIKE_MRNN = ("training.epochs=10", "training.stop_metric=perplexity")
SHARED = Method(
    "mrnn-shared",
    "m-RNN whose softmax layer shares its weights with the word embeddings",
    "mrnn-shared",
    LIKE_MRNN,
    seeds=3,
    minutes=6,
    priority=1,
)
_NAMES = {
    "mrnn-no-emb-input": ("m-RNN-NoEmbInput", ("0.592", "0.408", "0.277", "0.188")),
    "mrnn-one-layer-emb": ("m-RNN-OneLayerEmb", ("0.594", "0.406", "0.274", "0.184")),
    "mrnn-emb-one-input": ("m-RNN-EmbOneInput", ("0.590", "0.406", "0.274", "0.185")),
    "mrnn-vis-in-rnn": ("m-RNN-visInRnn", ("0.466", "0.267", "0.157", "0.101")),
    "mrnn-vis-in-rnn-both": ("m-RNN-visInRnn-both", ("0.546", "0.333", "0.191", "0.120")),
    "mrnn-vis-in-rnn-both-shared": ("m-RNN-visInRnn-both-shared", ("0.478", "0.279", "0.171", "0.110")),
}
VARIANTS = tuple(
    Method(name, f"the variant {label}", name, LIKE_MRNN, minutes=8) for name, (label, _) in _NAMES.items()
)
BASE = Method(
    "rnn-base", "m-RNN without the picture: a language model alone", "rnn-base", LIKE_MRNN, minutes=8
)

TABLE_9 = Table(
    "Table 9",
    "variants of m-RNN (theirs: Flickr30k, VggNet; greedy)",
    BLEU,
    (
        Row("m-RNN", "mrnn/greedy", ("0.600", "0.412", "0.278", "0.187")),
        *(Row(label, f"{name}/greedy", numbers) for name, (label, numbers) in _NAMES.items()),
    ),
)
SECTION_7_4 = Table(
    "Section 7.4",
    "sentences of Flickr8k: the one data set that is theirs and ours (theirs: AlexNet, greedy)",
    BLEU,
    (Row("Ours-m-RNN-AlexNet", "mrnn/greedy", ("0.565", "0.386", "0.256", "0.170")),),
    "Their perplexity, 24.39, is of other words than ours and does not compare.",
)
TABLE_1 = Table(
    "Table 1, in kind",
    "with and without the picture (theirs: IAPR TC-12, whose numbers are not comparable and are left out)",
    BLEU,
    (Row("Ours-RNN-Base", "rnn-base/greedy"), Row("Ours-m-RNN", "mrnn/greedy")),
)
TABLE_8 = Table(
    "Table 8",
    "consensus reranking of a beam of 10 (theirs: MS COCO val)",
    SENTENCES,
    (
        Row(
            "m-RNN-shared",
            "mrnn-shared/beam5",
            ("0.686", "0.511", "0.375", "0.280", "0.842", "0.500", "0.228"),
        ),
        Row(
            "m-RNN-shared-NNref-BLEU",
            "mrnn-shared/consensus-bleu",
            ("0.718", "0.550", "0.409", "0.305", "0.909", "0.519", "0.235"),
        ),
        Row(
            "m-RNN-shared-NNref-CIDEr",
            "mrnn-shared/consensus-cider",
            ("0.714", "0.543", "0.406", "0.304", "0.938", "0.519", "0.239"),
        ),
        Row("the same, neighbours by the original feature", "mrnn-shared/consensus-cider-pooled"),
        Row(
            "m-RNN-shared-NNref-BLEU-Orcale",
            "mrnn-shared/oracle-bleu",
            ("0.792", "0.663", "0.543", "0.443", "1.235", "0.602", "0.287"),
        ),
        Row(
            "m-RNN-shared-NNref-CIDEr-Oracle",
            "mrnn-shared/oracle-cider",
            ("0.784", "0.648", "0.529", "0.430", "1.272", "0.593", "0.287"),
        ),
        Row("m-RNN-shared, greedy", "mrnn-shared/greedy"),
        Row("m-RNN-shared, beam of 10", "mrnn-shared/beam10"),
    ),
    "Their CIDEr is what this program calls CIDEr-D. Without reranking they take a beam of 5 (footnote 8).",
)
TABLE_3 = Table(
    "Table 3",
    "retrieval both ways (theirs: Flickr8k, AlexNet)",
    (*BOTH_WAYS, *PLAIN),
    (
        Row(
            "Ours-m-RNN-AlexNet, sentences by Eq. 7",
            "mrnn/ranks",
            ("14.5", "37.2", "48.5", "11", "11.5", "31.0", "42.4", "15", "", ""),
        ),
    ),
    "Image-to-sentence is by Eq. 7, in the last columns by plain likelihood. Ranks from 1.",
)
NOVEL = Table(
    "Section 7.5",
    "share of generated sentences that are no training sentences (theirs: MS COCO, greedy)",
    (Column("novel, %", "Novel", 100.0, 0), Column("distinct, %", "Distinct", 100.0, 0)),
    (
        Row("m-RNN, greedy", "mrnn/greedy", ("71", "")),
        Row("m-RNN, beam of 5", "mrnn/beam5"),
        Row("m-RNN-shared, consensus by CIDEr", "mrnn-shared/consensus-cider"),
    ),
)

CLAIMS = (
    Claim(
        "two word embedding layers",
        "the original m-RNN model with the two word embedding layers and the connection between word "
        "embedding "
        "layer II and multimodal layer performs the best",
        "section 10.1, Table 9, where by BLEU-4 NoEmbInput is .001 ahead",
        tuple(
            Part(measure, "mrnn/greedy", "above", f"{name}/greedy")
            for name in ("mrnn-no-emb-input", "mrnn-one-layer-emb", "mrnn-emb-one-input")
            for measure in ("BLEU-1", "BLEU-4")
        ),
    ),
    Claim(
        "the picture enters the multimodal layer",
        "the original m-RNN model performs much better than these models, indicating that it is effective to "
        "directly input the visual information to the multimodal layer",
        "section 10.1, Table 9",
        tuple(
            Part(measure, "mrnn/greedy", "above", f"{name}/greedy")
            for name in ("mrnn-vis-in-rnn", "mrnn-vis-in-rnn-both", "mrnn-vis-in-rnn-both-shared")
            for measure in ("BLEU-1", "BLEU-4")
        ),
    ),
    Claim(
        "better than a language model",
        "our m-RNN model performs much better than our baseline RNN model and the state-of-the-art methods "
        "both in terms of the perplexity and BLEU score",
        "section 7.3, Table 1 (there on IAPR TC-12); here by BLEU against the RNN alone",
        (
            Part("BLEU-1", "mrnn/greedy", "above", "rnn-base/greedy"),
            Part("BLEU-4", "mrnn/greedy", "above", "rnn-base/greedy"),
        ),
    ),
    Claim(
        "consensus by BLEU",
        "For BLEU-based consensus reranking, we get an improvement of 3.5 points on our validation set "
        "[...] in "
        "terms of BLEU4 score",
        "section 8.3; by Table 8 it is 2.5 points; here any gain",
        (Part("BLEU-4", "mrnn-shared/consensus-bleu", "above", "mrnn-shared/beam5"),),
    ),
    Claim(
        "consensus by CIDEr",
        "For the CIDEr-based consensus reranking, we get an improvement of 9.4 points on our validation "
        "set [...] in "
        "terms of CIDEr",
        "section 8.3; by Table 8 it is 9.6 points; here any gain",
        (Part("CIDEr-D", "mrnn-shared/consensus-cider", "above", "mrnn-shared/beam5"),),
    ),
    Claim(
        "each similarity helps its own measure",
        "(the table: by BLEU more BLEU-4, by CIDEr more CIDEr)",
        "Table 8, our reading of its numbers, of which those of BLEU-4 differ by .001",
        (
            Part("CIDEr-D", "mrnn-shared/consensus-cider", "above", "mrnn-shared/consensus-bleu"),
            Part("BLEU-4", "mrnn-shared/consensus-bleu", "above", "mrnn-shared/consensus-cider"),
        ),
    ),
    Claim(
        "room for improvement",
        "The oracle performance is surprisingly high, indicating that there is still room for improvement",
        "section 8.4, Table 8; above what consensus chooses an oracle is by construction: the size tells",
        (
            Part("BLEU-4", "mrnn-shared/oracle-bleu", "above", "mrnn-shared/consensus-bleu"),
            Part("CIDEr-D", "mrnn-shared/oracle-cider", "above", "mrnn-shared/consensus-cider"),
        ),
    ),
    Claim(
        "a beam of 5 rather than 10 without reranking",
        "If we directly output the top hypotheses generated by the model, then n = 5 gives us the best "
        "performance.",
        "footnote 8; ours divides by the length to the power of .6, theirs adds up",
        (
            Part("CIDEr-D", "mrnn-shared/beam5", "above", "mrnn-shared/beam10"),
            Part("CIDEr-D", "mrnn-shared/beam5", "above", "mrnn-shared/greedy"),
        ),
    ),
    Claim(
        "refined features find better neighbours",
        "the features refined by the m-RNN model are better for capturing richer and more accurate visual "
        "information",
        "Figure 3; here: captions chosen by such neighbours are better",
        (Part("CIDEr-D", "mrnn-shared/consensus-cider", "above", "mrnn-shared/consensus-cider-pooled"),),
    ),
    Claim(
        "sentences are ranked by Eq. 7",
        "The sentence retrieval task is trickier because there might be some sentences that have high "
        "probability or "
        "perplexity for any image query (e.g. sentences consist of many frequently appeared words).",
        "section 5, of why sentences are ranked by Eq. 7 instead of plain likelihood",
        tuple(
            Part(f"image-to-sentence R@{k}", "mrnn/ranks", "above", "mrnn/ranks", than=f"plain R@{k}")
            for k in (1, 10)
        ),
    ),
)

PAPER = Paper(
    "mrnn",
    "Deep Captioning with Multimodal Recurrent Neural Networks (m-RNN), Mao et al., ICLR 2015",
    (MRNN, SHARED, *VARIANTS, BASE),
    {
        "mrnn": ("greedy", "beam5", "ranks"),
        "mrnn-shared": (
            *("greedy", "beam5", "beam10", "consensus-bleu", "consensus-cider", "consensus-cider-pooled"),
            *("oracle-bleu", "oracle-cider"),
        ),
        **dict.fromkeys((*_NAMES, "rnn-base"), ("greedy",)),
    },
    (TABLE_9, SECTION_7_4, TABLE_1, TABLE_3, TABLE_8, NOVEL),
    CLAIMS,
    Showing(("mrnn-shared/beam5", "mrnn-shared/oracle-cider", "mrnn-shared/consensus-cider")),
    notes=(RANKED_FAST,),
    left_out=(
        "Tables 2, 4, 5 and 7: IAPR TC-12, Flickr30k and MS COCO are not at hand",
        "Table 8 on COCO's server",
        "Table 6, section 10.2 and rows of other systems in Table 3",
    ),
)
