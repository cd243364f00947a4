"""The coding agents: how each is run without a terminal, and kept from the world outside.

How it finds the gateway is not written here: each is set up as `gateway connect` sets it up.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from gateway.clients.claude_code import CLAUDE_CODE
from gateway.clients.cline import CLINE
from gateway.clients.codex import CODEX
from gateway.clients.opencode import OPENCODE
from gateway.clients.profile import Profile
from gateway.clients.qwen import QWEN
from tests.real_clients.speech import Answer


class Agent(ABC):
    """One coding agent.

    Attributes:
        profile: what the gateway knows of it.
        package: on npm.
        tool: its tool for shell commands.
        quiet: variables that keep it from asking for anything but answers.
    """

    profile: Profile
    package: str
    tool: str
    quiet: ClassVar[dict[str, str]] = {}

    def prepare(self, home: Path) -> None:
        """Write what its user had set before, into a home folder that is empty."""
        return None

    def learned(self, home: Path) -> dict[str, str]:
        """The files in which the commands of its set-up have kept what they were told."""
        return {}

    @abstractmethod
    def command(self, prompt: str, *, again: bool) -> list[str]:
        """Ask once; `again`: go on with the one conversation that was had in this home."""

    @abstractmethod
    def arguments(self, line: str) -> dict[str, Any]:
        """What the model gives to the tool, to run this shell command."""

    def shell(self, line: str, call: str = "call_1") -> Answer:
        """The model asks for this shell command."""
        return Answer(tool=self.tool, arguments=json.dumps(self.arguments(line)), call=call)


class ClaudeCode(Agent):
    profile, package, tool = CLAUDE_CODE, "@anthropic-ai/claude-code", "Bash"
    quiet: ClassVar[dict[str, str]] = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["--continue"] if again else []
        return ["claude", "--print", "--allowedTools", "Bash", *follow, "--", prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it"}


class Codex(Agent):
    profile, package, tool = CODEX, "@openai/codex", "exec_command"

    def prepare(self, home: Path) -> None:
        folder = home / ".codex"
        folder.mkdir()
        quiet = "check_for_update_on_startup = false\n\n[analytics]\nenabled = false\n"
        (folder / "config.toml").write_text(quiet)

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["resume", "--last"] if again else []
        free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return ["codex", "exec", *follow, *free, prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"cmd": line}


class OpenCode(Agent):
    profile, package, tool = OPENCODE, "opencode-ai", "bash"
    quiet: ClassVar[dict[str, str]] = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }

    def command(self, prompt: str, *, again: bool) -> list[str]:
        # Without a title it would ask the model for one.
        follow = ["--continue"] if again else ["--title", "A test"]
        return ["opencode", "run", "--auto", *follow, prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it"}


class Cline(Agent):
    profile, package, tool = CLINE, "cline", "run_commands"
    # Its sessions would go to a daemon on a fixed port, which outlives it.
    quiet: ClassVar[dict[str, str]] = {
        "CLINE_NO_AUTO_UPDATE": "1",
        "CLINE_SESSION_BACKEND_MODE": "local",
    }

    def prepare(self, home: Path) -> None:
        folder = home / ".cline" / "data" / "settings"
        folder.mkdir(parents=True)
        # With telemetry on, every start waits ten seconds for it to get through.
        quiet = {"telemetryOptOut": True, "autoUpdateEnabled": False}
        (folder / "global-settings.json").write_text(json.dumps(quiet))

    def command(self, prompt: str, *, again: bool) -> list[str]:
        assert not again, "it goes on with a conversation in a terminal only"
        return ["cline", prompt]

    def learned(self, home: Path) -> dict[str, str]:
        kept = Path(".cline/data/settings/providers.json")
        return {str(kept): (home / kept).read_text()}

    list_conversations = ("cline", "history", "--json", "--limit", "1")

    def resume(self, listed: str) -> list[str]:
        """Take up the latest conversation, which `list_conversations` has told of."""
        return ["cline", "--id", json.loads(listed)[0]["sessionId"]]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"commands": [line]}


class Qwen(Agent):
    profile, package, tool = QWEN, "@qwen-code/qwen-code", "run_shell_command"
    quiet: ClassVar[dict[str, str]] = {
        # It takes proxy variables for loopback too, whatever NO_PROXY says.
        "HTTP_PROXY": "",
        "HTTPS_PROXY": "",
        "NODE_OPTIONS": f"--require={Path(__file__).with_name('loopback-only.cjs')}",
        # It would start itself a second time, with more memory.
        "QWEN_CODE_NO_RELAUNCH": "true",
    }

    def prepare(self, home: Path) -> None:
        folder = home / ".qwen"
        folder.mkdir()
        quiet = {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            # It would ask a second time after most answers, for what to remember of them.
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        }
        (folder / "settings.json").write_text(json.dumps(quiet))

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["--continue"] if again else []
        return ["qwen", "--yolo", *follow, "--prompt", prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it", "is_background": False}
