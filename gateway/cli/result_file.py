"""The file a command writes its result to."""

from __future__ import annotations

from pathlib import Path


def check_writable(path: Path | None) -> None:
    """Find out before the work is done; a file that was not there is not left behind.

    Raises:
        OSError: it cannot be written.
    """
    if path is not None:
        there = path.exists()
        path.open("a").close()
        if not there:
            path.unlink()
