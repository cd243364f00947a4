"""Files that a configuration is in, or refers to: read whole, if they are files and not endless."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path as FilePath

LARGEST = 4 * 2**20
"""Bytes of a configuration: one with ten thousand keys has a quarter of it."""


def read_file(path: FilePath, largest: int = LARGEST) -> bytes:
    """The content of a regular file.

    A pipe would be waited for, and some devices never end.

    Raises:
        OSError: it cannot be read, is something else, or has more than `largest` bytes; its
            `strerror` says which.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", str(path))
            content = file.read(largest + 1)
    except ValueError:  # a name that no file can have
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path)) from None
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", str(path))
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
