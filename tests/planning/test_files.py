"""Files that turn out to be something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.planning.files import content


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert content(tmp_path / "a", most=5) == b"12345"


def test_what_never_ends_is_left() -> None:
    with pytest.raises(GatewayError, match=r"zero is too large to be read: more than 1000 bytes"):
        content(Path("/dev/zero"), most=1000)
