"""The command line: thin verbs. Results go to stdout, progress and complaints to stderr.

Exit codes: 0 all went well, 1 something the user can mend, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings

import typer

from tellapart.cli import (
    caption,
    compare,
    correlate,
    data,
    demo,
    ensemble,
    entropy,
    evaluate,
    listing,
    recipe,
    retrieve,
    score,
    search,
    self_retrieve,
    train,
)
from tellapart.cli.console import complain
from tellapart.errors import TellapartError

app = typer.Typer(
    name="tellapart",
    help="Image captions that tell images apart.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="caption")(caption.caption)
app.command(name="demo")(demo.demo)
app.command(name="train")(train.train)
app.command(name="evaluate")(evaluate.evaluate)
app.command(name="ensemble")(ensemble.ensemble)
app.command(name="score")(score.score)
app.command(name="compare")(compare.compare)
app.command(name="correlate")(correlate.correlate)
app.command(name="retrieve")(retrieve.retrieve)
app.command(name="search")(search.search)
app.command(name="self-retrieve")(self_retrieve.self_retrieve)
app.command(name="entropy")(entropy.entropy)
app.command(name="list")(listing.list_parts)
app.add_typer(data.app, name="data")
app.add_typer(recipe.app, name="recipe")


def main() -> None:
    """Run the command line; what the user can mend is said in a line, with a hint and no traceback."""
    # Pillow remarks on every odd field of a file; whether the picture can be read is said by us.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        app()
    except TellapartError as error:
        complain(error)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing left to say, and nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        complain(TellapartError(str(error), hint="check the disk's space and the permissions of that path"))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
