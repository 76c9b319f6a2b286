"""`tellapart` and `python -m tellapart`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The command line; where it is known already what will take longest, that begins first."""
    try:
        if sys.argv[1:2] == ["search"]:
            from tellapart.retrievers.store.look import begin_to_look

            begin_to_look(sys.argv[2:])
        # Pydantic would read about every package that is installed, looking for plugins; we have none.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from tellapart.cli import main as command_line

        command_line()
    except KeyboardInterrupt:  # before the command line was there to say so
        os._exit(130)


if __name__ == "__main__":
    main()
