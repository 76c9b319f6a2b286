"""Captions as the one-line texts that METEOR takes.

Its jar reads a candidate and its references from one line, parted by `|||`. That sign is taken out of every
text, as pycocoevalcap takes it out of candidates, and line ends become blanks: no text can break the line.
"""

from __future__ import annotations


def candidate_line(text: str) -> str:
    """A candidate as pycocoevalcap hands it over."""
    return reference_line(text).replace("  ", " ")


def reference_line(text: str) -> str:
    """A reference: what would be taken for a sign of the protocol is gone, all else is left alone."""
    if "|||" in text or "\n" in text or "\r" in text:
        text = text.replace("|||", "").replace("\n", " ").replace("\r", " ")
    # Half of a surrogate pair cannot be written as UTF-8.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
