"""What cannot be described in a picture's own file."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - reads as a sentence where it is raised
    """Metadata that cannot be changed without a risk; the message says why."""
