"""SMILE for language models: transformers' own Trainer, with `compute_loss_func=smile_loss(model)`.

A tiny GPT-2 and a tiny BART learn by maximum likelihood to say something about a thing that is named; now and
then the texts they learn from tell its size, its colour, what it does or where. They then go on, once with
maximum likelihood and once with SMILE, and the lengths of what they write are printed. On one core:

    python examples/smile_language_model.py
"""

from __future__ import annotations

import argparse
import copy
import logging
import random
import tempfile
from typing import Any

import tokenizers
import torch
import transformers

from tellapart.objectives import smile_loss

THINGS = ["dog", "cat", "horse", "bird", "car", "boat", "train", "girl", "boy", "man", "woman", "tree"]
DETAILS = {
    "size": ["big", "small", "tall", "young", "old"],
    "colour": ["red", "brown", "black", "white", "green"],
    "action": ["running", "resting", "waiting", "moving"],
    "place": ["in the park", "on the street", "near the water", "by the house"],
}
PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<unknown>"
IGNORED = -100  # no label: what was asked is not to be learnt

Example = dict[str, list[int]]


def describe(thing: str, draw: random.Random) -> str:
    """A text about a thing; each detail is told in one of three."""
    told = {kind: draw.choice(words) if draw.random() < 1 / 3 else "" for kind, words in DETAILS.items()}
    return " ".join(f"a {told['size']} {told['colour']} {thing} {told['action']} {told['place']}".split())


def build_tokenizer() -> Any:
    """One token a word."""
    words = sorted({"a", *THINGS, *(word for text in DETAILS.values() for word in " ".join(text).split())})
    numbers = {word: number for number, word in enumerate([PAD, START, END, UNKNOWN, *words])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token=UNKNOWN))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token=PAD, bos_token=START, eos_token=END, unk_token=UNKNOWN
    )


def build_gpt2(tokenizer: Any) -> Any:
    """A causal model."""
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def build_bart(tokenizer: Any) -> Any:
    """An encoder-decoder model."""
    config = transformers.BartConfig(
        vocab_size=len(tokenizer), max_position_embeddings=32, d_model=48, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, decoder_start_token_id=tokenizer.bos_token_id,
        forced_eos_token_id=None,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def as_example(model: Any, tokenizer: Any, thing: str, text: str) -> Example:
    """What the model reads and what it is to write: behind what was asked, or in a decoder of its own."""
    asked, told = tokenizer.encode(f"{thing} {START}"), tokenizer.encode(f"{text} {END}")
    if model.config.is_encoder_decoder:
        return {"input_ids": asked, "labels": told}
    return {"input_ids": asked + told, "labels": [IGNORED] * len(asked) + told}


def train(model: Any, tokenizer: Any, examples: list[Example], *, steps: int, loss: Any = None) -> None:
    """So many steps with a loss, by default the model's own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = transformers.TrainingArguments(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=32, learning_rate=3e-3,
            lr_scheduler_type="constant", save_strategy="no", logging_strategy="no", report_to="none",
            disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False, seed=0,
        )  # fmt: skip
        collate = transformers.DataCollatorForSeq2Seq(tokenizer, model=model)
        trainer = transformers.Trainer(
            model, settings, train_dataset=examples, data_collator=collate, compute_loss_func=loss
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()


def write(model: Any, tokenizer: Any) -> list[str]:
    """The likeliest text about each thing."""
    model.eval()
    asked = torch.tensor([tokenizer.encode(f"{thing} {START}") for thing in THINGS])
    written = model.generate(asked, do_sample=False, num_beams=1, max_length=None, max_new_tokens=16)
    if not model.config.is_encoder_decoder:
        written = written[:, asked.shape[1] :]
    texts: list[str] = tokenizer.batch_decode(written, skip_special_tokens=True)
    return texts


def report(name: str, texts: list[str]) -> None:
    """How long texts are, and how many are about the thing that was asked for."""
    length = sum(len(text.split()) for text in texts) / len(texts)
    right = sum(thing in text.split() for thing, text in zip(THINGS, texts, strict=True))
    print(
        f"{name}: {length:.1f} words a text, {right} of {len(texts)} right, such as {texts[0]!r}", flush=True
    )


def compare(name: str, model: Any, tokenizer: Any, *, steps: int, further: int) -> None:
    """Train a model, and print how long its texts are then, after more of the same, and after SMILE."""
    draw = random.Random(0)
    asked = [draw.choice(THINGS) for _ in range(3000)]
    examples = [as_example(model, tokenizer, thing, describe(thing, draw)) for thing in asked]
    train(model, tokenizer, examples, steps=steps)
    report(f"{name}, maximum likelihood", write(model, tokenizer))
    other = copy.deepcopy(model)
    train(other, tokenizer, examples, steps=further)
    report(f"{name}, more of it", write(other, tokenizer))
    train(model, tokenizer, examples, steps=further, loss=smile_loss(model, mle_share=0.05))
    report(f"{name}, SMILE", write(model, tokenizer))


def main() -> None:
    """Both models, or the one that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["gpt2", "bart", "both"], default="both")
    parser.add_argument("--steps", type=int, default=300, help="of maximum likelihood, to begin with")
    parser.add_argument("--further", type=int, default=40, help="of SMILE, and of more maximum likelihood")
    wanted = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    for name, build in (("gpt2", build_gpt2), ("bart", build_bart)):
        if wanted.model in (name, "both"):
            compare(name, build(tokenizer), tokenizer, steps=wanted.steps, further=wanted.further)


if __name__ == "__main__":
    main()
