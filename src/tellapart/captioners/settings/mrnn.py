"""The m-RNN family: settings and names."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.registry import Config

DROPPED = "after word embedding II, recurrent and multimodal layer (0.5 in the authors' code)"


class MRNNConfig(Config):
    """Sizes of the m-RNN; the defaults are the paper's."""

    embedding_one: PositiveInt = Field(128, description="word embedding layer I")
    embedding_two: PositiveInt = Field(256, description="word embedding layer II and recurrent layer")
    multimodal: PositiveInt = Field(512, description="multimodal layer")
    dropout: float = Field(0.0, ge=0, lt=1, description=DROPPED)


class OneLayerConfig(Config):
    """Sizes of the m-RNN with a single word embedding layer; the defaults are the paper's."""

    embedding: PositiveInt = Field(256, description="word embedding layer and recurrent layer")
    multimodal: PositiveInt = Field(512, description="multimodal layer")
    dropout: float = Field(0.0, ge=0, lt=1, description=DROPPED)


class SharedImageConfig(MRNNConfig):
    """Sizes where one matrix takes the image to two layers, which must then be equally wide.

    The paper does not say which of its two widths it then took. We take the recurrent layer's: of a wider
    recurrent layer it speaks as something still to be tried.
    """

    multimodal: PositiveInt = Field(256, description="multimodal layer, as wide as embedding_two")

    @model_validator(mode="after")
    def _equally_wide(self) -> SharedImageConfig:
        if self.multimodal != self.embedding_two:
            raise PydanticCustomError(
                "widths",
                "multimodal ({multimodal}) must equal embedding_two ({embedding}): "
                "both layers take the image by the same weights",
                {"multimodal": self.multimodal, "embedding": self.embedding_two},
            )
        return self


TINY: Mapping[str, Mapping[str, object]] = {
    "tiny": {"embedding_one": 4, "embedding_two": 6, "multimodal": 8},
}

PARTS = (
    CaptionerPart(
        name="mrnn",
        summary="multimodal recurrent network: image and words meet in one layer at every word",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4",
        presets=TINY,
    ),
    CaptionerPart(
        name="mrnn-no-emb-input",
        summary="m-RNN whose multimodal layer does not see the word, only the recurrent layer and the image",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_no_emb_input",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4 without V_w, Table 9",
        presets=TINY,
    ),
    CaptionerPart(
        name="mrnn-one-layer-emb",
        summary="m-RNN with one word embedding layer instead of two",
        config=OneLayerConfig,
        build="tellapart.captioners.mrnn:build_one_layer_emb",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4, Table 9",
        presets={"tiny": {"embedding": 6, "multimodal": 8}},
    ),
    CaptionerPart(
        name="mrnn-emb-one-input",
        summary="m-RNN whose multimodal layer takes word embedding layer I instead of II",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_emb_one_input",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4, Table 9",
        presets=TINY,
    ),
    CaptionerPart(
        name="mrnn-vis-in-rnn",
        summary="m-RNN whose image enters word embedding layer II, below the recurrent layer, and only there",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_vis_in_rnn",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4 with V_I moved, Table 9",
        presets=TINY,
    ),
    CaptionerPart(
        name="mrnn-vis-in-rnn-both",
        summary="m-RNN whose image enters word embedding layer II and the multimodal layer",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_vis_in_rnn_both",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4 with V_I(1) and V_I(2), Table 9",
        presets=TINY,
    ),
    CaptionerPart(
        name="mrnn-vis-in-rnn-both-shared",
        summary="m-RNN whose image enters word embedding layer II and multimodal layer by the same weights",
        config=SharedImageConfig,
        build="tellapart.captioners.mrnn:build_vis_in_rnn_both_shared",
        paper="Mao et al. 2015, m-RNN, Eq. 2-4 with V_I(1) = V_I(2), Table 9",
        presets={"tiny": {"embedding_one": 4, "embedding_two": 6, "multimodal": 6}},
    ),
    CaptionerPart(
        name="mrnn-shared",
        summary="m-RNN whose softmax layer shares its weights with the word embeddings, transposed",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_shared",
        paper="Mao et al. 2015, m-RNN, section 8; the sharing: Mao et al. 2015, Learning like a Child",
        presets=TINY,
    ),
    CaptionerPart(
        name="rnn-base",
        summary="m-RNN without the image: what a language model alone would write",
        config=MRNNConfig,
        build="tellapart.captioners.mrnn:build_rnn_base",
        paper="Mao et al. 2015, m-RNN, RNN-Base of Table 1",
        presets=TINY,
    ),
)
