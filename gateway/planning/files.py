"""Files that hold results and calibrations, which may turn out to be something else."""

from __future__ import annotations

from pathlib import Path

from gateway.errors import GatewayError

MOST_BYTES = 2**30


def content(path: Path, most: int = MOST_BYTES) -> bytes:
    """A file's bytes.

    Args:
        most: so many; a device that never ends is found out by it.

    Raises:
        GatewayError: it has more.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise GatewayError(f"{path.name} is too large to be read: more than {most} bytes.")
    return found
