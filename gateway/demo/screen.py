"""What the demo shows."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.demo.plan import MODEL, Plan
from gateway.demo.tally import Tally

NO_VERDICT = "Verdict: none yet. The gateway gives none until it weighs evidence."


class Screen(Console):
    """A console whose reader may leave, as `| head` does: an error like any other.

    Rich ends the process there, which within a task takes the event loop down with a traceback.
    """

    def on_broken_pipe(self) -> None:
        """Raises:
        BrokenPipeError: always; nothing is written after it.
        """
        with contextlib.suppress(SystemExit):
            super().on_broken_pipe()
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def introduce(plan: Plan, url: str, web_url: str | None) -> str:
    """What clients and other shells need, in lines to copy: whoever prints them leaves them whole.

    Args:
        web_url: where the web console listens, if it runs.
    """
    lines = [
        f"Base URL  {url}/v1",
        "          (Anthropic's clients add the /v1 themselves)",
        f"Key       {plan.key}",
        f"Model     {MODEL}",
    ]
    if web_url:
        lines.append(f"Console   {web_url} in a browser; sign in with the admin key below")
    lines += [
        "Change the split from another shell:",
        *_path(),
        f"  export GATEWAY_URL={url}",
        f"  export GATEWAY_ADMIN_KEY={plan.admin_key}",
        f"  gateway canary set {MODEL} chunk-512=90 chunk-64=10",
    ]
    return "\n".join(lines)


def _path() -> list[str]:
    """For other shells: `make demo` put this program where theirs do not look."""
    if shutil.which("gateway"):
        return []
    return [f"  export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"]


def render(plan: Plan, tally: Tally, weights: dict[str, float]) -> RenderableType:
    """What changes while it runs."""
    return Group(_arms(tally, weights, plan.speed), _notes(plan))


def _arms(tally: Tally, weights: dict[str, float], speed: float) -> Table:
    unit = "ms" if speed == 1 else "simulated ms"
    table = Table(title=f"Time to first token, as the gateway measured it ({unit})")
    table.add_column("Arm", no_wrap=True)
    for name in ("Weight", "Requests", "Errors", "P50", "P90", "P99", "Cached"):
        table.add_column(name, justify="right")
    for name, arm in tally.arms.items():
        times = arm.percentiles(speed).values()
        table.add_row(
            name,
            f"{weights[name]:g}",
            str(arm.requests),
            str(arm.errors),
            *("-" if time is None else f"{time:.0f}" for time in times),
            f"{arm.cached_share:.0%}",
        )
    return table


def _notes(plan: Plan) -> Text:
    lines = ["The engines are simulated: these times say nothing about a real machine."]
    if plan.speed != 1:
        lines.append(
            f"They run at speed {plan.speed:g}: times are the measured ones multiplied by "
            f"{plan.speed:g}, and so is what the gateway and this machine add."
        )
    return Text("\n".join([*lines, NO_VERDICT]))
