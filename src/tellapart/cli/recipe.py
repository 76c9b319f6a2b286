"""`tellapart recipe`: make, show and describe recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps as json_text
from pathlib import Path
from typing import Annotated, Any

import typer

from tellapart.cli.console import say, tell
from tellapart.errors import TellapartError
from tellapart.recipe import EncoderRecipe, Recipe, RetrieverRecipe, find_recipe, load_experiment, schema
from tellapart.storage import write_text

app = typer.Typer(help="Make, show and describe recipes.", no_args_is_help=True, add_completion=False)

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command()
def new(
    source: Annotated[str, typer.Argument(help="The built-in recipe to start from.", show_default=False)],
    target: Annotated[
        Path | None, typer.Argument(help="The file to write.", show_default="NAME.toml")
    ] = None,
    json: Json = False,
) -> None:
    """Copy a built-in recipe, with its comments, to a file of one's own.

    Example: tellapart recipe new mrnn-shapes mine.toml
    """
    file = find_recipe(source)
    path = target or Path(file.name)
    if path.exists():
        raise TellapartError(f"{path}: this file exists already", hint="name another file")
    write_text(path, file.read_text(encoding="utf-8"))
    say({"recipe": str(path)}) if json else tell(f"wrote {path}; try: tellapart train {path}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A recipe file or built-in name.", show_default=False)],
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value: section.key=value.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Check a recipe and print it with every default filled in.

    Example: tellapart recipe show mrnn-shapes --set training.epochs=3
    """
    recipe = load_experiment(name, changes=changes or ())
    say(recipe.model_dump()) if json else tell(recipe.to_toml().rstrip())


@app.command(name="schema")
def show_schema(
    retriever: Annotated[bool, typer.Option("--retriever", help="Of a retriever's recipe.")] = False,
    encoder: Annotated[bool, typer.Option("--encoder", help="Of a recipe that tunes an encoder.")] = False,
    json: Json = False,
) -> None:
    """Print every key of a recipe with its type, default and meaning.

    Example: tellapart recipe schema --json
    """
    whole = schema(EncoderRecipe if encoder else RetrieverRecipe if retriever else Recipe)
    if json:
        say(whole)
        return
    for line in _lines(whole):
        tell(line)


def _lines(whole: Mapping[str, Any]) -> Iterator[str]:
    for section, content in whole["properties"].items():
        if "oneOf" in content:
            for option in content["oneOf"]:
                yield f"\n[{section}]  # name = {json_text(option['properties']['name']['const'])}"
                yield from _keys(option)
        elif section == "stages":
            for option in content["additionalProperties"]["oneOf"]:
                yield f"\n[stages.NAME]  # kind = {json_text(option['properties']['kind']['const'])}"
                yield from _keys(option)
        elif "$ref" in content:
            yield f"\n[{section}]"
            yield from _keys(whole["$defs"][content["$ref"].rpartition("/")[2]])
        else:
            yield f"{section} = {json_text(content.get('default'))}"


def _keys(section: Mapping[str, Any]) -> Iterator[str]:
    for key, content in section["properties"].items():
        if "const" in content:
            continue
        choices = " | ".join(map(str, content.get("enum", ()))) or content.get("type", "")
        default, meaning = json_text(content.get("default")), content.get("description", "")
        yield f"{key} = {default}  # {choices}  {meaning}".rstrip()
