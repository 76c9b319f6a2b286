"""Tiny random checkpoints of transformers, whole folders as save_pretrained() writes them.

Their weights are drawn with a large enough spread that captions differ from picture to picture, and their
special ids are deliberately not those that the library's configurations have by default.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")

KINDS = ("blip", "git", "vit-gpt2", "blip2", "image-text", "smolvlm")
SENTENCES = (
    "a red dog runs over the green grass",
    "two men ride a horse on a beach",
    "the small cat sits under a blue table",
    "a picture of a man with a ball",
    "describe the image in one sentence user assistant",
)
PREPROCESSING: dict[str, Any] = {
    "size": {"height": 16, "width": 16},
    "image_mean": [0.48, 0.46, 0.41],
    "image_std": [0.27, 0.26, 0.28],
    "rescale_factor": 1 / 255,
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,
}
SEEING = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": 16, "patch_size": 8,
}  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}{{ message['role'].upper() }}: {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %} {% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def write_tiny(kind: str, folder: Path, *, seed: int = 0, spread: float = 0.5) -> Path:
    """Write a random checkpoint of that kind, with tokenizer and image processor; gives the folder back."""
    torch.manual_seed(seed)
    model, tokenizer = {
        "blip": _blip,
        "git": _git,
        "vit-gpt2": _vit_gpt2,
        "blip2": _blip2,
        "image-text": _llava,
        "smolvlm": _smolvlm,
    }[kind]()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, spread)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    model.tie_weights()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if kind not in ("image-text", "smolvlm"):
        (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))
    else:
        _processor(kind, tokenizer).save_pretrained(folder)
    return folder


def _word_pieces() -> Any:
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *words,
        *(letter for letter in letters if letter not in words),
    ]
    pieces += [f"##{letter}" for letter in letters]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    backend.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.decoder = tokenizers.decoders.WordPiece(prefix="##")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def _byte_pairs(*special: str, **signs: str) -> Any:
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=list(special),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **signs)


def _blip() -> tuple[Any, Any]:
    tokenizer = _word_pieces()
    size = len(tokenizer) + 2  # the start sign, behind the tokenizer's own pieces, as in the real ones
    text = {
        "hidden_size": 16, "encoder_hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": size, "max_position_embeddings": 128, "projection_dim": 16,
        "bos_token_id": size - 2, "eos_token_id": 5, "pad_token_id": 0, "sep_token_id": 3,
        "label_smoothing": 0.0,
    }  # fmt: skip
    config = transformers.BlipConfig(text_config=text, vision_config=SEEING, projection_dim=16)
    return transformers.BlipForConditionalGeneration(config), tokenizer


def _git() -> tuple[Any, Any]:
    tokenizer = _word_pieces()
    config = transformers.GitConfig(
        vision_config=SEEING, vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=24, max_position_embeddings=128, bos_token_id=2,
        eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    return transformers.GitForCausalLM(config), tokenizer


def _vit_gpt2() -> tuple[Any, Any]:
    tokenizer = _byte_pairs("<|endoftext|>", eos_token="<|endoftext|>", bos_token="<|endoftext|>")
    seeing = transformers.ViTConfig(**SEEING)
    writing = transformers.GPT2Config(
        n_embd=24, n_layer=2, n_head=3, n_positions=128, vocab_size=len(tokenizer), add_cross_attention=True,
        is_decoder=True, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(seeing, writing)
    config.decoder_start_token_id = tokenizer.bos_token_id
    config.eos_token_id = config.pad_token_id = tokenizer.eos_token_id
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.decoder_start_token_id = tokenizer.bos_token_id
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = tokenizer.eos_token_id
    return model, tokenizer


def _blip2() -> tuple[Any, Any]:
    tokenizer = _byte_pairs("<pad>", "</s>", "<image>", pad_token="<pad>", bos_token="</s>", eos_token="</s>")
    writing = transformers.OPTConfig(
        vocab_size=len(tokenizer), hidden_size=16, word_embed_proj_dim=16, num_hidden_layers=2,
        num_attention_heads=4, ffn_dim=24, max_position_embeddings=128, bos_token_id=1, eos_token_id=1,
        pad_token_id=0,
    )  # fmt: skip
    asking = transformers.Blip2QFormerConfig(
        vocab_size=9, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        encoder_hidden_size=16, cross_attention_frequency=1,
    )  # fmt: skip
    config = transformers.Blip2Config(
        vision_config=transformers.Blip2VisionConfig(**SEEING).to_dict(),
        qformer_config=asking.to_dict(),
        text_config=writing.to_dict(),
        num_query_tokens=5,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    return transformers.Blip2ForConditionalGeneration(config), tokenizer


def _llama(tokenizer: Any) -> Any:
    return transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip


def _llava() -> tuple[Any, Any]:
    tokenizer = _byte_pairs(
        "<unk>",
        "<s>",
        "</s>",
        "<image>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<unk>",
    )
    tokenizer.chat_template = TEMPLATE
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**SEEING),
        text_config=_llama(tokenizer),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    return transformers.LlavaForConditionalGeneration(config), tokenizer


def _smolvlm() -> tuple[Any, Any]:
    tokenizer = _byte_pairs(
        "<pad>", "<s>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>",
        *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
        pad_token="<pad>", bos_token="<s>", eos_token="<end_of_utterance>",
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    config = transformers.Idefics3Config(
        vision_config={**SEEING, "image_size": 32},
        text_config=_llama(tokenizer),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Idefics3ForConditionalGeneration(config), tokenizer


def _processor(kind: str, tokenizer: Any) -> Any:
    if kind == "image-text":
        images = transformers.CLIPImageProcessorPil(
            size={"height": 16, "width": 16}, crop_size={"height": 16, "width": 16}, do_center_crop=False
        )
        return transformers.LlavaProcessor(
            images, tokenizer, patch_size=8, vision_feature_select_strategy="default",
            num_additional_image_tokens=1, chat_template=TEMPLATE,
        )  # fmt: skip
    images = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
    )
    return transformers.Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=TEMPLATE)
