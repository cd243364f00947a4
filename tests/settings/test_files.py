"""A configuration is a file: not a pipe to wait for, and not a device without an end."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.settings import load
from gateway.settings.files import LARGEST, read_file
from gateway.settings.substitute import LARGEST_VALUE
from tests.settings.samples import changed, faults

NOT_REGULAR = "it is no regular file"


def huge(path: Path) -> Path:
    """A file of 1 GB that takes no room."""
    path.touch()
    os.truncate(path, 10**9)
    return path


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def refused(path: Path) -> tuple[int | None, str | None]:
    with pytest.raises(OSError) as caught:
        read_file(path)
    return caught.value.errno, caught.value.strerror


def test_what_is_no_file(tmp_path: Path) -> None:
    assert refused(Path("/dev/zero")) == (errno.EINVAL, NOT_REGULAR)
    assert refused(fifo(tmp_path / "pipe")) == (errno.EINVAL, NOT_REGULAR)
    assert refused(tmp_path) == (errno.EISDIR, "Is a directory")
    assert refused(tmp_path / "none") == (errno.ENOENT, "No such file or directory")
    assert refused(tmp_path / "a\0b") == (errno.EINVAL, "Invalid argument")


def test_a_file_as_large_as_may_be_and_a_larger_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 10)
    assert read_file(path, largest=10) == b"x" * 10
    with pytest.raises(OSError, match="it has more than 9 bytes"):
        read_file(path, largest=9)
    assert refused(huge(tmp_path / "huge")) == (errno.EFBIG, f"it has more than {LARGEST} bytes")


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    """Kubernetes mounts ConfigMaps and Secrets so."""
    (tmp_path / "data").write_bytes(b"x")
    (tmp_path / "link").symlink_to("data")
    assert read_file(tmp_path / "link") == b"x"


def test_a_configuration_that_is_no_file(tmp_path: Path) -> None:
    for path, why in (
        (Path("/dev/zero"), NOT_REGULAR),
        (fifo(tmp_path / "pipe"), NOT_REGULAR),
        (tmp_path, "Is a directory"),
        (huge(tmp_path / "huge"), f"it has more than {LARGEST} bytes"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(path, {})
        assert caught.value.faults == [f"{path}: cannot be read: {why}"]


def test_a_reference_to_what_is_no_file(tmp_path: Path) -> None:
    for path, why in (
        (Path("/dev/zero"), NOT_REGULAR),
        (fifo(tmp_path / "pipe"), NOT_REGULAR),
        (huge(tmp_path / "huge"), f"it has more than {LARGEST_VALUE} bytes"),
    ):
        found = faults(tmp_path, changed(("backends/vllm-a/api_key", f"${{file:{path}}}")))
        assert found == [f"backends.vllm-a.api_key: cannot read the file {path}: {why}"]
