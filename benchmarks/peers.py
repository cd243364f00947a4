"""Other gateways, each installed (pinned) in a virtual environment of its own outside the tree.

They are never a dependency of the package, and one that cannot be installed is left out with the
reason. Set `TTFT_GATEWAY_PEERS` to keep them elsewhere than in `~/.cache/ttft-gateway/peers`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks.site import Site
from benchmarks.workloads import MODEL

INSTALL_TIMEOUT = 900.0
_DONE = "installed.txt"


def folder() -> Path:
    """Where the peers' virtual environments stand."""
    override = os.environ.get("TTFT_GATEWAY_PEERS")
    return Path(override) if override else Path.home() / ".cache" / "ttft-gateway" / "peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer: what to install, and how to start it in front of two upstreams."""

    name: str
    requirements: tuple[str, ...]
    arguments: Callable[[Site], list[str]]
    ready: str = "/health"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """Its virtual environment."""
        return folder() / self.name

    def command(self, site: Site) -> list[str]:
        """What to run; may write a configuration into the site's folder."""
        return [str(self.home / "bin" / self.name), *self.arguments(site)]

    def obstacle(self) -> str | None:
        """Install it where it is not yet; the reason why it cannot be, or None."""
        wanted = "\n".join(self.requirements)
        done = self.home / _DONE
        if done.exists() and done.read_text() == wanted:
            return None
        print(f"installing {self.requirements[0]} into {self.home} …", file=sys.stderr)
        reason = self._install()
        if reason is None:
            done.write_text(wanted)
        return reason

    def _install(self) -> str | None:
        try:
            self.home.parent.mkdir(parents=True, exist_ok=True)
            _run([sys.executable, "-m", "venv", "--clear", str(self.home)])
            _run([str(self.home / "bin" / "pip"), "install", "-q", *self.requirements])
        except subprocess.TimeoutExpired:
            return f"installing it took more than {INSTALL_TIMEOUT:.0f} s"
        except subprocess.CalledProcessError as failure:
            lines = str(failure.stderr).splitlines()
            errors = [line for line in lines if line.startswith("ERROR")]
            return (errors or lines or ["pip failed"])[-1][:200]
        except OSError as failure:
            return str(failure)
        return None


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT)


def _router(log_level: str, *subcommand: str) -> Callable[[Site], list[str]]:
    """The three Rust routers descend from one another and share their options."""

    def arguments(site: Site) -> list[str]:
        return [
            *subcommand,
            *("--host", "127.0.0.1", "--port", str(site.port)),
            *("--worker-urls", *site.urls),
            *("--policy", "round_robin", "--log-level", log_level),
            *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(site.spare_port)),
            *("--max-concurrent-requests", "8192"),
        ]

    return arguments


def _litellm(site: Site) -> list[str]:
    config = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"openai/{MODEL}",
                    "api_base": f"{url}/v1",
                    "api_key": "sk-none",
                },
            }
            for url in site.urls
        ],
        "general_settings": {"master_key": site.key},  # it does not start without one
        "litellm_settings": {"telemetry": False, "request_timeout": 600},
    }
    path = site.folder / "litellm.yaml"
    path.write_text(yaml.safe_dump(config))
    return ["--config", str(path), "--host", "127.0.0.1", "--port", str(site.port)]


VLLM_ROUTER = Peer("vllm-router", ("vllm-router==0.1.17",), _router("warning"))
SGLANG_ROUTER = Peer("sglang-router", ("sglang-router==0.3.2",), _router("warn", "launch"))
SMG = Peer("smg", ("smg==1.13.0",), _router("warn", "launch"))

# Not `litellm[proxy]`: the extra asks for companion wheels (litellm-proxy, and one release of
# litellm-proxy-extras) that the package index does not carry. This is what its proxy imports.
LITELLM = Peer(
    "litellm",
    (
        "litellm==1.110.2",
        "litellm-proxy-extras==0.4.110",
        *("uvicorn<1", "uvloop", "fastapi", "starlette<2", "gunicorn", "websockets<16"),
        *("apscheduler<4", "azure-identity", "backoff", "backports-zstd", "cryptography<51"),
        *("expression", "fastapi-sso", "hiredis", "httpx2<3", "inquirerpy", "mcp<3", "orjson"),
        *("polars", "pyjwt", "pynacl", "python-multipart", "restrictedpython", "rich<14"),
        *("rq", "semver", "soundfile", "tomlkit"),
    ),
    _litellm,
    ready="/health/readiness",
    env={"LITELLM_LOG": "ERROR"},
)
