"""SMILE in transformers' own Trainer, for causal and encoder-decoder models."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from tellapart.errors import TellapartError
from tellapart.objectives import smile_loss
from tellapart.objectives.semipermeable import smile
from tellapart.objectives.tokens import mle
from tellapart.objectives.trainer_loss import find_ends

transformers: Any = import_module("transformers")  # many of its types fit none of its own values

SIZE, PAD, START, END = 12, 0, 1, 2
SIGNS = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD}


def causal() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=SIZE, n_positions=16, n_embd=8, n_layer=1, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, **SIGNS,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def encoder_decoder() -> Any:
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=SIZE, max_position_embeddings=16, d_model=8, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8,
        dropout=0.0, decoder_start_token_id=START, **SIGNS,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


@cache
def rows() -> torch.Tensor:
    """Three texts behind a prompt of two tokens, the last one short; the second was cut before its end."""
    return torch.tensor(
        [[3, START, 4, 5, 4, 6, END], [3, START, 7, 8, 9, 10, 11], [3, START, 4, END, PAD, PAD, PAD]]
    )


def labels_of(tokens: torch.Tensor) -> torch.Tensor:
    labels = tokens.masked_fill(tokens == PAD, -100)
    labels[:, :2] = -100
    return labels


@pytest.mark.parametrize("mle_share", [0.0, 0.25, 1.0])
def test_a_causal_model_is_shifted_as_its_own_loss_shifts(mle_share: float) -> None:
    model, tokens, labels = causal(), rows(), labels_of(rows())
    outputs = model(input_ids=tokens)
    found = smile_loss(model, mle_share=mle_share)(outputs, labels)
    wanted, mask = labels[:, 1:].clamp(min=0), labels[:, 1:] != -100
    losses = smile(outputs.logits[:, :-1], wanted, mask, ends=(END,))
    full = mle(outputs.logits[:, :-1], wanted, mask)
    expected = (mle_share * full + (1 - mle_share) * losses).sum() / mask.sum()
    torch.testing.assert_close(found, expected)
    if mle_share == 1:
        torch.testing.assert_close(found, model(input_ids=tokens, labels=labels).loss)


def test_an_encoder_decoder_model_is_not_shifted() -> None:
    model, labels = encoder_decoder(), labels_of(rows())[:, 2:].contiguous()
    given = model.prepare_decoder_input_ids_from_labels(labels)
    outputs = model(input_ids=rows()[:, :2], decoder_input_ids=given)
    own = model(input_ids=rows()[:, :2], labels=labels).loss
    torch.testing.assert_close(smile_loss(model, mle_share=1.0)(outputs, labels), own)
    mask = labels != -100
    losses = smile(outputs.logits, labels.clamp(min=0), mask, ends=(END,))
    torch.testing.assert_close(smile_loss(model)(outputs, labels), losses.sum() / mask.sum())
    assert smile_loss(model)(outputs, labels) < own
    torch.testing.assert_close(
        smile_loss(model)((outputs.logits,), labels), smile_loss(model)(outputs, labels)
    )


def test_no_gradient_leaves_the_text_and_the_end_competes_in_a_cut_one() -> None:
    model, labels = causal(), labels_of(rows())
    logits = model(input_ids=rows()).logits.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(smile_loss(model)({"logits": logits}, labels), logits)
    touched = [set(row.nonzero()[:, 1].tolist()) for row in gradient[:, 2:]]
    assert touched == [{4, 5, 6, END}, {7, 8, 9, 10, 11, END}, {4, END}]
    assert (gradient[:, 1] != 0).all(), "the first token of a text competes with all"
    assert (gradient[:, 0] == 0).all(), "a prompt has no labels"
    loss = smile_loss(model, first="none", ends=())({"logits": logits}, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert set(gradient[1].nonzero()[:, 1].tolist()) == {7, 8, 9, 10, 11}


def test_pictures_in_front_of_a_causal_models_text_have_no_labels() -> None:
    model, labels = causal(), labels_of(rows())
    logits = model(input_ids=rows()).logits
    longer = torch.cat([torch.randn(3, 4, SIZE), logits], 1)
    torch.testing.assert_close(
        smile_loss(model)({"logits": longer}, labels), smile_loss(model)({"logits": logits}, labels)
    )


def test_the_end_is_found_where_a_model_says_it() -> None:
    model = causal()
    assert find_ends(model) == (END,)
    model.generation_config.eos_token_id = [END, 5]
    assert find_ends(model) == (END, 5)
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    with pytest.raises(TellapartError, match="which token closes a text"):
        smile_loss(model)
    assert smile_loss(model, ends=(END,))(model(input_ids=rows()), labels_of(rows())) > 0


def test_what_cannot_be_is_refused_with_a_hint() -> None:
    model = encoder_decoder()
    with pytest.raises(TellapartError, match="mle_share is"):
        smile_loss(model, mle_share=1.5)
    with pytest.raises(TellapartError, match="first is 'shift'") as caught:
        smile_loss(model, first="shift")
    assert "first='none'" in caught.value.hint
    loss = smile_loss(model)
    with pytest.raises(TellapartError, match="a batch without labels"):
        loss({"logits": torch.zeros(1, 3, SIZE)}, None)
    with pytest.raises(TellapartError, match="expects 3 tokens, and the labels are 2") as caught:
        loss({"logits": torch.zeros(1, 3, SIZE)}, torch.zeros(1, 2, dtype=torch.long))
    assert "DataCollatorForSeq2Seq" in caught.value.hint


def trained(folder: Path, *, size: int, portions: int) -> dict[str, torch.Tensor]:
    """The weights of a causal model after two steps of the Trainer."""
    model = causal()
    examples = [
        {"input_ids": row.tolist(), "labels": label.tolist()}
        for row, label in zip(rows(), labels_of(rows()), strict=True)
    ]
    settings = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=2, per_device_train_batch_size=size,
        gradient_accumulation_steps=portions, learning_rate=0.05, optim="sgd", max_grad_norm=0.0,
        save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True,
        dataloader_pin_memory=False, seed=0,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, settings, train_dataset=examples, compute_loss_func=smile_loss(model, mle_share=0.1)
    )
    trainer.train()
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@pytest.mark.filterwarnings("ignore")  # what a foreign library warns of is its own affair
def test_the_trainer_learns_the_same_from_a_batch_and_from_its_portions(tmp_path: Path) -> None:
    whole = trained(tmp_path, size=3, portions=1)
    parts = trained(tmp_path, size=1, portions=3)
    start = dict(causal().named_parameters())
    assert max((whole[name] - start[name]).abs().max() for name in whole) > 1e-3
    for name, weight in whole.items():
        torch.testing.assert_close(parts[name], weight, rtol=1e-4, atol=1e-6, msg=name)
