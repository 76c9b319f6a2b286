"""`tellapart demo`: the default captioner on real photographs that come with other packages."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.caption import caption
from tellapart.errors import TellapartError

PHOTOGRAPHS = {
    "skimage": ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png"),
    "sklearn": ("china.jpg", "flower.jpg"),
}
FOLDERS = {"skimage": "data", "sklearn": "datasets/images"}


def demo(
    images: Annotated[
        list[Path] | None,
        typer.Argument(help="Pictures of one's own.", show_default="photographs of scikit-image and -learn"),
    ] = None,
    page: Annotated[Path, typer.Option(help="The web page to write.")] = Path("demo/index.html"),
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line (predictions JSONL).")] = False,
) -> None:
    """Caption a few real photographs and write a page with pictures and captions.

    Example: tellapart demo my_photos/
    """
    caption(images or [lay_out(page.parent / "photos")], page=page, json=json)


def lay_out(folder: Path) -> Path:
    """Copy the photographs into a folder of the user's, to look at and to caption again."""
    folder.mkdir(parents=True, exist_ok=True)
    for photograph in photographs():
        if not (folder / photograph.name).exists():
            shutil.copyfile(photograph, folder / photograph.name)
    return folder


def photographs() -> list[Path]:
    """Colour photographs inside the installed packages scikit-image and scikit-learn."""
    return [path for package, names in PHOTOGRAPHS.items() for path in _inside(package, names)]


def _inside(package: str, names: tuple[str, ...]) -> list[Path]:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise TellapartError(
            "the demo's photographs are not installed", hint="pip install 'tellapart[demo]', or name pictures"
        )
    folder = Path(found.submodule_search_locations[0], FOLDERS[package])
    return [folder / name for name in names]
