"""Prompts and special ids of a checkpoint, as its own files give them: never numbers written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tellapart.captioners.tokenizer_text import Signs
from tellapart.errors import TellapartError
from tellapart.vision.checkpoints import Checkpoint, reading

Ids = int | list[int] | None


VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
"""Files of which a tokenizer has one."""


def read_tokenizer(checkpoint: Checkpoint) -> Any:
    """The checkpoint's own tokenizer."""
    folder = Path(checkpoint.source.model)
    if checkpoint.source.local_files_only and not any((folder / name).is_file() for name in VOCABULARIES):
        # The library would make an empty one up.
        raise TellapartError(
            f"the folder {folder} has no {VOCABULARIES[0]}",
            hint="copy it from where the checkpoint came from, or save its tokenizer there",
        )
    with reading(checkpoint.library, checkpoint.name):
        return checkpoint.library.AutoTokenizer.from_pretrained(
            checkpoint.source.model,
            local_files_only=checkpoint.source.local_files_only,
            trust_remote_code=False,
        )


def words_of(tokenizer: Any, prompt: str) -> list[int]:
    """The pieces of a prompt, without special signs: the name of one is text like any other."""
    found: list[int] = tokenizer.encode(prompt.strip(), add_special_tokens=False, split_special_tokens=True)
    if tokenizer.unk_token_id in found:
        raise TellapartError(
            f"captioner.prompt: the checkpoint's tokenizer cannot read {prompt.strip()!r}",
            hint="write it in other words",
        )
    return found


def choose_signs(checkpoint: Checkpoint, tokenizer: Any, *, start: Ids, end: Ids, pad: Ids) -> Signs:
    """The ids around a caption, from what the checkpoint's files say of each.

    Of several ends the tokenizer's own counts, if it is among them. One without padding is padded by its end,
    as GPT-2 is.
    """
    closing = end if isinstance(end, list) else [end]
    own = tokenizer.eos_token_id
    chosen = own if own in closing else next(iter(closing), None)
    if chosen is None:
        raise TellapartError(
            f"the files of the checkpoint {checkpoint.name} name no sign for the end of a caption",
            hint="write eos_token_id in its generation_config.json (BLIP: sep_token_id in its text_config)",
        )
    filling = pad[0] if isinstance(pad, list) else pad
    return Signs(expect_start(checkpoint, start), chosen, chosen if filling is None else filling)


def expect_start(checkpoint: Checkpoint, start: Ids) -> int:
    """The sign that a caption starts with, or an error that says where to write it."""
    if isinstance(start, list):
        start = next(iter(start), None)
    if start is None:
        raise TellapartError(
            f"the files of the checkpoint {checkpoint.name} name no sign for the start of a caption",
            hint="write bos_token_id (decoder_start_token_id where it has an encoder) in its config.json",
        )
    return start


def own_id(name: str, *configs: Any) -> Ids:
    """An id from the first of these settings that has one."""
    for config in configs:
        if (found := getattr(config, name, None)) is not None:
            ids: Ids = found
            return ids
    return None


def chat_prompt(checkpoint: Checkpoint, prompt: str, picture: Any, places: int) -> tuple[list[int], str]:
    """Tokens and text of a question about a picture, in the checkpoint's own chat template if it has one."""
    library, source = checkpoint.library, checkpoint.source
    with reading(library, checkpoint.name):
        processor = library.AutoProcessor.from_pretrained(
            source.model, local_files_only=source.local_files_only, trust_remote_code=False
        )
        text = _question(processor, prompt)
        # Tiles of a large picture would be tokens of their own: the whole picture alone is shown.
        whole = (
            {"do_image_splitting": False} if hasattr(processor.image_processor, "do_image_splitting") else {}
        )
        begun = bool(processor.tokenizer.bos_token) and text.startswith(processor.tokenizer.bos_token)
        encoded = processor(text=[text], images=[picture], add_special_tokens=not begun, **whole)
    if "token_type_ids" in encoded:
        raise TellapartError(
            f"the checkpoint {checkpoint.name} reads its prompt both ways, which this captioner cannot",
            hint="take a model such as LLaVA or SmolVLM",
        )
    tokens: list[int] = encoded["input_ids"][0]
    held = tokens.count(image_token(checkpoint))
    if held != places:
        raise TellapartError(
            f"the checkpoint {checkpoint.name} keeps {held} places for a picture, its tower fills {places}",
            hint="its processor and its weights do not belong together: copy the whole folder again",
        )
    return tokens, text


def image_token(checkpoint: Checkpoint) -> int:
    """The id that holds the places of a picture."""
    found = own_id("image_token_id", checkpoint.config)
    found = own_id("image_token_index", checkpoint.config) if found is None else found
    if not isinstance(found, int):
        raise TellapartError(
            f"the config.json of the checkpoint {checkpoint.name} names no image token",
            hint="take a model whose pictures are tokens of its prompt, such as LLaVA or SmolVLM",
        )
    return found


def _question(processor: Any, prompt: str) -> str:
    if not processor.chat_template:
        return f"{processor.image_token} {prompt}".strip()
    content = [{"type": "image"}, *([{"type": "text", "text": prompt}] if prompt else [])]
    text: str = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True
    )
    return text
