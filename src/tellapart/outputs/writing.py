"""What all outputs share: files that are replaced in one step, and what is said where that cannot be."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tellapart.data.picture_files import one_line
from tellapart.errors import TellapartError
from tellapart.storage import new_file

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def replacement(path: Path, *, lasting: bool = True) -> Iterator[Path]:
    """A temporary file that takes the place of `path`, in one step, when the block ends without an error.

    A file that is there passes its permissions on; behind a link, the file it leads to is replaced. Whatever
    goes wrong, what was there stays and no temporary file is left.

    Args:
        path: the file to be written; folders on the way are made.
        lasting: whether it has to outlive a loss of power, and not only the end of the process.
    """
    target, status = replaceable(path)
    try:
        with new_file(target, lasting=lasting) as temporary:
            if status is not None:
                temporary.chmod(stat.S_IMODE(status.st_mode))
            yield temporary
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def replaceable(path: Path) -> tuple[Path, os.stat_result | None]:
    """Where a path leads and what is there, if anything; an error where it may not be replaced."""
    try:
        target = path.resolve() if path.is_symlink() else path
        status = target.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise TellapartError(
                f"{path} is a link to a file that does not exist",
                hint="restore what it points to, or remove the link",
            ) from None
        return path, None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that lead in a circle
        raise unwritable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise TellapartError(f"{path} is not a file, and stays as it is", hint="rename it, or name another")
    if not status.st_mode & _WRITABLE:
        # Replacing asks only for the folder's permission, and would go over the owner's head.
        raise TellapartError(f"{path} is write-protected, and stays as it is", hint="change its permissions")
    return target, status


def unwritable(path: Path, error: Exception) -> TellapartError:
    """What to tell where a file cannot be written."""
    number = error.errno if isinstance(error, OSError) else None
    reason = (error.strerror if isinstance(error, OSError) else None) or one_line(error)
    problem = f"{path} cannot be written: {reason}"
    if number in _FULL:
        return TellapartError(
            problem, hint="free some disk space and run it again: what is written already stays as it is"
        )
    if number in _FORBIDDEN:
        return TellapartError(problem, hint="change the permissions of its folder, or name another place")
    return TellapartError(problem, hint="check the path and the disk")


def in_one_line(text: str, where: Path) -> str:
    """A caption without line breaks, which would make two of it; an error where it is not text."""
    line = " ".join(text.split())
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TellapartError(
            f"the caption of {where} holds half a character (a lone surrogate)", hint="caption it anew"
        ) from error
    return line
