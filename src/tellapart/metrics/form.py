"""Two faults that decoders make and people hardly ever do, told from the words alone.

**Repetition**, the share of captions that repeat themselves. One does where

- one to four words in a row stand next to themselves: "a dog dog", "ray ban ray ban", "and a hat and a hat".
  Words that English doubles for emphasis may stand twice ("a very very long train"), not three times;
- or five words in a row occur twice anywhere: "hat on top of a hat on top of a hat".

So "a dog and a dog" is no repetition, nor is "a man in a red hat and a man in a blue hat"; a third dog is.

**Broken-ending**, the share of captions whose last word cannot end a caption: an article or possessive, a
conjunction, a preposition that needs what comes after it, a form of "to be" or "to have", "very". Words that
end good captions now and then are not on the list, though many broken ones end in them too ("on", "by",
"her", "up"): the rate is a lower bound.

Both look at the caption as the PTB tokenizer gives it, in lower case and without punctuation. A caption
without words has neither fault, and a note counts them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tellapart.data.small_words import UNFINISHED
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import FormConfig
from tellapart.metrics.score import Score, content_name, mean_score, signed

ADJACENT = 4
"""The longest run of words that is compared with the one after it; longer ones are echoes anyhow."""

ECHO = 5
"""Of so many words in a row, people hardly ever write the same twice in one caption."""

EMPHATIC = frozenset({"far", "long", "many", "much", "really", "so", "very"})


def build_form(config: FormConfig) -> Metric:
    """The measure as it is registered."""
    return form


def form(material: Material) -> list[Score]:
    """The shares of captions that repeat themselves and of captions that end in the middle."""
    captions = material.caption_tokens
    notes = _empty_note(sum(not words for words in captions))
    repetition = signed(
        {
            "tokenizer": "ptb",
            "adjacent": f"1-{ADJACENT}",
            "echo": ECHO,
            "emphatic": content_name(*sorted(EMPHATIC)),
        }
    )
    ending = signed({"tokenizer": "ptb", "endings": content_name(*sorted(UNFINISHED))})
    return [
        mean_score("Repetition", [float(repeats(words)) for words in captions], repetition, notes=notes),
        mean_score("Broken-ending", [float(ends_badly(words)) for words in captions], ending, notes=notes),
    ]


def repeats(words: Sequence[str]) -> bool:
    """Whether a caption repeats itself."""
    return _stutters(words) or _echoes(words)


def ends_badly(words: Sequence[str]) -> bool:
    """Whether a caption breaks off."""
    return bool(words) and words[-1] in UNFINISHED


def _stutters(words: Sequence[str]) -> bool:
    """Whether a few words in a row stand next to themselves."""
    for length in range(1, ADJACENT + 1):
        same = 0  # words in a row that equal the one `length` places later
        for word, later in zip(words, words[length:], strict=False):
            same = same + 1 if word == later else 0
            if same == length + (length == 1 and word in EMPHATIC):
                return True
    return False


def _echoes(words: Sequence[str]) -> bool:
    """Whether some words in a row occur a second time, however far away; they may overlap."""
    runs = [tuple(words[place : place + ECHO]) for place in range(len(words) - ECHO + 1)]
    return len(set(runs)) < len(runs)


def _empty_note(empty: int) -> tuple[str, ...]:
    if not empty:
        return ()
    spoken = "1 caption has" if empty == 1 else f"{empty} captions have"
    return (f"{spoken} no words: counted as neither repeating nor ending in the middle",)
