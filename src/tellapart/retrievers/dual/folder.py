"""A dual encoder on disk, in the files that `model_folder` names. Reading one needs no torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tellapart.data.text import TextRules
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.model_folder import CONFIG, WEIGHTS, WORDS, not_settings, read_model_settings, read_weights
from tellapart.registry import Config
from tellapart.retrievers.settings import RETRIEVERS, DualConfig
from tellapart.vision.traits import EncoderTraits

WHAT = "retriever"
FORMAT = 1  # raised when a folder written now could no longer be read by older code


class RetrieverSettings(Config):
    """All that it takes to use a retriever, apart from weights and words."""

    format: int = FORMAT
    retriever: dict[str, Any]  # name and settings of the registered part
    encoder: EncoderTraits
    text: TextRules | None  # None: MiniLM reads the sentences
    fingerprint: str  # of its words, or MiniLM's identity
    trained_on: str  # in words, for reports

    def config(self, path: Path) -> DualConfig:
        """Its own settings, checked; `path` is where messages say that they stand."""
        part = dict(self.retriever)
        try:
            config = RETRIEVERS.get(str(part.pop("name"))).config.model_validate(part)
        except (KeyError, ValueError, TellapartError) as error:
            raise not_settings(path, WHAT) from error
        if not isinstance(config, DualConfig):
            raise not_settings(path, WHAT)
        return config


@dataclass(frozen=True, slots=True)
class SavedDual:
    """What is in the folder of a dual encoder."""

    settings: RetrieverSettings
    config: DualConfig
    text: WordText | None
    weights: dict[str, NDArray[Any]]
    digest: str  # of all that stands in the folder and gives vectors their meaning


def read_dual(folder: Path) -> SavedDual:
    """Read all of it; what does not belong together is refused."""
    settings = read_model_settings(folder, RetrieverSettings, version=FORMAT, what=WHAT)
    text = None
    if settings.text:
        text = WordText(Vocabulary.read(folder / WORDS), settings.text)
        if text.fingerprint != settings.fingerprint:
            raise TellapartError(
                f"{folder / WORDS}: not the vocabulary that this retriever was trained with",
                hint="copy the whole folder again; its files belong together",
            )
    config, weights = settings.config(folder / CONFIG), read_weights(folder)
    return SavedDual(settings, config, text, weights, _digest(folder, has_words=text is not None))


def _digest(folder: Path, *, has_words: bool) -> str:
    content = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, WORDS) if has_words else (CONFIG, WEIGHTS):
        content.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return content.hexdigest()[:16]
