"""What the measures that need no other program say of captions that people wrote, and of spoilt ones.

    TELLAPART_DATA=DATA python -m benchmarks.human

Prints, on COCO val2017: unsupported detail of caption #0 against the other four of its own image, and against
those of another image; repetitions and broken endings; and perplexity by SmolLM2 of 100 captions as written
and with their words shuffled.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

from tellapart import score
from tellapart.data.caption_file import read_captions


def main() -> None:
    """All parts in order."""
    file = Path(os.environ["TELLAPART_DATA"]) / "text" / "coco_captions_val2017.json.gz"
    groups = [entry.captions[:5] for entry in read_captions(file).entries]
    captions = [group[0] for group in groups]
    references = [group[1:] for group in groups]
    chance = random.Random(0)
    others = chance.sample(references, len(references))
    for whose, texts in (("its own image", references), ("an image at random", others)):
        print(f"unsupported detail against {whose}: {share(captions, texts):.1%}")
    form = score([text for group in groups for text in group], metrics=["form"])
    print(f"repetition {form['Repetition'].corpus:.2%}, broken ending {form['Broken-ending'].corpus:.2%}")
    some = captions[:100]
    for how, said in (("as written", some), ("shuffled", [shuffled(text, chance) for text in some])):
        fluency = score(said, metrics=["fluency"]).scores
        print(
            f"perplexity {how}: {fluency['Perplexity']:.1f}, over tokens {fluency['Perplexity-corpus']:.1f}"
        )


def share(captions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Unsupported detail of the whole."""
    return score(captions, references, metrics=["detail"])["Unsupported-detail"].corpus


def shuffled(text: str, chance: random.Random) -> str:
    """The same words in any order."""
    words = text.split()
    chance.shuffle(words)
    return " ".join(words)


if __name__ == "__main__":
    main()
