"""The command line: thin verbs. Results go to stdout, progress and complaints to stderr.

Exit codes: 0 all went well, 1 something the user can mend, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

import typer

from tellapart.cli.console import complain
from tellapart.cli.verbs import Verbs
from tellapart.errors import TellapartError

app = typer.Typer(
    cls=Verbs,
    name="tellapart",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def tellapart() -> None:
    """Image captions that tell images apart."""


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
        with suppress(OSError):  # the reader of our output may have gone as well
            sys.stdout.flush()  # no half line shall stand in a file
        os._exit(130)  # at the regular end Python waits for threads, of which one may be stuck
