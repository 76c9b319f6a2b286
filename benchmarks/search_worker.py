"""One search, part by part: prints the seconds of the processor that each took, as JSON.

Here the parts come one after another; in a search a second process looks at the folder while one starts.

python -m benchmarks.search_worker QUERY FOLDER RETRIEVER
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


class Clock:
    """Seconds since the last time it was asked."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {"start of Python": time.process_time()}
        self.last = time.process_time()

    def note(self, part: str) -> None:
        """All since the last note belongs to this part."""
        now = time.process_time()
        self.parts[part] = now - self.last
        self.last = now


def main() -> None:
    """The way of a sentence through a warm store."""
    clock = Clock()
    import tellapart.cli  # noqa: F401 - its cost is what is measured

    clock.note("import of the command line")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as the command line does
    import pydantic.types  # noqa: F401 - arguments and settings need it

    clock.note("import of Pydantic")
    import numpy  # noqa: ICN001, F401

    clock.note("import of NumPy")
    from tellapart.retrievers.index import nearest
    from tellapart.retrievers.store.listing import list_pictures
    from tellapart.retrievers.store.pictures import gather_pictures
    from tellapart.searching import named_retriever

    clock.note("import of the search")
    query, folder, name = sys.argv[1:]
    listing = list_pictures(Path(folder))
    clock.note("names, sizes, times (beside it)")
    retriever = named_retriever(name)
    clock.note("loading the retriever")
    vector = retriever.embed_texts([query])
    clock.note("placing the sentence")
    pictures = gather_pictures(Path(folder), retriever, look=lambda: listing)
    clock.note("reading and checking the store")
    nearest(vector, pictures.pool, 10)
    clock.note("finding the nearest")
    print(json.dumps(clock.parts))


if __name__ == "__main__":
    main()
