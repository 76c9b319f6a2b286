"""A BLIP of the base size with random weights: our decoding against transformers' own `generate`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.captioner_worker import LENGTH, WIDTH, Unending, write
from benchmarks.race import Race
from benchmarks.turns import ENOUGH, in_turns
from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.extras import import_extra
from tellapart.types import AnyCaptioner, Vision
from tellapart.vision.traits import EncoderTraits

BATCHES = (1, 8)
AIM = 1.3  # times as fast


def blip_races(rounds: int, batches: Sequence[int] = BATCHES) -> Iterator[Race]:
    """The same weights, beams and lengths; from the tower's features on, and with the tower's time added."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = write_blip(Path(scratch))
        part = CAPTIONERS.get("blip")
        config = whole.config.vision_config
        grid = ((config.image_size // config.patch_size) ** 2 + 1, config.hidden_size)
        traits = EncoderTraits(name="tower", identity="tower", shapes={"grid": grid})
        captioner = build_captioner("blip", part.configure({"checkpoint": scratch}), text=None, traits=traits)
    captioner.eval().text = Unending(captioner.text)
    for batch in batches:
        pixels = torch.rand(batch, 3, config.image_size, config.image_size)
        for width in (1, WIDTH):
            yield from race_generate(captioner, whole, pixels, width, rounds)


def race_generate(
    captioner: AnyCaptioner, whole: Any, pixels: Tensor, width: int, rounds: int
) -> Iterator[Race]:
    """Captions of these pictures by a beam of that width."""
    see = torch.no_grad()(partial(whole.vision_model, pixel_values=pixels))
    shown = see().last_hidden_state
    nothing = shown.new_zeros(len(shown), 0)
    ours = partial(write, captioner, Vision(shown, nothing, nothing), width)
    theirs = partial(generate, whole, shown, width)
    same = (ours()[:, 0, :LENGTH] == theirs()[:, 1 : LENGTH + 1]).all(1)
    times = in_turns({"theirs": theirs, "ours": ours, "tower": see}, rounds, enough=ENOUGH)
    for how, tower in (
        ("from the tower's features on", [0.0] * len(times["tower"])),
        ("with its tower", times["tower"]),
    ):
        yield Race(
            f"BLIP of the base size, {len(pixels)} images, beam {width}, {how}",
            [sum(pair) for pair in zip(times["ours"], tower, strict=True)],
            "s",
            against="transformers' generate",
            theirs=[sum(pair) for pair in zip(times["theirs"], tower, strict=True)],
            aim=AIM,
            note=f"{int(same.sum())} captions are the same",
        )


def generate(whole: Any, shown: Tensor, width: int) -> Tensor:
    """As the library's model calls its text decoder, but that no token ends a caption."""
    ids = whole.config.text_config
    tokens: Tensor = whole.text_decoder.generate(
        input_ids=torch.full((len(shown), 1), ids.bos_token_id),
        encoder_hidden_states=shown,
        encoder_attention_mask=torch.ones(shown.shape[:2], dtype=torch.long),
        num_beams=width,
        max_new_tokens=LENGTH + 1,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=ids.pad_token_id,
    )
    assert tokens.shape == (len(shown), LENGTH + 2)
    return tokens


def write_blip(folder: Path) -> Any:
    """Write a random checkpoint of the library's default sizes, the base model's; gives the model back."""
    transformers, tokenizers = (
        import_extra(module, needed_by="BLIP", extra="transformers")
        for module in ("transformers", "tokenizers")
    )
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # it warns of a length penalty without a beam
    torch.manual_seed(1)
    config = transformers.BlipConfig()
    ids = config.text_config
    signs = {ids.pad_token_id: "[PAD]", 100: "[UNK]", 101: "[CLS]", ids.sep_token_id: "[SEP]"}
    pieces = {signs.get(place, f"piece{place}"): place for place in range(ids.bos_token_id)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]")),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    whole = transformers.BlipForConditionalGeneration(config).eval()
    # Its beams are then weighed as ours are, by the probability of the whole caption.
    whole.text_decoder.generation_config.update(eos_token_id=None, length_penalty=0.0)
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    side = config.vision_config.image_size
    size = {"size": {"height": side, "width": side}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(size), encoding="utf-8")
    return whole
