"""What a person sets so that a client finds the gateway: variables, files, commands, code. Pure.

A setup is made for a `Target`. Without a key in it the setup refers to the key by the variable
GATEWAY_KEY where the client can read that, and by a placeholder where only the key itself will do.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.records import Api

KEY_VARIABLE = "GATEWAY_KEY"
KEY_IN_SHELL = f"${KEY_VARIABLE}"
PLACEHOLDER = "YOUR-GATEWAY-KEY"

Form = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a client is to be pointed at.

    Attributes:
        root: the gateway's address without `/v1` and without a slash at its end.
        key: the key itself, or None where it must not be shown.
        context_window: tokens the model takes, where that is known.
    """

    root: str
    key: str | None
    model: str
    context_window: int | None = None

    def base_url(self, api: Api) -> str:
        """The base URL clients of `api` are given: Anthropic's SDKs add `/v1` themselves."""
        return self.root if api is Api.MESSAGES else f"{self.root}/v1"

    def key_or(self, reference: str) -> str:
        """The key, or how this client refers to it."""
        return reference if self.key is None else self.key


@dataclass(frozen=True, slots=True)
class UserFile:
    """What has to stand in one of the user's own files.

    Attributes:
        path: below the home directory.
        moved: a variable that names another folder, and the file's path below that.
        wins: names of files beside it that the client reads after it; the one there is counts.
        values: to be merged into the file; None removes, lists of mappings go by their `name`.
        defaults: set only where the file says nothing.
    """

    path: str
    form: Form
    values: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    moved: tuple[str, str] | None = None
    wins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything to set for one client; what is left out it does not need.

    Attributes:
        environment: variables of the shell that starts it; `$GATEWAY_KEY` as a value is that one.
        commands: to run once.
        program: the client's own command, as words, where that alone can store the settings.
        install: how to get that program.
        code: to paste, for clients that are written rather than configured.
        notes: sentences worth knowing.
        left: what remains to be done once the files are written.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    files: tuple[UserFile, ...] = ()
    commands: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    install: str = ""
    code: str = ""
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


ReadFile = Callable[[UserFile], str | None]
"""The text of a user's file as it is, or None where there is none."""

MakeSetup = Callable[[Target, ReadFile], Setup]


def in_shell(value: str) -> str:
    """A value as one word of a shell; the reference to the key stays one."""
    return f'"{value}"' if value == KEY_IN_SHELL else shlex.quote(value)
