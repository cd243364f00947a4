"""A reader's terminal: one shell for a page, in a folder and a home of its own.

Pages name the ports that everybody has. Here each becomes a free one, in what is typed and in the
files that come of it; what is shown is put back, so that a page is compared as it stands.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

PORTS = (8001, 8002, 8080, 8090)
READY = 60.0
FAILED = "--failed:"

_ADDRESS = re.compile(r"https?://[\w.]+:\d+")
_PORT = re.compile(rf"(?<![\d.])({'|'.join(map(str, PORTS))})(?!\d)")
_SERVER = re.compile(
    r"^(gateway (?:serve|sim(?! --fit)|console)\b[^\n#&>]*?) *(#.*)?$", re.MULTILINE
)
_WAITING = re.compile(r"> *(\S+)(?: 2>&1)? &$", re.MULTILINE)


class Shell:
    """Runs what a page says.

    Args:
        folder: where it begins, and its home.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = dict(zip(map(str, PORTS), _free(len(PORTS)), strict=True))
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._servers = 0
        self.run(f"trap 'echo {FAILED} $BASH_COMMAND' ERR")

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def write(self, name: str, text: str) -> None:
        """Make a file in the folder, or replace it."""
        (self.folder / name).write_text(self._mapped(text))

    def run(self, command: str) -> str:
        """What it shows. Servers that it starts are ready afterwards, and go on in the background.

        Raises:
            AssertionError: a part of it failed, or a server does not start.
        """
        command = _SERVER.sub(self._in_background, self._mapped(command).strip())
        shown = self._put_back("".join(self._answer(command)))
        assert FAILED not in shown, f"{command}\n{shown}"
        for log in _WAITING.findall(command):
            _wait(self.folder / log)
        for file in self.folder.glob("*.yaml"):
            self._map(file)
        return shown

    def _answer(self, command: str) -> Iterator[str]:
        """The lines of its output."""
        assert self._process.stdin is not None and self._process.stdout is not None
        mark = f"--{secrets.token_hex(8)}--"
        self._process.stdin.write(f"{{ {command}\n}} < /dev/null\necho\necho {mark}\n")
        self._process.stdin.flush()
        while not (line := self._process.stdout.readline()).startswith(mark):
            assert line, f"the shell ended at {command}"
            yield line

    def _in_background(self, server: re.Match[str]) -> str:
        self._servers += 1
        return f"{server[1]} > server-{self._servers}.log 2>&1 &"

    def _map(self, file: Path) -> None:
        before = file.read_text()
        after = self._mapped(before)
        if after != before:  # a file that is written anew is read anew
            file.write_text(after)

    def _mapped(self, text: str) -> str:
        return _PORT.sub(lambda found: self._ports[found[1]], text)

    def _put_back(self, text: str) -> str:
        for port, free in self._ports.items():
            text = text.replace(free, port)
        return text.replace(str(self.folder), "~")


def _wait(log: Path) -> None:
    """Until a server has said where it listens."""
    deadline = time.monotonic() + READY
    while not _ADDRESS.search(log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, f"{log.name}: {log.read_text()}"
        time.sleep(0.1)


def _free(number: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)
        ]
        return [str(one.getsockname()[1]) for one in sockets]


def _environment(home: Path) -> dict[str, str]:
    """That of a new user; the project's environment is the active one."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": programs, "LANG": "C.UTF-8", "USER": "ada"}
