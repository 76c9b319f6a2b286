"""Arrays by name in one file that is either whole or refused.

A line says the format and its number; the SHA-256 of all the rest follows, then a line of JSON with names,
types and shapes, then the arrays' bytes. Nothing is made of a file whose sum is wrong.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tellapart.storage import new_file

FORMAT = 2  # another number for every change of what is written, here or by those who use it
_KIND = b"tellapart table "
_SUM = hashlib.sha256().digest_size


class Unusable(Exception):  # noqa: N818 - reads as a sentence where it is raised
    """A table that is damaged or of another format; the message says which."""


def write_table(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a table, or leave what was there."""
    contents = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    pieces = [json.dumps(contents).encode("ascii") + b"\n", *(array.tobytes() for array in arrays.values())]
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    with new_file(path) as temporary, temporary.open("wb") as file:
        file.write(_KIND + b"%d\n" % FORMAT + total.digest())
        file.writelines(pieces)


def read_table(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a table, which may not be written to."""
    data = path.read_bytes()
    first, _, rest = data.partition(b"\n")
    if not first.startswith(_KIND):
        raise Unusable("is damaged")
    if first != _KIND + b"%d" % FORMAT:
        raise Unusable("was written by another version of tellapart")
    body = memoryview(rest)[_SUM:]
    if rest[:_SUM] != hashlib.sha256(body).digest():
        raise Unusable("is damaged")
    end = rest.index(b"\n", _SUM) + 1
    arrays = {}
    for name, kind, shape in json.loads(rest[_SUM:end]):
        arrays[name] = np.frombuffer(rest, kind, math.prod(shape), end).reshape(shape)
        end += arrays[name].nbytes
    return arrays
