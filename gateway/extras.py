"""The optional parts of the project, and how a message says to get one."""

from __future__ import annotations

from typing import Literal, get_args

Extra = Literal["bench", "console", "otel"]
EXTRAS: tuple[Extra, ...] = get_args(Extra)
"""Those of `[project.optional-dependencies]` in pyproject.toml."""


def install(extra: Extra) -> str:
    """The command that installs what an extra needs, as part of a sentence.

    It is run in a checkout, from which the project is installed: no package index has it.
    """
    return f"pip install '.[{extra}]' in the checkout"
