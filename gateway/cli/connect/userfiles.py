"""The user's own files: shown before they are changed, kept beside the change, replaced whole."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import mkstemp

from gateway.cli.connect.edit import Unreadable, edited
from gateway.cli.masking import hide_setting
from gateway.clients.setup import UserFile
from gateway.errors import GatewayError

OWNER_ONLY = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Change:
    """One file and what becomes of it.

    Attributes:
        before: its text as it was read, None where there was no file.
    """

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.before != self.after

    def shown(self, *, show_secrets: bool) -> str:
        """The change as a unified diff."""
        old, new = (self.before or "").splitlines(), self.after.splitlines()
        lines = list(
            difflib.unified_diff(old, new, str(self.path), f"{self.path} (new)", n=2, lineterm="")
        )
        if not show_secrets:
            lines = [*lines[:2], *map(hide_setting, lines[2:])]
        return "\n".join(lines)


class Home:
    """Where clients keep their settings.

    Args:
        folder: the home directory.
        env: may name other folders.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = env

    def path(self, file: UserFile) -> Path:
        usual = self._usual(file)
        others = (usual.with_name(name) for name in file.wins)
        return next((other for other in others if other.exists()), usual)

    def _usual(self, file: UserFile) -> Path:
        if file.moved is not None and self._env.get(file.moved[0]):
            variable, rest = file.moved
            return Path(self._env[variable]).expanduser() / rest
        return self._folder / file.path

    def shown(self, file: UserFile) -> str:
        """The path as people write it."""
        path = self.path(file)
        if path.is_relative_to(self._folder):
            return f"~/{path.relative_to(self._folder)}"
        return str(path)

    def read(self, file: UserFile) -> str | None:
        """Raises:
        GatewayError: there is something that cannot be read as text.
        """
        return _text(self.path(file))

    def change(self, file: UserFile) -> Change:
        """Raises:
        GatewayError: the file is there, but not what its name says.
        """
        path, before = self.path(file), self.read(file)
        try:
            return Change(path, before, edited(file, before))
        except Unreadable as error:
            raise GatewayError(
                f"{path} is no {file.form.upper()} that can be edited safely ({error}). Mend it, "
                "or put the settings in by hand: the same command without --write prints them."
            ) from None


def apply(change: Change, now: datetime) -> Path | None:
    """Make a change; the file is replaced at once or not at all. Returns where the old one is kept.

    A new file is its owner's only, another keeps its mode; a link stays a link.

    Raises:
        GatewayError: the file is no longer what it was when the change was shown.
        OSError: the folder cannot be written.
    """
    path = Path(os.path.realpath(change.path))
    if _text(path) != change.before:
        raise GatewayError(f"{path} was changed by another program meanwhile; run this again.")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if change.before is None:
        _replace(path, change.after, OWNER_ONLY)
        return None
    mode = stat.S_IMODE(path.stat().st_mode)
    backup = _backup_path(path, now)
    _replace(backup, change.before, mode)
    _replace(path, change.after, mode)
    return backup


def readable_by_others(path: Path) -> bool:
    """Whether a file that now holds a key is open to more than its owner."""
    return bool(path.stat().st_mode & OTHERS)


def _replace(path: Path, text: str, mode: int) -> None:
    descriptor, temporary = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        # Also on Ctrl-C: the user's folder keeps no half of a file, which may hold a key.
        os.unlink(temporary)
        raise


def _backup_path(path: Path, now: datetime) -> Path:
    stem = f"{path.name}.bak-{now:%Y%m%d-%H%M%S}"
    backup, number = path.with_name(stem), 2
    while backup.exists():
        backup, number = path.with_name(f"{stem}-{number}"), number + 1
    return backup


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise GatewayError(f"{path} is not UTF-8 text; it is left alone.") from None
