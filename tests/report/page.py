"""A page as a browser would make it out."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def pictures(self) -> list[Mapping[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == "img"]

    @property
    def sources(self) -> list[str]:
        return [str(attributes["src"]) for attributes in self.pictures]
