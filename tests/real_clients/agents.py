"""The coding agents: how each is set up for the gateway and run without a terminal.

The settings are the ones users are told to make; everything else keeps an agent from asking
anything of the world outside.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.real_clients.speech import Answer


class Agent(ABC):
    """One coding agent.

    Attributes:
        name: as the documentation has it.
        package: on npm.
        program: its command.
        tool: its tool for shell commands.
    """

    name: str
    package: str
    program: str
    tool: str

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        """Variables to set, beside those that every agent gets."""
        return {}

    def prepare(self, home: Path, url: str, key: str, model: str) -> Sequence[Sequence[str]]:
        """Write what belongs in the home folder; commands that have to run once beforehand."""
        return ()

    @abstractmethod
    def command(self, prompt: str, *, again: bool) -> list[str]:
        """Ask once; `again`: go on with the one conversation that was had in this home."""

    @abstractmethod
    def arguments(self, line: str) -> dict[str, Any]:
        """What the model gives to the agent's tool for shell commands, to run this one."""

    def shell(self, line: str, call: str = "call_1") -> Answer:
        """The model asks for this shell command."""
        return Answer(tool=self.tool, arguments=json.dumps(self.arguments(line)), call=call)


class ClaudeCode(Agent):
    name, package, program = "Claude Code", "@anthropic-ai/claude-code", "claude"
    tool = "Bash"

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": f"{url}/api",
            "ANTHROPIC_AUTH_TOKEN": key,
            "ANTHROPIC_MODEL": model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["--continue"] if again else []
        return [self.program, "--print", "--allowedTools", "Bash", *follow, "--", prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it"}


class Codex(Agent):
    name, package, program = "Codex", "@openai/codex", "codex"
    tool = "exec_command"

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        return {"GW_KEY": key}

    def prepare(self, home: Path, url: str, key: str, model: str) -> Sequence[Sequence[str]]:
        folder = home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            f'model = "{model}"\nmodel_provider = "gw"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.gw]\nname = "gw"\nbase_url = "{url}/api/v1"\n'
            'env_key = "GW_KEY"\nwire_api = "responses"\n'
            "[analytics]\nenabled = false\n"
        )
        return ()

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["resume", "--last"] if again else []
        free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [self.program, "exec", *follow, *free, prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"cmd": line}


class OpenCode(Agent):
    name, package, program = "opencode", "opencode-ai", "opencode"
    tool = "bash"

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def prepare(self, home: Path, url: str, key: str, model: str) -> Sequence[Sequence[str]]:
        folder = home / ".config" / "opencode"
        folder.mkdir(parents=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/api/v1", "apiKey": key},
            "models": {model: {"limit": {"context": 131072, "output": 8192}}},
        }
        settings = {"provider": {"gw": provider}, "model": f"gw/{model}", "autoupdate": False}
        (folder / "opencode.json").write_text(json.dumps(settings))
        return ()

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["--continue"] if again else ["--title", "A test"]
        return [self.program, "run", "--auto", *follow, prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it"}


class Cline(Agent):
    name, package, program = "Cline", "cline", "cline"
    tool = "run_commands"

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        return {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_SESSION_BACKEND_MODE": "local"}

    def prepare(self, home: Path, url: str, key: str, model: str) -> Sequence[Sequence[str]]:
        folder = home / ".cline" / "data" / "settings"
        folder.mkdir(parents=True)
        quiet = {"telemetryOptOut": True, "autoUpdateEnabled": False}
        (folder / "global-settings.json").write_text(json.dumps(quiet))
        login = ["openai-compatible", "-k", key, "-m", model, "-b", f"{url}/api/v1"]
        return ([self.program, "auth", *login],)

    def command(self, prompt: str, *, again: bool) -> list[str]:
        assert not again, "it goes on with a conversation in a terminal only"
        return [self.program, prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"commands": [line]}


class Qwen(Agent):
    name, package, program = "Qwen Code", "@qwen-code/qwen-code", "qwen"
    tool = "run_shell_command"

    def environment(self, url: str, key: str, model: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{url}/api/v1",
            "OPENAI_API_KEY": key,
            "OPENAI_MODEL": model,
            # It takes proxy variables for loopback too, whatever NO_PROXY says.
            "HTTP_PROXY": "",
            "HTTPS_PROXY": "",
            "QWEN_CODE_NO_RELAUNCH": "true",
            "NODE_OPTIONS": f"--require={Path(__file__).with_name('loopback-only.cjs')}",
        }

    def prepare(self, home: Path, url: str, key: str, model: str) -> Sequence[Sequence[str]]:
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
        return ()

    def command(self, prompt: str, *, again: bool) -> list[str]:
        follow = ["--continue"] if again else []
        return [self.program, "--auth-type", "openai", "--yolo", *follow, "--prompt", prompt]

    def arguments(self, line: str) -> dict[str, Any]:
        return {"command": line, "description": "Run it", "is_background": False}
